//! Updates of tasks and steps. What is stored, with the selected fields of what was sent, is decoded
//! like a new task or step. So the store decodes an update, once it has read what is stored.

use std::{collections::BTreeMap, sync::Arc};

use prost::Message;
use prost_types::FieldMask;

use super::{
    decode::{
        self, Field,
        field::{expected_etag, guid},
        step, task,
    },
    encode,
    fields::{FieldUse, ResourceFields, STEP, TASK},
    ignored::Ignored,
    mask::Mask,
};
use crate::{
    domain::{
        Error, Result,
        decide::{UpdateStep, UpdateTask, UpdatedFields},
        ids::{ProductId, StepId, TaskId},
        step::{NewStep, ReferencedTask, Step, StepType, check_subtask_product},
        task::{NewTask, Published, Task, check_languages},
        translation::MAX_LANGUAGES,
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

/// The fields that were sent in an update. Its [`UpdatedFields`] checks them against the stored resource,
/// and returns all violations of the request.
#[derive(Debug)]
pub struct SentFields {
    path: String,
    fields: &'static ResourceFields,
    mask: Arc<Mask>,
    message: Vec<u8>,
    /// The violations of other fields of the request.
    violations: Violations,
}

/// The fields that some types of steps do not honor.
pub(super) const TYPE_DEPENDENT: &[&str] = &["subtask_id", "subtask_pid", "title"];
/// The fields that a managed task takes from its value, or does not have.
pub(super) const UNMANAGED_ONLY: &[&str] = &["external_id", "name"];

/// The fields that a stored step does not honor.
fn not_honored_by_step(step: &Step) -> &'static [&'static str] {
    match (step.kind.step_type(), step.link) {
        // It always refers to its managed task.
        (StepType::Subtask, Some(_)) => TYPE_DEPENDENT,
        (StepType::Subtask, None) => &["title"],
        _ => &["subtask_id", "subtask_pid"],
    }
}

/// The fields that a stored task does not honor.
pub(super) fn not_honored_by_task(task: &Task) -> &'static [&'static str] {
    match task.managed {
        Some(_) => UNMANAGED_ONLY,
        None => &[],
    }
}

pub fn step(
    message: Option<v1::Step>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateStep<SentFields>> {
    let mask = Arc::new(Mask::parse(mask, &STEP, violations, ignored));
    let mut at = violations.at("step");
    let mut message = at.required(message)?;
    message.external_id = message.external_id.filter(|id| !id.is_empty());
    let guid = guid(&message.guid, StepId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let sent = SentFields::new("step".to_owned(), &STEP, mask, &message, Violations::new());
    STEP.list_sent(&sent.message, FieldUse::Creation, ignored);
    let Some(guid) = guid else {
        // It is not known which fields the step honors.
        violations.append(sent.check_step(&[]));
        return None;
    };
    Some(UpdateStep {
        guid,
        expected,
        new_subtask: TaskId::parse(&message.subtask_id).filter(|_| sent.selects("subtask_id")),
        edits_question: sent.selects("feedback_config"),
        edit: sent.with(violations),
    })
}

pub fn task(
    message: Option<v1::Task>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateTask<SentFields>> {
    let mask = Arc::new(Mask::parse(mask, &TASK, violations, ignored));
    let mut at = violations.at("task");
    let mut message = at.required(message)?;
    message.external_id = message.external_id.filter(|id| !id.is_empty());
    let guid = guid(&message.guid, TaskId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let published = message.published;
    let published = published.map_or(Some(Published::default()), Published::new);
    let sent = SentFields::new("task".to_owned(), &TASK, mask, &message, Violations::new());
    TASK.list_sent(&sent.message, FieldUse::Creation, ignored);
    let Some(guid) = guid else {
        violations.append(sent.check_task(&[]));
        return None;
    };
    Some(UpdateTask {
        guid,
        expected,
        published: published.filter(|_| sent.selects("published")),
        edit: sent.with(violations),
    })
}

impl SentFields {
    pub(super) fn new(
        path: String,
        fields: &'static ResourceFields,
        mask: Arc<Mask>,
        message: &impl Message,
        violations: Violations,
    ) -> Self {
        Self {
            path,
            fields,
            mask,
            message: message.encode_to_vec(),
            violations,
        }
    }

    /// Takes over the violations of the request.
    fn with(mut self, violations: &mut Violations) -> Self {
        self.violations = std::mem::take(violations);
        self
    }

    /// Whether the update changes a field.
    pub(super) fn selects(&self, field: &str) -> bool {
        self.mask.selects(field, || self.has(field))
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.is_sent(field, &self.message)
    }

    /// Lists the fields that were sent or named in the mask and that the step does not honor.
    pub fn list_ignored_by_step(&self, step: &Step, ignored: &mut Ignored) {
        self.list_ignored(not_honored_by_step(step), ignored);
    }

    /// Lists the fields that were sent or named in the mask and that the task does not honor.
    pub fn list_ignored_by_task(&self, task: &Task, ignored: &mut Ignored) {
        self.list_ignored(not_honored_by_task(task), ignored);
    }

    fn list_ignored(&self, not_honored: &[&'static str], ignored: &mut Ignored) {
        let not_honored = not_honored.iter().copied();
        ignored.add(not_honored.filter(|field| self.has(field) || self.mask.names(field)));
    }

    /// The message as it was sent.
    pub(super) fn message<M: Message + Default>(&self) -> Result<M> {
        M::decode(&self.message[..]).map_err(|_| undecodable())
    }

    /// An encoded task or step with the sent fields.
    pub(super) fn merged<M: Message + Default>(
        &self,
        stored: &[u8],
        not_honored: &[&str],
    ) -> Result<M> {
        let merged = self.mask.apply(stored, &self.message, not_honored);
        let message = merged.and_then(|bytes| M::decode(&bytes[..]).ok());
        message.ok_or_else(undecodable)
    }

    /// Whether the sent fields leave an encoded task or step as it is.
    pub(super) fn keep_all(&self, stored: &[u8], not_honored: &[&str]) -> bool {
        let is_valid = self.violations.is_empty();
        is_valid && self.mask.keeps_all(stored, &self.message, not_honored)
    }

    /// What `decode` returns, or all violations of the request. `languages`: number of languages after
    /// the update.
    pub(super) fn decode<T>(
        &self,
        languages: usize,
        decode: impl FnOnce(Field<'_>) -> Option<T>,
    ) -> Result<T> {
        let decoded = decode::all(|violations| {
            violations.append(self.violations.clone());
            let decoded = decode(violations.at(&self.path));
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
        let mut violations = self.violations.clone();
        if let Ok(sent) = self.merged(&[], not_honored) {
            check(sent, violations.at(&self.path));
        }
        violations
    }

    pub(super) fn check_step(&self, not_honored: &[&str]) -> Violations {
        self.check(not_honored, step::check)
    }

    pub(super) fn check_task(&self, not_honored: &[&str]) -> Violations {
        self.check(not_honored, task::check)
    }
}

fn undecodable() -> Error {
    Error::Internal("a sent task or step cannot be decoded".to_owned())
}

/// The number of languages after the update. If there are too many, `merged` keeps only those that were
/// sent, so that they are checked all the same. If too many were sent, they count as none.
pub(super) fn count_languages<T>(
    merged: &mut BTreeMap<String, T>,
    sent: impl FnOnce() -> Result<BTreeMap<String, T>>,
) -> Result<usize> {
    let languages = merged.len();
    if languages > MAX_LANGUAGES {
        *merged = sent()?;
        if merged.len() > MAX_LANGUAGES {
            return Ok(0);
        }
    }
    Ok(languages)
}

impl UpdatedFields<Step> for SentFields {
    type New = NewStep;

    fn violations(&self) -> Violations {
        self.check_step(TYPE_DEPENDENT)
    }

    fn apply(&self, before: &Step, target: Option<&ReferencedTask>) -> Result<NewStep> {
        let stored = encode::step(before.clone()).encode_to_vec();
        let mut merged: v1::Step = self.merged(&stored, not_honored_by_step(before))?;
        drop(stored);
        if let Some(target) = target.filter(|_| !self.selects("subtask_pid")) {
            merged.subtask_pid = Some(target.product.get());
        }
        // A missing task has no product.
        let stored = before.kind.subtask();
        let stored = stored.filter(|it| merged.subtask_id == it.task.to_string());
        let task_product = match target {
            Some(target) => Some(target.product),
            None => stored.map(|stored| stored.product),
        };
        let product = merged.subtask_pid.and_then(ProductId::new);
        let sent = || Ok(self.merged::<v1::Step>(&[], &[])?.translations);
        let languages = count_languages(&mut merged.translations, sent)?;
        let mut new = self.decode(languages, |mut at| {
            let new = step::of_task(merged, Some(before.task), &mut at);
            if let (Some(product), Some(task_product)) = (product, task_product) {
                at.check(|path, violations| {
                    check_subtask_product(product, task_product, path, violations);
                });
            }
            new
        })?;
        if !self.selects("body") {
            new.content.body.clone_from(&before.content.body);
        }
        Ok(new)
    }
}

impl UpdatedFields<Task> for SentFields {
    type New = NewTask;

    fn violations(&self) -> Violations {
        self.check_task(UNMANAGED_ONLY)
    }

    fn apply(&self, before: &Task, _: Option<&ReferencedTask>) -> Result<NewTask> {
        let stored = encode::task(before.clone()).encode_to_vec();
        let mut merged: v1::Task = self.merged(&stored, not_honored_by_task(before))?;
        let sent = || Ok(self.merged::<v1::Task>(&[], &[])?.translations);
        let languages = count_languages(&mut merged.translations, sent)?;
        self.decode(languages, |mut at| {
            if merged.roles.is_empty() {
                // A create without roles gives access to everyone.
                let description = "needs at least one access level";
                at.field("roles").refuse(Reason::FieldRequired, description);
            }
            task::new(merged, at)
        })
    }
}
