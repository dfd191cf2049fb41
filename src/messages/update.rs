//! Updates of tasks and steps as they were sent. The selected fields are merged into the stored task or
//! step, and the result is decoded like a new one. The store does this after it has read what is
//! stored.

use std::mem::take;

use prost::Message;
use prost_types::FieldMask;

use super::{
    decode::{
        self, Field,
        field::{expected_etag, guid},
        step, task,
    },
    encode,
    fields::{FieldUse, STEP, TASK},
    ignored::Ignored,
    mask::Mask,
};
use crate::{
    domain::{
        Error, Result,
        decide::{SentFields, UpdateStep, UpdateTask, Updated},
        ids::{StepId, TaskId},
        step::{ReferencedTask, SentSubtask},
        task::{NewTask, Published, Task, check_languages},
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

mod step_update;

use step_update::StepUpdate;
pub use step_update::{SUBTASK, SUBTASK_EXTERNAL_ID};

/// The fields that a managed task takes from its value, or does not have.
pub const UNMANAGED_ONLY: &[&str] = &["external_id", "name"];

/// Decodes the step of an update.
pub fn updated_step(
    message: Option<v1::Step>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateStep> {
    let mask = Mask::parse(mask, &STEP, violations, ignored);
    let mut at = violations.at("step");
    let message = at.required(message)?;
    let guid = guid(&message.guid, StepId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let subtask = step::subtask(&message);
    let update = StepUpdate::new(message, mask, take(violations));
    if guid.is_none() {
        // It is not known which fields it honors.
        *violations = update.update.check(&[], step::check);
    }
    Some(UpdateStep {
        guid: guid?,
        expected,
        subtask: SentSubtask {
            guid: subtask.guid.filter(|_| update.update.selects("subtask_id")),
            external_id: subtask
                .external_id
                .filter(|_| update.update.selects(SUBTASK_EXTERNAL_ID)),
            product: None,
        },
        edits_question: update.update.selects("feedback_config"),
        fields: Box::new(update),
    })
}

/// Decodes the task of an update.
pub fn updated_task(
    message: Option<v1::Task>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateTask> {
    let mask = Mask::parse(mask, &TASK, violations, ignored);
    let mut at = violations.at("task");
    let mut message = at.required(message)?;
    let guid = guid(&message.guid, TaskId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let published = message.published;
    let published = published.map_or(Some(Published::default()), Published::new);
    message.external_id.take_if(|id| id.is_empty());
    let update = TaskUpdate(Update::new("task", &message, mask, take(violations)));
    if guid.is_none() {
        *violations = update.0.check(&[], task::check);
    }
    Some(UpdateTask {
        guid: guid?,
        expected,
        published: published.filter(|_| update.0.selects("published")),
        fields: Box::new(update),
    })
}

/// Decodes the stored message with the selected fields of the sent one. `None` if the result is invalid, with
/// violations below `path`.
pub fn decode_selected<M: Message + Default, T>(
    mask: &Mask,
    (stored, sent): (&[u8], &[u8]),
    not_honored: &[&str],
    path: &str,
    violations: &mut Violations,
    decode: impl FnOnce(M, Field<'_>) -> Option<T>,
) -> Option<T> {
    // What was just encoded can be decoded.
    let merged = mask.apply(stored, sent, not_honored)?;
    let message = M::decode(&merged.message[..]).ok()?;
    let decoded = decode(message, violations.at(path));
    check_languages(&Path::root(path), merged.languages, violations);
    decoded
}

/// An update as it was sent.
#[derive(Debug)]
struct Update {
    path: &'static str,
    mask: Mask,
    /// The task or step, encoded.
    message: Vec<u8>,
    /// The violations of the request that were found already.
    violations: Violations,
}

impl Update {
    fn new(path: &'static str, message: &impl Message, mask: Mask, found: Violations) -> Self {
        Self {
            path,
            mask,
            message: message.encode_to_vec(),
            violations: found,
        }
    }

    fn has(&self, field: &str) -> bool {
        self.mask.fields.is_sent(field, &self.message)
    }

    /// Whether a field replaces what is stored.
    fn selects(&self, field: &str) -> bool {
        self.mask.selects(field, || self.has(field))
    }

    /// What `decode` returns for the stored message with the selected fields, and the sent fields that are
    /// not applied; or all violations of the request.
    fn decode<M: Message + Default, T>(
        &self,
        stored: &[u8],
        not_honored: &[&'static str],
        decode: impl FnOnce(M, Field<'_>) -> Option<T>,
    ) -> Result<Updated<T>> {
        let decoded = decode::all(|violations| {
            violations.append(self.violations.clone());
            let both = (stored, &self.message[..]);
            decode_selected(&self.mask, both, not_honored, self.path, violations, decode)
        });
        Ok((decoded?, self.not_applied(stored, not_honored)))
    }

    /// The violations of the request, except for fields that are not honored.
    fn check<M: Message + Default>(
        &self,
        not_honored: &[&'static str],
        check: impl FnOnce(M, Field<'_>),
    ) -> Violations {
        let checked = self.decode(&[], not_honored, |message, at| {
            check(message, at);
            Some(())
        });
        match checked {
            Err(Error::Invalid(violations)) => violations,
            _ => Violations::new(),
        }
    }

    /// The fields whose sent values differ from the stored ones and are not applied, and those of
    /// `not_honored` that the mask names.
    fn not_applied(&self, stored: &[u8], not_honored: &[&'static str]) -> Vec<&'static str> {
        let is_listed = |field: &str, field_use| {
            not_honored.contains(&field)
                || matches!(field_use, FieldUse::Creation | FieldUse::System)
        };
        let fields = self.mask.fields;
        let mut ignored = fields.differing(&self.message, is_listed, stored);
        let named = not_honored.iter().copied();
        ignored.extend(named.filter(|field| self.mask.names(field)));
        ignored
    }
}

#[derive(Debug)]
struct TaskUpdate(Update);

/// The fields that a stored task does not honor.
pub fn unmanaged_only(task: &Task) -> &'static [&'static str] {
    match task.managed {
        Some(_) => UNMANAGED_ONLY,
        None => &[],
    }
}

impl SentFields<Task, NewTask> for TaskUpdate {
    fn violations(&self) -> Violations {
        self.0.check(UNMANAGED_ONLY, task::check)
    }

    fn decode(&self, stored: &Task, _: Option<&ReferencedTask>) -> Result<Updated<NewTask>> {
        let encoded = encode::task(stored.clone()).encode_to_vec();
        let not_honored = unmanaged_only(stored);
        self.0
            .decode(&encoded, not_honored, |message: v1::Task, mut at| {
                if message.roles.is_empty() {
                    // A create without roles gives access to everyone.
                    let description = "needs at least one access level";
                    at.field("roles").refuse(Reason::FieldRequired, description);
                }
                task::new(message, at)
            })
    }
}
