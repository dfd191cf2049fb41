//! Tasks and steps of documents. What is stored, with the fields that a document sets or resets, is
//! decoded like a new task or step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use prost::Message;
use prost_types::FieldMask;
use uuid::Uuid;

use super::{
    decode::{Field, field, step, task},
    encode,
    fields::{FieldUse, STEP, TASK},
    mask::{MAX_MASK_PATHS, Mask},
    update::{SentFields, TYPE_DEPENDENT, UNMANAGED_ONLY, count_languages, not_honored_by_task},
};
use crate::{
    domain::{
        Result,
        ids::TaskId,
        import::{AbsentFields, DocumentFields},
        step::{NewStep, Step, StepContent},
        task::{NewTask, Task},
        text::Body,
        translation::{Language, MAX_LANGUAGES},
        violation::{Reason, Violations},
    },
    proto::v1,
};

/// The masks of the tasks and steps of a document.
#[derive(Debug)]
pub struct DocumentMasks {
    task: Arc<Mask>,
    step: Arc<Mask>,
    /// Whether a question is cleared that the document leaves out.
    pub reset_question: bool,
}

impl DocumentMasks {
    /// The masks of documents without `reset_fields`.
    pub fn new(absent: AbsentFields) -> Self {
        Self::resetting(absent, BTreeSet::new(), BTreeSet::new())
    }

    /// Reads `reset_fields` of a request: paths such as `task.roles` and `steps.dependencies`.
    pub fn read(
        absent: AbsentFields,
        reset: Option<FieldMask>,
        violations: &mut Violations,
    ) -> Self {
        let FieldMask { paths } = reset.unwrap_or_default();
        let mut field = violations.at("reset_fields");
        if absent == AbsentFields::Reset && !paths.is_empty() {
            let description = "must be empty with ABSENT_FIELDS_RESET, which resets all fields";
            field.refuse(Reason::FieldInvalid, description);
            return Self::new(absent);
        }
        let mut list = field.field("paths");
        let (mut task, mut step) = (BTreeSet::new(), BTreeSet::new());
        if list.at_most(paths.len(), MAX_MASK_PATHS) {
            for (index, path) in paths.iter().enumerate() {
                let (fields, reset, name) = match path.split_once('.') {
                    Some(("task", name)) => (&TASK, &mut task, name),
                    Some(("steps", name)) => (&STEP, &mut step, name),
                    _ => {
                        let description = "must be `task.` or `steps.` and the name of a field";
                        list.index(index)
                            .refuse(Reason::MaskPathUnknown, description);
                        continue;
                    }
                };
                match fields.find(name) {
                    Some((name, FieldUse::Honored)) => {
                        reset.insert(name);
                    }
                    Some(_) => {
                        let description = "is not changed by an import, so it cannot be reset";
                        list.index(index).refuse(Reason::FieldInvalid, description);
                    }
                    None => {
                        let description = format!(
                            "names no field; it may be one of {}",
                            fields.honored().join(", ")
                        );
                        list.index(index)
                            .refuse(Reason::MaskPathUnknown, description);
                    }
                }
            }
        }
        Self::resetting(absent, task, step)
    }

    fn resetting(
        absent: AbsentFields,
        task: BTreeSet<&'static str>,
        step: BTreeSet<&'static str>,
    ) -> Self {
        let step = Mask::for_document(absent, step, &STEP);
        Self {
            reset_question: step.selects("feedback_config", || false),
            step: Arc::new(step),
            task: Arc::new(Mask::for_document(absent, task, &TASK)),
        }
    }
}

/// A task of a document.
#[derive(Debug)]
pub struct SentTask {
    sent: SentFields,
    /// Whether a value manages it. It takes its name from the value, and its product from its parent.
    is_managed: bool,
}

impl SentTask {
    /// `violations` are those that were found in it already.
    pub fn new(
        mut message: v1::Task,
        is_managed: bool,
        masks: &DocumentMasks,
        path: &str,
        violations: Violations,
    ) -> Self {
        message.external_id = message.external_id.filter(|id| !id.is_empty());
        let mask = Arc::clone(&masks.task);
        Self {
            sent: SentFields::new(path.to_owned(), &TASK, mask, &message, violations),
            is_managed,
        }
    }

    /// A new task. A managed task gets a placeholder name and product; the planner replaces them.
    fn new_task(&self) -> Result<v1::Task> {
        let mut message: v1::Task = self.sent.message()?;
        if self.is_managed {
            message.name = "managed".to_owned();
            message.external_id = None;
            message.product_id.get_or_insert(1);
        }
        Ok(message)
    }
}

impl DocumentFields<Task, NewTask> for SentTask {
    fn violations(&self) -> Violations {
        self.sent.check_task(UNMANAGED_ONLY)
    }

    fn decode(&self, stored: Option<&Task>) -> Result<NewTask> {
        let mut message = match stored {
            Some(task) => {
                let stored = encode::task(task.clone()).encode_to_vec();
                self.sent.merged(&stored, not_honored_by_task(task))?
            }
            None => self.new_task()?,
        };
        let sent = || Ok(self.sent.message::<v1::Task>()?.translations);
        let languages = count_languages(&mut message.translations, sent)?;
        self.sent.decode(languages, |at| task::new(message, at))
    }

    fn ignored(&self, after: &Task) -> Vec<&'static str> {
        let sent: v1::Task = self.sent.message().unwrap_or_default();
        let is_managed = after.managed.is_some();
        let has_other_name = !sent.name.is_empty() && sent.name != after.name.as_str();
        let product = sent.product_id.unwrap_or(after.product.get());
        differing([
            ("external_id", is_managed && sent.external_id.is_some()),
            ("name", is_managed && has_other_name),
            ("product_id", product != after.product.get()),
        ])
    }
}

/// A step of a document.
#[derive(Debug)]
pub struct SentStep {
    sent: SentFields,
    bodies: Bodies,
    resets_body: bool,
    step_type: i32,
    product: Option<i64>,
    has_subtask_id: bool,
    has_subtask_pid: bool,
}

impl SentStep {
    /// `violations` are those that were found in it already.
    pub fn new(
        mut message: v1::Step,
        masks: &DocumentMasks,
        path: &str,
        mut violations: Violations,
    ) -> Self {
        message.external_id = message.external_id.filter(|id| !id.is_empty());
        let bodies = Bodies::take(&mut message, violations.at(path));
        let mask = Arc::clone(&masks.step);
        Self {
            resets_body: mask.selects("body", || false),
            sent: SentFields::new(path.to_owned(), &STEP, mask, &message, violations),
            bodies,
            step_type: message.r#type,
            product: message.product_id,
            has_subtask_id: !message.subtask_id.is_empty(),
            has_subtask_pid: message.subtask_pid.is_some(),
        }
    }

    fn with_bodies(&self, mut new: NewStep, stored: Option<&Step>) -> NewStep {
        let stored = stored.map(|step| &step.content);
        self.bodies
            .set_bodies(&mut new.content, stored, self.resets_body);
        new
    }

    fn not_honored_by(&self, stored: &Step) -> Vec<&'static str> {
        if stored.kind.subtask().is_none() {
            return vec!["subtask_id", "subtask_pid"];
        }
        // A wiring step always refers to its managed task, and the product follows the task.
        differing([
            ("title", true),
            ("subtask_id", stored.link.is_some() && !self.has_subtask_id),
            ("subtask_pid", !self.has_subtask_pid),
        ])
    }
}

impl DocumentFields<Step, NewStep> for SentStep {
    fn violations(&self) -> Violations {
        self.sent.check_step(TYPE_DEPENDENT)
    }

    fn decode(&self, stored: Option<&Step>) -> Result<NewStep> {
        let mut message: v1::Step = match stored {
            Some(step) => {
                let stored = encode::step_without_bodies(step).encode_to_vec();
                let not_honored = self.not_honored_by(step);
                if self.sent.keep_all(&stored, &not_honored) {
                    return Ok(self.with_bodies(step.to_new(), Some(step)));
                }
                self.sent.merged(&stored, &not_honored)?
            }
            None => self.sent.message()?,
        };
        let sent = || Ok(self.sent.message::<v1::Step>()?.translations);
        let languages = count_languages(&mut message.translations, sent)?;
        // The planner sets the task.
        let task = Some(TaskId(Uuid::nil()));
        let new = self
            .sent
            .decode(languages, |mut at| step::of_task(message, task, &mut at))?;
        Ok(self.with_bodies(new, stored))
    }

    fn ignored(&self, after: &Step) -> Vec<&'static str> {
        let step_type = after.kind.step_type().number();
        let product = self.product.unwrap_or(after.product.get());
        let is_other = after.kind.subtask().is_none();
        differing([
            ("product_id", product != after.product.get()),
            ("subtask_id", is_other && self.has_subtask_id),
            ("subtask_pid", is_other && self.has_subtask_pid),
            ("type", self.step_type != 0 && self.step_type != step_type),
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
    fn set_bodies(&self, content: &mut StepContent, stored: Option<&StepContent>, resets: bool) {
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
