//! Updates of steps. The stored type decides about title and subtask, so what
//! is wrong with those rides in the patch.

use super::{
    dependencies, expected, feedback, guid, guid_at, json, product_at, published, sent_list,
    sent_text,
    step::{looping, price_tag, tags},
    step_fields::{Asked, Content, Fields, fields, note_system_fields},
    text_violation, translations,
};
use crate::{
    domain::{
        etag::Expected,
        ids::{ProductId, StepId, TaskId},
        patch::{Deferred, Edit},
        step::StepPatch,
        text::{Tag, Title},
        violation::{Path, Violations},
    },
    grpc::{ignored::Ignored, mask::Mask},
    proto::v1,
};

/// Which step an update is for, in which version, and what it says.
pub struct Update {
    /// The step.
    pub guid: StepId,
    /// Its version.
    pub expected: Expected,
    /// What it says; what is wrong with it so far is in there.
    pub patch: StepPatch,
}

/// An update of a step, with what is wrong with it so far; `None`, and the
/// faults stay where they are, when nobody knows of which step. `at` is where it
/// stands in the request.
pub fn update(
    message: v1::Step,
    mask: &Mask,
    at: &Path<'_>,
    faults: &mut Violations,
    ignored: &mut Ignored,
) -> Option<Update> {
    note_system_fields(&message, ignored);
    ignored.note([
        ("task", !message.task.is_empty()),
        ("product_id", message.product_id.is_some()),
        ("type", message.r#type != 0),
        (
            "dependency_shorthand",
            message.dependency_shorthand.is_some(),
        ),
    ]);
    let id = guid(&message.guid, StepId::parse, &at.field("guid"), faults);
    let expected = expected(&message.etag, &at.field("etag"), faults);
    let mut patch = patch(message, mask, at, faults);
    let guid = id?;
    patch.faults = std::mem::take(faults);
    Some(Update {
        guid,
        expected,
        patch,
    })
}

fn patch(message: v1::Step, mask: &Mask, at: &Path<'_>, faults: &mut Violations) -> StepPatch {
    let Fields {
        task: _,
        product_id: _,
        r#type: _,
        asked,
        content,
    } = fields(message);
    let sent = type_dependent(&asked, mask);
    let Asked {
        title,
        cost,
        feedback_config,
        subtask_id,
        subtask_pid,
    } = asked;
    let Content {
        body,
        dependencies,
        dependency_shorthand: _,
        instructions,
        looping: repeats,
        parts,
        published: shown,
        skills,
        tags: labels,
        translations: rows,
    } = content;
    StepPatch {
        sent,
        title: title_edit(title, mask, &at.field("title")),
        subtask_id: subtask_id_edit(subtask_id, mask, &at.field("subtask_id")),
        subtask_pid: subtask_pid_edit(subtask_pid, mask, &at.field("subtask_pid")),
        cost: mask.edit("cost", cost, |price| {
            price_tag(price, &at.field("cost"), faults)
        }),
        feedback: mask.edit("feedback_config", sent_list(feedback_config), |list| {
            feedback::feedback(list, &at.field("feedback_config"), faults)
        }),
        body: mask.edit("body", body, |text| {
            super::body(text, &at.field("body"), faults)
        }),
        dependencies: mask.edit("dependencies", dependencies, |group| {
            dependencies::group(group, &at.field("dependencies"), faults)
        }),
        instructions: list(mask.edit("instructions", sent_list(instructions), |list| {
            let path = at.field("instructions");
            Some(json::instructions(list, &path, faults))
        })),
        looping: mask.edit("looping", repeats, |repeats| {
            looping(repeats, &at.field("looping"), faults)
        }),
        parts: labels_edit("parts", parts, mask, at, faults),
        published: mask.edit("published", shown, |shown| {
            published(shown, &at.field("published"), faults)
        }),
        skills: labels_edit("skills", skills, mask, at, faults),
        tags: labels_edit("tags", labels, mask, at, faults),
        translations: {
            let path = at.field("translations");
            translations::edits(rows, mask.rows(), &path, faults)
        },
        faults: Violations::new(),
    }
}

/// What was sent or named that steps of some types do not have.
fn type_dependent(asked: &Asked, mask: &Mask) -> Vec<&'static str> {
    let fields = [
        ("title", !asked.title.is_empty()),
        ("subtask_id", !asked.subtask_id.is_empty()),
        ("subtask_pid", asked.subtask_pid.is_some()),
    ];
    fields
        .into_iter()
        .filter(|(field, sent)| *sent || mask.names(field))
        .map(|(field, _)| field)
        .collect()
}

fn title_edit(title: String, mask: &Mask, path: &Path<'_>) -> Edit<Deferred<Title>> {
    mask.edit("title", sent_text(title), |title| {
        Some(Title::parse(title).map_err(|fault| text_violation(fault, path)))
    })
}

fn subtask_id_edit(id: String, mask: &Mask, path: &Path<'_>) -> Edit<Deferred<TaskId>> {
    mask.edit("subtask_id", sent_text(id), |id| {
        Some(guid_at(&id, TaskId::parse, path))
    })
}

fn subtask_pid_edit(id: Option<i64>, mask: &Mask, path: &Path<'_>) -> Edit<Deferred<ProductId>> {
    mask.edit("subtask_pid", id, |id| Some(product_at(id, path)))
}

fn labels_edit(
    field: &'static str,
    labels: Vec<String>,
    mask: &Mask,
    at: &Path<'_>,
    faults: &mut Violations,
) -> Option<Vec<Tag>> {
    list(mask.edit(field, sent_list(labels), |labels| {
        Some(tags(labels, &at.field(field), faults))
    }))
}

/// The list after an edit: one that is cleared is empty.
fn list<T>(edit: Edit<Vec<T>>) -> Option<Vec<T>> {
    match edit {
        Edit::Keep => None,
        Edit::Clear => Some(Vec::new()),
        Edit::Set(list) => Some(list),
    }
}
