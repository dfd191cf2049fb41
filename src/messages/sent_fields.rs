//! Tasks and steps as they were sent in an update or a document. The selected fields are merged into
//! the stored task or step, and the result is decoded like a new one. The store does this after it has
//! read what is stored.

use std::{collections::BTreeMap, sync::Arc};

use prost::Message;
use prost_types::FieldMask;
use uuid::Uuid;

use super::{
    decode::{
        self, Field,
        field::{self, expected_etag, guid},
        step, task,
    },
    document_masks::DocumentMasks,
    encode,
    fields::{ResourceFields, STEP, TASK},
    ignored::Ignored,
    mask::Mask,
};
use crate::{
    domain::{
        Error, Result,
        decide::{SentFields, UpdateStep, UpdateTask},
        ids::{ProductId, StepId, TaskId},
        step::{NewStep, ReferencedTask, Step, StepContent, check_subtask_product},
        task::{NewTask, Published, Task, check_languages},
        text::Body,
        translation::{Language, MAX_LANGUAGES},
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

/// The fields that some types of steps do not honor.
const TYPE_DEPENDENT: &[&str] = &["subtask_id", "subtask_pid", "title"];
/// The fields that a managed task takes from its value, or does not have.
pub const UNMANAGED_ONLY: &[&str] = &["external_id", "name"];

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
    let subtask = TaskId::parse(&message.subtask_id);
    let mut step = SentStep::new(message, None, "step", mask, Violations::new());
    let Some(guid) = guid else {
        // It is not known which fields the step honors.
        violations.append(step.sent.check(&[], step::check));
        return None;
    };
    step.sent.violations = std::mem::take(violations);
    Some(UpdateStep {
        guid,
        expected,
        new_subtask: subtask.filter(|_| step.sent.selects("subtask_id")),
        edits_question: step.sent.selects("feedback_config"),
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
    let mut task = SentTask::new(message, TaskSource::Update, "task", mask, Violations::new());
    let Some(guid) = guid else {
        violations.append(task.sent.check(&[], task::check));
        return None;
    };
    task.sent.violations = std::mem::take(violations);
    Some(UpdateTask {
        guid,
        expected,
        published: published.filter(|_| task.sent.selects("published")),
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
    let source = TaskSource::Document { is_managed };
    let mask = Arc::clone(&masks.task);
    Box::new(SentTask::new(message, source, path, mask, violations))
}

/// The step of a document at this path. `violations` are those that were found in it already.
pub fn document_step(
    mut message: v1::Step,
    masks: &DocumentMasks,
    path: &str,
    mut violations: Violations,
) -> Box<dyn SentFields<Step, NewStep>> {
    let document = DocumentStepFields {
        bodies: Bodies::take(&mut message, violations.at(path)),
        resets_body: masks.step.selects("body", || false),
        step_type: message.r#type,
        product: message.product_id,
    };
    let mask = Arc::clone(&masks.step);
    let step = SentStep::new(message, Some(document), path, mask, violations);
    Box::new(step)
}

/// A task or step as it was sent.
#[derive(Debug)]
struct Sent {
    path: String,
    fields: &'static ResourceFields,
    mask: Arc<Mask>,
    /// It is encoded.
    message: Vec<u8>,
    /// The violations of the request that were found already.
    violations: Violations,
}

impl Sent {
    fn has(&self, field: &str) -> bool {
        self.fields.is_sent(field, &self.message)
    }

    /// Whether a field replaces what is stored.
    fn selects(&self, field: &str) -> bool {
        self.mask.selects(field, || self.has(field))
    }

    /// The message as it was sent.
    fn message<M: Message + Default>(&self) -> Result<M> {
        M::decode(&self.message[..]).map_err(|_| undecodable())
    }

    /// An encoded task or step with the sent fields.
    fn merged<M: Message + Default>(&self, stored: &[u8], not_honored: &[&str]) -> Result<M> {
        let merged = self.mask.apply(stored, &self.message, not_honored);
        let message = merged.and_then(|bytes| M::decode(&bytes[..]).ok());
        message.ok_or_else(undecodable)
    }

    /// Whether the sent fields leave an encoded task or step as it is.
    fn keep_all(&self, stored: &[u8], not_honored: &[&str]) -> bool {
        let is_valid = self.violations.is_empty();
        is_valid && self.mask.keeps_all(stored, &self.message, not_honored)
    }

    /// What `decode` returns, or all violations of the request. `languages`: number of languages
    /// afterwards.
    fn decode<T>(
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

    /// The fields that an update does not honor and that the mask names, or whose sent values differ from
    /// the stored ones.
    fn ignored(
        &self,
        not_honored: &[&'static str],
        stored: impl FnOnce() -> Vec<u8>,
    ) -> Vec<&'static str> {
        let mut ignored = self.fields.differing(&self.message, not_honored, stored);
        let named = not_honored.iter().copied();
        ignored.extend(named.filter(|field| self.mask.names(field)));
        ignored
    }
}

fn undecodable() -> Error {
    Error::Internal("a sent task or step cannot be decoded".to_owned())
}

/// The number of languages afterwards. If there are too many, `merged` keeps only those that were
/// sent, so that they are checked all the same. If too many were sent, they count as none.
fn count_languages<T>(
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

#[derive(Debug)]
struct SentTask {
    sent: Sent,
    source: TaskSource,
}

#[derive(Debug, PartialEq, Eq)]
enum TaskSource {
    Update,
    Document { is_managed: bool },
}

impl SentTask {
    fn new(
        mut message: v1::Task,
        source: TaskSource,
        path: &str,
        mask: Arc<Mask>,
        violations: Violations,
    ) -> Self {
        message.external_id = message.external_id.filter(|id| !id.is_empty());
        let sent = Sent {
            path: path.to_owned(),
            fields: &TASK,
            mask,
            message: message.encode_to_vec(),
            violations,
        };
        Self { sent, source }
    }

    /// A new task. A managed task gets a placeholder name and product; the planner replaces them.
    fn new_task(&self) -> Result<v1::Task> {
        let mut message: v1::Task = self.sent.message()?;
        if self.source == (TaskSource::Document { is_managed: true }) {
            message.name = "managed".to_owned();
            message.external_id = None;
            message.product_id.get_or_insert(1);
        }
        Ok(message)
    }
}

impl SentFields<Task, NewTask> for SentTask {
    fn violations(&self) -> Violations {
        self.sent.check(UNMANAGED_ONLY, task::check)
    }

    fn decode(&self, stored: Option<&Task>, _: Option<&ReferencedTask>) -> Result<NewTask> {
        let mut message = match stored {
            Some(task) => {
                let stored = encode::task(task.clone()).encode_to_vec();
                let is_managed = task.managed.is_some();
                let not_honored = if is_managed { UNMANAGED_ONLY } else { &[] };
                self.sent.merged(&stored, not_honored)?
            }
            None => self.new_task()?,
        };
        let sent = || Ok(self.sent.merged::<v1::Task>(&[], &[])?.translations);
        let languages = count_languages(&mut message.translations, sent)?;
        self.sent.decode(languages, |mut at| {
            if self.source == TaskSource::Update && message.roles.is_empty() {
                // A create without roles gives access to everyone.
                let description = "needs at least one access level";
                at.field("roles").refuse(Reason::FieldRequired, description);
            }
            task::new(message, at)
        })
    }

    fn ignored(&self, stored: &Task) -> Vec<&'static str> {
        let is_managed = stored.managed.is_some();
        if self.source == TaskSource::Update {
            let not_honored = if is_managed { UNMANAGED_ONLY } else { &[] };
            let encoded = || encode::task(stored.clone()).encode_to_vec();
            return self.sent.ignored(not_honored, encoded);
        }
        let sent: v1::Task = self.sent.message().unwrap_or_default();
        let has_other_name = !sent.name.is_empty() && sent.name != stored.name.as_str();
        let product = sent.product_id.unwrap_or(stored.product.get());
        differing([
            ("external_id", is_managed && sent.external_id.is_some()),
            ("name", is_managed && has_other_name),
            ("product_id", product != stored.product.get()),
        ])
    }
}

#[derive(Debug)]
struct SentStep {
    sent: Sent,
    has_subtask_id: bool,
    has_subtask_pid: bool,
    /// `None` in an update.
    document: Option<DocumentStepFields>,
}

/// What is kept of a step of a document.
#[derive(Debug)]
struct DocumentStepFields {
    bodies: Bodies,
    resets_body: bool,
    step_type: i32,
    product: Option<i64>,
}

impl SentStep {
    fn new(
        mut message: v1::Step,
        document: Option<DocumentStepFields>,
        path: &str,
        mask: Arc<Mask>,
        violations: Violations,
    ) -> Self {
        message.external_id = message.external_id.filter(|id| !id.is_empty());
        let sent = Sent {
            path: path.to_owned(),
            fields: &STEP,
            mask,
            message: message.encode_to_vec(),
            violations,
        };
        Self {
            sent,
            has_subtask_id: !message.subtask_id.is_empty(),
            has_subtask_pid: message.subtask_pid.is_some(),
            document,
        }
    }

    /// The fields that a stored step does not honor. A wiring step always refers to its managed task.
    fn not_honored_by(&self, stored: &Step) -> Vec<&'static str> {
        if stored.kind.subtask().is_none() {
            return vec!["subtask_id", "subtask_pid"];
        }
        let is_wiring = stored.link.is_some();
        let (keeps_id, keeps_pid) = match self.document {
            None => (is_wiring, is_wiring),
            // The product follows the task.
            Some(_) => (is_wiring && !self.has_subtask_id, !self.has_subtask_pid),
        };
        differing([
            ("title", true),
            ("subtask_id", keeps_id),
            ("subtask_pid", keeps_pid),
        ])
    }

    /// Sets the bodies of a step that was decoded without some of them.
    fn with_bodies(&self, mut new: NewStep, stored: Option<&Step>) -> NewStep {
        let stored = stored.map(|step| &step.content);
        match &self.document {
            Some(document) => {
                let resets = document.resets_body;
                document.bodies.set(&mut new.content, stored, resets);
            }
            None if !self.sent.selects("body") => {
                new.content.body = stored.and_then(|stored| stored.body.clone());
            }
            None => {}
        }
        new
    }
}

impl SentFields<Step, NewStep> for SentStep {
    fn violations(&self) -> Violations {
        self.sent.check(TYPE_DEPENDENT, step::check)
    }

    fn decode(&self, stored: Option<&Step>, target: Option<&ReferencedTask>) -> Result<NewStep> {
        let mut message: v1::Step = match stored {
            Some(step) => {
                let encoded = match self.document {
                    Some(_) => encode::step_without_bodies(step),
                    None => encode::step(step.clone()),
                };
                let (encoded, not_honored) = (encoded.encode_to_vec(), self.not_honored_by(step));
                if self.document.is_some() && self.sent.keep_all(&encoded, &not_honored) {
                    return Ok(self.with_bodies(step.to_new(), stored));
                }
                self.sent.merged(&encoded, &not_honored)?
            }
            None => self.sent.message()?,
        };
        if let Some(target) = target.filter(|_| !self.sent.selects("subtask_pid")) {
            message.subtask_pid = Some(target.product.get());
        }
        // A missing task has no product.
        let subtask = stored.filter(|_| self.document.is_none());
        let subtask = subtask.and_then(|step| step.kind.subtask());
        let subtask = subtask.filter(|it| message.subtask_id == it.task.to_string());
        let task_product = target
            .map(|target| target.product)
            .or(subtask.map(|subtask| subtask.product));
        let product = message.subtask_pid.and_then(ProductId::new);
        let sent = || Ok(self.sent.merged::<v1::Step>(&[], &[])?.translations);
        let languages = count_languages(&mut message.translations, sent)?;
        // The planner sets the task of a new step.
        let task = stored.map_or(TaskId(Uuid::nil()), |step| step.task);
        let new = self.sent.decode(languages, |mut at| {
            let new = step::for_task(message, Some(task), &mut at);
            if let (Some(product), Some(task_product)) = (product, task_product) {
                at.check(|path, violations| {
                    check_subtask_product(product, task_product, path, violations);
                });
            }
            new
        })?;
        Ok(self.with_bodies(new, stored))
    }

    fn ignored(&self, stored: &Step) -> Vec<&'static str> {
        let Some(document) = &self.document else {
            let encoded = || encode::step_without_bodies(stored).encode_to_vec();
            return self.sent.ignored(&self.not_honored_by(stored), encoded);
        };
        let step_type = stored.kind.step_type().number();
        let product = document.product.unwrap_or(stored.product.get());
        let is_other = stored.kind.subtask().is_none();
        differing([
            ("product_id", product != stored.product.get()),
            ("subtask_id", is_other && self.has_subtask_id),
            ("subtask_pid", is_other && self.has_subtask_pid),
            ("type", ![0, step_type].contains(&document.step_type)),
        ])
    }
}

fn differing<const N: usize>(fields: [(&'static str, bool); N]) -> Vec<&'static str> {
    let fields = fields.into_iter().filter(|(_, differs)| *differs);
    fields.map(|(field, _)| field).collect()
}

/// The bodies of a step as they were sent. They can have megabytes, so they are shared, and the
/// message is copied without them.
#[derive(Debug)]
struct Bodies {
    own: Option<Body>,
    translated: BTreeMap<Language, Option<Body>>,
}

impl Bodies {
    fn take(message: &mut v1::Step, mut at: Field<'_>) -> Self {
        let own = message.body.take();
        let own = own.and_then(|body| field::body(body, at.field("body")));
        let mut translated = BTreeMap::new();
        if message.translations.len() <= MAX_LANGUAGES {
            let mut at = at.field("translations");
            for (key, translation) in &mut message.translations {
                let body = translation.body.take();
                let body = body.and_then(|body| field::body(body, at.key(key).field("body")));
                translated.extend(Language::parse(key).map(|language| (language, body)));
            }
        }
        Self { own, translated }
    }

    /// Sets the sent bodies, and keeps the stored bodies that were not sent. `resets` is whether the
    /// body of the step itself is cleared instead.
    fn set(&self, content: &mut StepContent, stored: Option<&StepContent>, resets: bool) {
        let kept = stored.filter(|_| !resets).and_then(|it| it.body.as_ref());
        content.body = self.own.as_ref().or(kept).cloned();
        for (language, translation) in &mut content.translations {
            translation.body = match self.translated.get(language) {
                Some(sent) => sent.clone(),
                None => stored.and_then(|it| it.translations.get(language)?.body.clone()),
            };
        }
    }
}
