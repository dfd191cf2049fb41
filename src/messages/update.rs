//! Updates of tasks and steps. The store reads the stored task or step, merges the selected fields
//! into it, and decodes the result like a new one.

use std::{collections::BTreeSet, mem::take};

use prost::Message;
use prost_types::FieldMask;

use super::{
    bodies::Bodies,
    decode::{
        Field,
        field::{expected_etag, guid},
        step, task,
    },
    encode,
    fields::{STEP, TASK},
    mask::Mask,
};
use crate::{
    domain::{
        decide::{UpdateStep, UpdateTask},
        ids::{StepId, TaskId},
        step::{NewStep, SentSubtask, Step},
        task::{Published, Task, check_languages},
        violation::{Path, Violations},
    },
    proto::v1,
};

/// The fields that a managed task takes from its value or does not have.
pub const UNMANAGED_ONLY: &[&str] = &["external_id", "name"];
pub const SUBTASK_EXTERNAL_ID: &str = "subtask_external_id";
/// The fields that only subtask steps have.
pub const SUBTASK: &[&str] = &[SUBTASK_EXTERNAL_ID, "subtask_id", "subtask_pid"];
/// The fields that depend on the type of a step.
pub const TYPE_DEPENDENT: &[&str] = &[SUBTASK_EXTERNAL_ID, "subtask_id", "subtask_pid", "title"];

/// Decodes the step of an update.
pub fn updated_step(
    message: Option<v1::Step>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut BTreeSet<&'static str>,
) -> Option<UpdateStep> {
    let mask = Mask::parse(mask, &STEP, violations, ignored);
    let mut at = violations.at("step");
    let mut message = at.required(message)?;
    let guid = guid(&message.guid, StepId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let mut bodies = Bodies::default();
    bodies.take_from(&mut message);
    step::clear_empty_ids(&mut message);
    let sent = message.encode_to_vec();
    let selects = |field| mask.selects(field, || STEP.is_sent(field, &sent));
    let subtask = step::subtask(&message);
    let subtask = SentSubtask {
        guid: subtask.guid.filter(|_| selects("subtask_id")),
        external_id: (subtask.external_id).filter(|_| selects(SUBTASK_EXTERNAL_ID)),
        product: subtask.product.filter(|_| selects("subtask_pid")),
    };
    let edits_question = selects("feedback_config");
    let Some(guid) = guid else {
        // The fields that it honors are unknown.
        check_step(&mask, &sent, &[], violations.at("step"));
        return None;
    };
    let selects_sent = |field| STEP.is_sent(field, &sent) && selects(field);
    let names_subtask = selects_sent(SUBTASK_EXTERNAL_ID);
    // The update would leave a subtask step without a task: the mask names the external id of the task,
    // but the request has neither an external id nor an id that the mask names.
    let clears_subtask = mask.names(SUBTASK_EXTERNAL_ID)
        && !names_subtask
        && !(mask.names("subtask_id") && selects_sent("subtask_id"));
    let earlier = take(violations);
    Some(UpdateStep {
        guid,
        expected,
        subtask,
        edits_question,
        fields: Box::new(move |stored, violations| {
            violations.append(earlier.clone());
            let Some(before) = stored else {
                check_step(&mask, &sent, TYPE_DEPENDENT, violations.at("step"));
                return None;
            };
            let honors_subtask = before.honors_subtask();
            let not_honored = match before.kind.subtask() {
                None => SUBTASK,
                Some(_) if honors_subtask => &["title"],
                Some(_) => TYPE_DEPENDENT,
            };
            let stored = bodies.encode_stored(before, &message);
            let edit = StepEdit {
                before,
                stored: &stored,
                sent: &sent,
                not_honored,
                names_subtask,
            };
            let new = edit.decode(&mask, &bodies, "step", violations);
            if honors_subtask && clears_subtask {
                let mut at = violations.at("step");
                at.field(SUBTASK_EXTERNAL_ID).required::<()>(None);
            }
            Some((new?, mask.not_applied(&stored, &sent, not_honored)))
        }),
    })
}

/// Decodes the task of an update.
pub fn updated_task(
    message: Option<v1::Task>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut BTreeSet<&'static str>,
) -> Option<UpdateTask> {
    let mask = Mask::parse(mask, &TASK, violations, ignored);
    let mut at = violations.at("task");
    let mut message = at.required(message)?;
    let guid = guid(&message.guid, TaskId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    message.external_id.take_if(|id| id.is_empty());
    let selects_published = mask.selects("published", || message.published.is_some());
    let published = message.published;
    let published = published.map_or(Some(Published::default()), Published::new);
    let sent = message.encode_to_vec();
    let Some(guid) = guid else {
        check_task(&mask, &sent, &[], violations.at("task"));
        return None;
    };
    let earlier = take(violations);
    Some(UpdateTask {
        guid,
        expected,
        published: published.filter(|_| selects_published),
        fields: Box::new(move |stored, violations| {
            violations.append(earlier.clone());
            let mut at = violations.at("task");
            let Some(before) = stored else {
                check_task(&mask, &sent, UNMANAGED_ONLY, at);
                return None;
            };
            let not_honored = unmanaged_only(before);
            let stored = encode::task(before.clone()).encode_to_vec();
            let (message, languages): (v1::Task, _) = mask.merge(&stored, &sent, not_honored)?;
            // Without roles, a create would give access to everyone.
            let mut roles = at.field("roles");
            roles.not_empty(&message.roles, "needs at least one access level");
            let new = task::new(message, at);
            check_languages(&Path::root("task"), languages, violations);
            Some((new?, mask.not_applied(&stored, &sent, not_honored)))
        }),
    })
}

/// A stored step, and what a request changes.
pub struct StepEdit<'a> {
    pub before: &'a Step,
    /// The stored step, encoded like the sent one, with numbers instead of bodies.
    pub stored: &'a [u8],
    pub sent: &'a [u8],
    pub not_honored: &'a [&'static str],
    /// Whether the request names the task of a subtask step by external id. The stored external id
    /// follows the task, and does not identify it.
    pub names_subtask: bool,
}

impl StepEdit<'_> {
    /// Decodes the stored step with the selected fields of the sent one.
    pub fn decode(
        &self,
        mask: &Mask,
        bodies: &Bodies,
        path: &str,
        violations: &mut Violations,
    ) -> Option<NewStep> {
        let (mut message, languages): (v1::Step, _) =
            mask.merge(self.stored, self.sent, self.not_honored)?;
        message.subtask_external_id.take_if(|_| !self.names_subtask);
        let new = step::for_task(message, Some(self.before.task), &mut violations.at(path));
        check_languages(&Path::root(path), languages, violations);
        let mut new = new?;
        bodies.restore(&mut new.content, Some(self.before));
        Some(new)
    }
}

/// Notes the violations of the selected fields, except those in `not_honored`. The stored task is
/// unknown.
pub fn check_task(mask: &Mask, sent: &[u8], not_honored: &[&str], at: Field<'_>) {
    if let Some((message, _)) = mask.merge(&[], sent, not_honored) {
        task::check(message, at);
    }
}

/// The same for a step.
pub fn check_step(mask: &Mask, sent: &[u8], not_honored: &[&str], at: Field<'_>) {
    if let Some((message, _)) = mask.merge(&[], sent, not_honored) {
        step::check(message, at);
    }
}

/// The fields that a stored task does not honor.
pub fn unmanaged_only(task: &Task) -> &'static [&'static str] {
    match task.managed {
        Some(_) => UNMANAGED_ONLY,
        None => &[],
    }
}
