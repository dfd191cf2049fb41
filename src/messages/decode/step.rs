//! Steps. Whether they are new or updates, they are decoded to a patch; the type of the step
//! decides which of its fields are honored and which are required.

use super::{
    Field, dependencies, feedback,
    field::{self, guid, not_a_value, sent_list, sent_text, text},
    json, translations,
};
use crate::{
    domain::{
        ids::TaskId,
        import::AbsentFields,
        patch::Deferred,
        step::{ContentPatch, Cost, Looping, NewStep, StepPatch, StepType},
        text::{MAX_LIST_ITEMS, Tag, Title},
        violation::{Reason, Violations},
    },
    messages::ignored::Ignored,
    proto::v1,
};

/// A new step. Lists the fields that its type does not have.
pub fn new(message: v1::Step, mut at: Field<'_>, ignored: &mut Ignored) -> Option<NewStep> {
    let task = guid(&message.task, TaskId::parse, at.field("task"));
    let patch = patch(message, AbsentFields::Keep, &mut at);
    let (new, not_honored) =
        at.check(|path, violations| NewStep::from_patch(task, patch, path, violations));
    ignored.add(not_honored);
    new
}

/// The fields that were sent, and those that are reset because they were not.
pub fn patch(message: v1::Step, absent: AbsentFields, at: &mut Field<'_>) -> StepPatch {
    let type_dependent = [
        ("title", !message.title.is_empty()),
        ("subtask_id", !message.subtask_id.is_empty()),
        ("subtask_pid", message.subtask_pid.is_some()),
    ];
    let type_dependent = type_dependent.into_iter().filter(|(_, sent)| *sent);
    let type_dependent = type_dependent.map(|(field, _)| field).collect();
    let v1::Step {
        title,
        body,
        cost,
        dependencies,
        dependency_shorthand,
        feedback_config,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        subtask_id,
        subtask_pid,
        translations,
        product_id,
        r#type,
        guid: _,
        task: _,
        link: _,
        etag: _,
        account_id: _,
        r_data: _,
        dirty_record: _,
        created_ts: _,
        modified_ts: _,
        external_id,
    } = message;
    let mut linked = false;
    let step_type = (r#type != 0).then_some(r#type);
    StepPatch {
        type_dependent,
        product: absent.edit(at, "product_id", product_id, |id, field| {
            Some(field.check_product(id))
        }),
        step_type: absent.edit(at, "type", step_type, |number, field| {
            Some(check_type(number, &field))
        }),
        title: absent.edit(at, "title", sent_text(title), |title, field| {
            Some(field.check_text(Title::parse(title)))
        }),
        subtask_id: absent.edit(at, "subtask_id", sent_text(subtask_id), |id, field| {
            Some(field.check_guid(&id, TaskId::parse))
        }),
        subtask_pid: absent.edit(at, "subtask_pid", subtask_pid, |id, field| {
            Some(field.check_product(id))
        }),
        cost: absent.edit(at, "cost", cost, self::cost),
        feedback: {
            let sent = sent_list(feedback_config);
            absent.edit(at, "feedback_config", sent, |list, field| {
                linked = list.iter().any(|config| config.linked == Some(true));
                feedback::feedback(list, field)
            })
        },
        linked,
        content: ContentPatch {
            body: absent.edit(at, "body", body, field::body),
            dependencies: dependencies::edit(absent, dependencies, dependency_shorthand, at),
            external_id: {
                let sent = external_id.and_then(sent_text);
                absent.edit(at, "external_id", sent, field::external_id)
            },
            instructions: absent.list(at, "instructions", instructions, json::instructions),
            looping: absent.edit(at, "looping", looping, self::looping),
            parts: absent.list(at, "parts", parts, self::tags),
            published: absent.edit(at, "published", published, field::published),
            skills: absent.list(at, "skills", skills, self::tags),
            tags: absent.list(at, "tags", tags, self::tags),
            translations: {
                let at = at.field("translations");
                translations::edits(translations, absent, at)
            },
        },
        violations: Violations::new(),
    }
}

/// The type of a new step. Its violation is not noted, as an update ignores the type.
fn check_type(number: i32, field: &Field<'_>) -> Deferred<StepType> {
    StepType::from_number(number).ok_or_else(|| {
        let types = StepType::ALL.map(|step_type| {
            let number = step_type.number();
            let name = v1::StepType::try_from(number).map_or("", |value| value.as_str_name());
            (name, number)
        });
        field.violation(Reason::FieldInvalid, not_a_value("a type of step", types))
    })
}

/// The cost of a step whose type may have one.
fn cost(number: i32, mut field: Field<'_>) -> Option<Cost> {
    let cost = Cost::new(number);
    if cost.is_none() {
        field.refuse(
            Reason::FieldOutOfRange,
            "must be 0, or 2 and more for a solution or an identified problem",
        );
    }
    cost
}

fn looping(message: v1::Looping, mut field: Field<'_>) -> Option<Looping> {
    let v1::Looping {
        alias,
        array,
        iterations,
    } = message;
    let alias = text(alias, field.field("alias"));
    let array = array.and_then(|array| json::json(array, field.field("array")));
    let iterations = iterations.and_then(|count| json::json(count, field.field("iterations")));
    Some(Looping {
        alias: alias?,
        array,
        iterations,
    })
}

/// Parts, skills or tags: order and duplicates are kept.
fn tags(list: Vec<String>, mut field: Field<'_>) -> Vec<Tag> {
    if !field.at_most(list.len(), MAX_LIST_ITEMS) {
        return Vec::new();
    }
    let tags = list.into_iter().enumerate();
    let tag = |(index, tag)| text(tag, field.index(index));
    tags.filter_map(tag).collect()
}
