//! Updates of steps. The stored type decides whether title and subtask are honored,
//! so their violations are part of the patch.

use super::list_system_fields;
use crate::{
    domain::{
        ids::{StepId, TaskId},
        step::StepPatch,
        text::Title,
        violation::Violations,
    },
    messages::{
        decode::{
            Field, Update, dependencies, feedback,
            field::{self, expected_etag, guid, sent_list, sent_text},
            json, translations,
        },
        ignored::Ignored,
        mask::{Mask, Selects},
    },
    proto::v1,
};

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
        at.refuse_deferred(patch.title);
        at.refuse_deferred(patch.subtask_id);
        at.refuse_deferred(patch.subtask_pid);
        return None;
    };
    patch.violations = at.take_violations();
    Some(Update {
        guid,
        expected,
        patch,
    })
}

/// The fields that were sent and that some types of steps do not have.
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

fn patch(message: v1::Step, mask: &Mask, at: &mut Field<'_>) -> StepPatch {
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
        guid: _,
        task: _,
        product_id: _,
        r#type: _,
        link: _,
        etag: _,
        account_id: _,
        r_data: _,
        dirty_record: _,
        created_ts: _,
        modified_ts: _,
    } = message;
    StepPatch {
        type_dependent,
        title: mask.edit(at, "title", sent_text(title), |title, field| {
            Some(field.check_text(Title::parse(title)))
        }),
        subtask_id: mask.edit(at, "subtask_id", sent_text(subtask_id), |id, field| {
            Some(field.check_guid(&id, TaskId::parse))
        }),
        subtask_pid: mask.edit(at, "subtask_pid", subtask_pid, |id, field| {
            Some(field.check_product(id))
        }),
        cost: mask.edit(at, "cost", cost, super::cost),
        feedback: {
            let sent = sent_list(feedback_config);
            mask.edit(at, "feedback_config", sent, feedback::feedback)
        },
        body: mask.edit(at, "body", body, field::body),
        dependencies: dependencies::edit(mask, dependencies, dependency_shorthand, at),
        instructions: mask.list(at, "instructions", instructions, json::instructions),
        looping: mask.edit(at, "looping", looping, super::looping),
        parts: mask.list(at, "parts", parts, super::tags),
        published: mask.edit(at, "published", published, field::published),
        skills: mask.list(at, "skills", skills, super::tags),
        tags: mask.list(at, "tags", tags, super::tags),
        translations: {
            let at = at.field("translations");
            translations::edits(translations, mask.translations(), at)
        },
        violations: Violations::new(),
    }
}
