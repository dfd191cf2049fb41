//! Steps. Whether they are new or updates, they are decoded to a patch; the type of the step
//! decides which of its fields are honored and which are required.

use super::{
    Field, Update, dependencies, feedback,
    field::{self, expected_etag, guid, not_a_value, sent_list, sent_text, text},
    json, translations,
};
use crate::{
    domain::{
        ids::{StepId, TaskId},
        patch::Deferred,
        step::{ContentPatch, Cost, Looping, NewStep, StepPatch, StepType},
        text::{MAX_LIST_ITEMS, Tag, Title},
        violation::{Reason, Violations},
    },
    messages::{
        ignored::Ignored,
        mask::{FieldSelection, Mask, MaskFields, TRANSLATIONS},
    },
    proto::v1,
};

/// The fields of a step, as masks name them.
pub const STEP_FIELDS: MaskFields = MaskFields {
    honored: &[
        "body",
        "cost",
        "dependencies",
        "external_id",
        "feedback_config",
        "instructions",
        "looping",
        "parts",
        "published",
        "skills",
        "subtask_id",
        "subtask_pid",
        "tags",
        "title",
        TRANSLATIONS,
    ],
    ignored: &[
        "account_id",
        "created_ts",
        "dependency_shorthand",
        "dirty_record",
        "link",
        "modified_ts",
        "product_id",
        "r_data",
        "task",
        "type",
    ],
    identifying: &["etag", "guid"],
    translation: &["body", "feedback_config", "instructions", "locked", "title"],
};

pub fn new(message: v1::Step, mut at: Field<'_>, ignored: &mut Ignored) -> Option<NewStep> {
    list_system_fields(&message, ignored);
    ignored.add_sent([
        ("guid", !message.guid.is_empty()),
        ("etag", !message.etag.is_empty()),
    ]);
    let task = guid(&message.task, TaskId::parse, at.field("task"));
    let patch = patch(message, &Mask::Document, &mut at);
    let (new, not_honored) =
        at.check(|path, violations| NewStep::from_patch(task, patch, path, violations));
    ignored.add(not_honored);
    new
}

/// An update of a step.
pub fn update(
    message: v1::Step,
    mask: &Mask,
    mut at: Field<'_>,
    ignored: &mut Ignored,
) -> Option<Update<StepId, StepPatch>> {
    list_system_fields(&message, ignored);
    ignored.add_sent([
        ("task", !message.task.is_empty()),
        ("product_id", message.product_id.is_some()),
        ("type", message.r#type != 0),
        (
            "dependency_shorthand",
            message.dependency_shorthand.is_some(),
        ),
    ]);
    let guid = guid(&message.guid, StepId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let mut patch = patch(message, mask, &mut at);
    let Some(guid) = guid else {
        at.check(|_, violations| patch.refuse_deferred(violations));
        return None;
    };
    patch.violations = at.take_violations();
    Some(Update {
        guid,
        expected,
        patch,
    })
}

/// The fields that some types of steps do not have and that were sent or are in the mask.
fn sent_type_dependent(message: &v1::Step, mask: &Mask) -> Vec<&'static str> {
    let fields = [
        ("title", !message.title.is_empty()),
        ("subtask_id", !message.subtask_id.is_empty()),
        ("subtask_pid", message.subtask_pid.is_some()),
    ];
    let sent = fields
        .into_iter()
        .filter(|(field, sent)| *sent || mask.names(field));
    sent.map(|(field, _)| field).collect()
}

/// The update that a mask makes of a step's fields.
pub fn patch(message: v1::Step, mask: &Mask, at: &mut Field<'_>) -> StepPatch {
    let type_dependent = sent_type_dependent(&message, mask);
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
        product: mask.edit(at, "product_id", product_id, |id, field| {
            Some(field.check_product(id))
        }),
        step_type: mask.edit(at, "type", step_type, |number, field| {
            Some(check_type(number, &field))
        }),
        title: mask.edit(at, "title", sent_text(title), |title, field| {
            Some(field.check_text(Title::parse(title)))
        }),
        subtask_id: mask.edit(at, "subtask_id", sent_text(subtask_id), |id, field| {
            Some(field.check_guid(&id, TaskId::parse))
        }),
        subtask_pid: mask.edit(at, "subtask_pid", subtask_pid, |id, field| {
            Some(field.check_product(id))
        }),
        cost: mask.edit(at, "cost", cost, self::cost),
        feedback: {
            let sent = sent_list(feedback_config);
            mask.edit(at, "feedback_config", sent, |list, field| {
                linked = list.iter().any(|config| config.linked == Some(true));
                feedback::feedback(list, field)
            })
        },
        linked,
        content: ContentPatch {
            body: mask.edit(at, "body", body, field::body),
            dependencies: dependencies::edit(mask, dependencies, dependency_shorthand, at),
            external_id: {
                let sent = external_id.and_then(sent_text);
                mask.edit(at, "external_id", sent, field::external_id)
            },
            instructions: mask.list(at, "instructions", instructions, json::instructions),
            looping: mask.edit(at, "looping", looping, self::looping),
            parts: mask.list(at, "parts", parts, self::tags),
            published: mask.edit(at, "published", published, field::published),
            skills: mask.list(at, "skills", skills, self::tags),
            tags: mask.list(at, "tags", tags, self::tags),
            translations: {
                let at = at.field("translations");
                translations::edits(translations, mask.translations(), at)
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

/// Lists the fields that the system sets and that were sent.
fn list_system_fields(message: &v1::Step, ignored: &mut Ignored) {
    ignored.add_sent([
        ("link", !message.link.is_empty()),
        ("account_id", !message.account_id.is_empty()),
        ("r_data", !message.r_data.is_empty()),
        ("dirty_record", message.dirty_record),
        ("created_ts", message.created_ts.is_some()),
        ("modified_ts", message.modified_ts.is_some()),
    ]);
    feedback::list_ignored(&message.feedback_config, ignored);
    for translation in message.translations.values() {
        feedback::list_ignored_of_translation(&translation.feedback_config, ignored);
    }
}
