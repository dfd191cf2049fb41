//! Tasks and steps as they were sent in an update or a document. The selected fields are merged into
//! the stored task or step, and the result is decoded like a new one. The store does this after it has
//! read what is stored.

use std::{mem::take, sync::Arc};

use prost::Message;
use prost_types::FieldMask;

use super::{
    bodies::Bodies,
    decode::{
        self, Field,
        field::{expected_etag, guid},
        step, task,
    },
    document_masks::DocumentMasks,
    encode,
    fields::{FieldUse, SHORTHAND, STEP, TASK},
    ignored::Ignored,
    mask::Mask,
};
use crate::{
    domain::{
        Error, Result,
        decide::{SentFields, UpdateStep, UpdateTask},
        ids::{StepId, TaskId},
        step::{NewStep, ReferencedTask, SentSubtask, Step},
        task::{NewTask, Published, Task, check_languages},
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

mod sent_step;

use sent_step::SentStep;

/// The fields that a managed task takes from its value, or does not have.
pub const UNMANAGED_ONLY: &[&str] = &["external_id", "name"];
const SUBTASK_EXTERNAL_ID: &str = "subtask_external_id";

/// Decodes the step of an update.
pub fn updated_step(
    message: Option<v1::Step>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateStep> {
    let mask = Arc::new(Mask::parse(mask, &STEP, violations, ignored));
    let mut at = violations.at("step");
    let message = at.required(message)?;
    let guid = guid(&message.guid, StepId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let subtask = step::subtask(&message);
    let step = SentStep::new(message, Source::Update, mask, "step", take(violations));
    let SentStep(sent) = &step;
    if guid.is_none() {
        // It is not known which fields it honors.
        *violations = sent.check(&[], step::check);
    }
    Some(UpdateStep {
        guid: guid?,
        expected,
        subtask: SentSubtask {
            guid: subtask.guid.filter(|_| sent.selects("subtask_id")),
            external_id: subtask
                .external_id
                .filter(|_| sent.selects(SUBTASK_EXTERNAL_ID)),
            product: None,
        },
        edits_question: sent.selects("feedback_config"),
        fields: Box::new(step),
    })
}

/// Decodes the task of an update.
pub fn updated_task(
    message: Option<v1::Task>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateTask> {
    let mask = Arc::new(Mask::parse(mask, &TASK, violations, ignored));
    let mut at = violations.at("task");
    let message = at.required(message)?;
    let guid = guid(&message.guid, TaskId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let published = message.published;
    let published = published.map_or(Some(Published::default()), Published::new);
    let task = SentTask::new(message, Source::Update, mask, "task", take(violations));
    let SentTask(sent) = &task;
    if guid.is_none() {
        *violations = sent.check(&[], task::check);
    }
    Some(UpdateTask {
        guid: guid?,
        expected,
        published: published.filter(|_| sent.selects("published")),
        fields: Box::new(task),
    })
}

/// The task of a document at this path. A managed one takes its name from its value, and its product
/// from its parent. `violations` are those that were found in it already.
pub fn document_task(
    message: v1::Task,
    is_managed: bool,
    masks: &DocumentMasks,
    path: &str,
    violations: Violations,
) -> Box<dyn SentFields<Task, NewTask>> {
    let source = match is_managed {
        true => Source::ManagedDocument,
        false => Source::Document,
    };
    let mask = Arc::clone(&masks.task);
    Box::new(SentTask::new(message, source, mask, path, violations))
}

/// The step of a document at this path. `violations` are those that were found in it already.
pub fn document_step(
    message: v1::Step,
    masks: &DocumentMasks,
    path: &str,
    violations: Violations,
) -> Box<dyn SentFields<Step, NewStep>> {
    let (source, mask) = (Source::Document, Arc::clone(&masks.step));
    Box::new(SentStep::new(message, source, mask, path, violations))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Update,
    Document,
    /// The document of a managed task.
    ManagedDocument,
}

/// A task or step as it was sent.
#[derive(Debug)]
struct Sent {
    path: String,
    source: Source,
    mask: Arc<Mask>,
    /// It is encoded, with numbers in place of its bodies.
    message: Vec<u8>,
    bodies: Bodies,
    /// The violations of the request that were found already.
    violations: Violations,
}

impl Sent {
    fn has(&self, field: &str) -> bool {
        self.mask.fields.is_sent(field, &self.message)
    }

    /// Whether a field replaces what is stored.
    fn selects(&self, field: &str) -> bool {
        self.mask.selects(field, || self.has(field))
    }

    /// What `decode` returns for the message as it was sent; for one that is stored, with the selected
    /// fields. Otherwise all violations of the request.
    fn decode<M: Message + Default, T>(
        &self,
        stored: Option<(&[u8], &[&str])>,
        decode: impl FnOnce(M, Field<'_>) -> Option<T>,
    ) -> Result<T> {
        let merged;
        let (message, languages) = match stored {
            None => (&self.message, 0),
            Some((stored, not_honored)) => {
                let changed = self.mask.apply(stored, &self.message, not_honored);
                merged = changed.ok_or_else(undecodable)?;
                (&merged.message, merged.languages)
            }
        };
        let message = M::decode(&message[..]).map_err(|_| undecodable())?;
        let decoded = decode::all(|violations| {
            violations.append(self.violations.clone());
            let decoded = decode(message, violations.at(&self.path));
            check_languages(&Path::root(&self.path), languages, violations);
            decoded
        });
        decoded.map_err(Error::from)
    }

    /// The violations of the request, except for fields that are not honored.
    fn check<M: Message + Default>(
        &self,
        not_honored: &[&str],
        check: impl FnOnce(M, Field<'_>),
    ) -> Violations {
        let checked = self.decode(Some((&[][..], not_honored)), |message, at| {
            check(message, at);
            Some(())
        });
        match checked {
            Err(Error::Invalid(violations)) => violations,
            _ => Violations::new(),
        }
    }

    /// The fields whose sent values differ from the stored ones and are not applied, and those of
    /// `not_honored` that a mask names. A document is expected to have what the system sets, and the
    /// planner knows its task.
    fn not_applied(
        &self,
        not_honored: &[&'static str],
        stored: impl FnOnce() -> Vec<u8>,
    ) -> Vec<&'static str> {
        let is_update = self.source == Source::Update;
        let is_listed = |field: &str, field_use| match field_use {
            _ if not_honored.contains(&field) => true,
            FieldUse::Creation => is_update || ![SHORTHAND, "task"].contains(&field),
            FieldUse::System => is_update,
            FieldUse::Honored | FieldUse::Identity => false,
        };
        let fields = self.mask.fields;
        let mut ignored = fields.differing(&self.message, is_listed, stored);
        let named = not_honored.iter().copied();
        ignored.extend(named.filter(|field| is_update && self.mask.names(field)));
        ignored
    }
}

fn undecodable() -> Error {
    Error::Internal("a sent task or step cannot be decoded".to_owned())
}

#[derive(Debug)]
struct SentTask(Sent);

impl SentTask {
    fn new(
        mut message: v1::Task,
        source: Source,
        mask: Arc<Mask>,
        path: &str,
        violations: Violations,
    ) -> Self {
        message.external_id.take_if(|id| id.is_empty());
        Self(Sent {
            path: path.to_owned(),
            source,
            mask,
            message: message.encode_to_vec(),
            bodies: Bodies::default(),
            violations,
        })
    }
}

/// The fields that a stored task does not honor.
fn not_honored_by(task: &Task) -> &'static [&'static str] {
    match task.managed {
        Some(_) => UNMANAGED_ONLY,
        None => &[],
    }
}

impl SentFields<Task, NewTask> for SentTask {
    fn violations(&self) -> Violations {
        self.0.check(UNMANAGED_ONLY, task::check)
    }

    fn decode(&self, stored: Option<&Task>, _: Option<&ReferencedTask>) -> Result<NewTask> {
        let encoded = stored.map(|task| encode::task(task.clone()).encode_to_vec());
        let merged = encoded.as_deref().zip(stored.map(not_honored_by));
        let source = self.0.source;
        self.0.decode(merged, |mut message: v1::Task, mut at| {
            if source == Source::Update && message.roles.is_empty() {
                // A create without roles gives access to everyone.
                let description = "needs at least one access level";
                at.field("roles").refuse(Reason::FieldRequired, description);
            }
            if source == Source::ManagedDocument && stored.is_none() {
                // The planner replaces name and product.
                message.name = "managed".to_owned();
                message.external_id = None;
                message.product_id.get_or_insert(1);
            }
            task::new(message, at)
        })
    }

    fn ignored(&self, stored: &Task) -> Vec<&'static str> {
        let encoded = || encode::task(stored.clone()).encode_to_vec();
        self.0.not_applied(not_honored_by(stored), encoded)
    }
}
