//! The fields of a step in requests: in a mask, in a new step, and in an update.

use crate::{
    domain::{
        ids::TaskId,
        step::{ContentPatch, StepContent, StepPatch},
        text::Title,
        violation::Violations,
    },
    messages::{
        decode::{
            Field, dependencies, feedback,
            field::{self, sent_list, sent_text},
            json, translations,
        },
        mask::{Mask, MaskFields, Selects, TRANSLATIONS},
    },
    proto::v1,
};

/// The fields of a step, as masks name them.
pub const STEP_FIELDS: MaskFields = MaskFields {
    honored: &[
        "body",
        "cost",
        "dependencies",
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

/// The fields that steps of every type have.
pub fn content(message: v1::Step, at: &mut Field<'_>) -> Option<StepContent> {
    let v1::Step {
        body,
        dependencies,
        dependency_shorthand,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        translations,
        guid: _,
        task: _,
        product_id: _,
        r#type: _,
        title: _,
        cost: _,
        feedback_config: _,
        subtask_id: _,
        subtask_pid: _,
        link: _,
        etag: _,
        account_id: _,
        r_data: _,
        dirty_record: _,
        created_ts: _,
        modified_ts: _,
    } = message;
    let body = body.and_then(|body| field::body(body, at.field("body")));
    let dependencies = dependencies::with_shorthand(dependencies, dependency_shorthand, at);
    let instructions = json::instructions(instructions, at.field("instructions"));
    let looping = looping.and_then(|message| super::looping(message, at.field("looping")));
    let parts = super::tags(parts, at.field("parts"));
    let published = field::published_or_default(published, at.field("published"));
    let skills = super::tags(skills, at.field("skills"));
    let tags = super::tags(tags, at.field("tags"));
    let translations = translations::all(translations, at.field("translations"));
    Some(StepContent {
        body,
        dependencies,
        instructions,
        looping,
        parts,
        published: published?,
        skills,
        tags,
        translations,
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
        content: ContentPatch {
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
        },
        violations: Violations::new(),
    }
}
