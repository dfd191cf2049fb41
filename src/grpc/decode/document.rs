//! Documents of an import.
//!
//! What a document says of a task or step is read as of something new, as of
//! something that exists, or as of both where only the store can tell which:
//! what is wrong with either counts only when that one is meant.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{at_most, dependencies, optional_guid, required, sent_text, step, step_patch, task};
use crate::{
    domain::{
        ids::{ProductId, StepId, TaskId},
        import::{DEPTH_MAX, Document, DocumentStep, DocumentTask, DocumentValue, STEPS_MAX, Says},
        patch::Edit,
        step::{NewStep, StepPatch, StepType},
        task::TaskPatch,
        violation::{Path, Reason, Violations},
    },
    grpc::{ignored::Ignored, mask::Mask},
    proto::v1,
};

/// Fields of a step whose receipt is due; everything else that is not honored is
/// either the system's, as every exported document carries it, or found out
/// while planning.
const LISTED: [&str; 3] = [
    "subtask_id",
    "subtask_pid",
    "translations.feedback_config.linked",
];

/// A document, and what it is for.
pub struct Sent {
    /// The task to bring to the document's state; `None` makes one.
    pub target: Option<TaskId>,
    /// The document.
    pub document: Document,
}

/// The document of a request.
pub fn sent(
    message: Option<v1::TaskDocument>,
    faults: &mut Violations,
    ignored: &mut BTreeSet<String>,
) -> Option<Sent> {
    let path = Path::root("document");
    let message = required(message, &path, faults)?;
    let root = required(message.task.as_ref(), &path.field("task"), faults)?;
    // A malformed id is noted where the task is read.
    let target = TaskId::parse(&root.guid);
    // A task that is to be made has no id of its own here, but its steps tell
    // by which one the document knows it.
    let alias = target.or_else(|| {
        let first = message.steps.first();
        first.and_then(|step| TaskId::parse(&step.task))
    });
    let mut reader = Reader {
        reimport: target.is_some(),
        faults,
        ignored,
    };
    let mut document = reader.document(message, "document".to_owned(), None, 1)?;
    document.task.guid = alias;
    Some(Sent { target, document })
}

struct Reader<'a> {
    /// Whether the document's task exists, and its steps may.
    reimport: bool,
    faults: &'a mut Violations,
    ignored: &'a mut BTreeSet<String>,
}

/// Which readings of something are needed.
#[derive(Clone, Copy)]
struct Readings {
    new: bool,
    patch: bool,
}

impl Reader<'_> {
    /// A document; `value` is what the value that manages its task shows.
    fn document(
        &mut self,
        message: v1::TaskDocument,
        path: String,
        value: Option<&str>,
        depth: usize,
    ) -> Option<Document> {
        let v1::TaskDocument { task, steps } = message;
        let at = Path::root(&path);
        if depth > DEPTH_MAX {
            let description = format!("documents nest at most {DEPTH_MAX} deep");
            self.faults.add(&at, Reason::NestingTooDeep, description);
            return None;
        }
        if !at_most(steps.len(), STEPS_MAX, &at.field("steps"), self.faults) {
            return None;
        }
        let task = self.task(task.unwrap_or_default(), &at.field("task"), value);
        let steps = steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| self.step(step, format!("{path}.steps[{index}]"), depth))
            .collect();
        Some(Document { path, task, steps })
    }

    fn task(&mut self, mut message: v1::Task, at: &Path<'_>, value: Option<&str>) -> DocumentTask {
        let guid = optional_guid(&message.guid, TaskId::parse, &at.field("guid"), self.faults);
        let product = message.product_id.and_then(ProductId::new);
        let name = sent_text(message.name.clone());
        let needed = Readings {
            new: value.is_some() || !self.reimport,
            patch: self.reimport,
        };
        if let Some(text) = value {
            // A managed task has its name and product from elsewhere; whatever
            // stands here must not fail for it.
            let text = if text.trim().is_empty() { "-" } else { text };
            text.clone_into(&mut message.name);
            message.product_id = message.product_id.or(Some(1));
        }
        let patch = if needed.patch {
            task_patch(message.clone(), at)
        } else {
            TaskPatch::default()
        };
        let new = if needed.new {
            read(|faults| task::new(message, at, faults, &mut Ignored::of("task")))
        } else {
            Err(Violations::new())
        };
        DocumentTask {
            guid,
            product,
            name,
            says: Says { new, patch },
        }
    }

    fn step(&mut self, mut message: v1::Step, path: String, depth: usize) -> DocumentStep {
        let at = Path::root(&path);
        let guid = optional_guid(&message.guid, StepId::parse, &at.field("guid"), self.faults);
        let values = self.values(&mut message.feedback_config, &at, depth);
        let may_exist = self.reimport && guid.is_some();
        let needed = Readings {
            // Only of the outermost task is it known that it exists.
            new: !may_exist || depth > 1,
            patch: may_exist,
        };
        let task = TaskId::parse(&message.task);
        let link = TaskId::parse(&message.link);
        let step_type = StepType::from_number(message.r#type);
        let product = message.product_id.and_then(ProductId::new);
        let title = sent_text(message.title.clone());
        let mut ignored = Ignored::of("step");
        let says = match needed {
            Readings { new, patch: false } => Says {
                new: if new {
                    new_step(message, &at, &mut ignored)
                } else {
                    Err(Violations::new())
                },
                patch: StepPatch::default(),
            },
            Readings { new, patch: true } => Says {
                new: if new {
                    new_step(message.clone(), &at, &mut Ignored::of("step"))
                } else {
                    Err(Violations::new())
                },
                patch: changed_step(message, &at, &mut ignored),
            },
        };
        self.list(ignored, &path);
        DocumentStep {
            path,
            guid,
            task,
            link,
            step_type,
            product,
            title,
            says,
            values,
        }
    }

    /// Takes the nested documents out of a question.
    fn values(
        &mut self,
        list: &mut [v1::FeedbackConfig],
        at: &Path<'_>,
        depth: usize,
    ) -> Vec<DocumentValue> {
        let Some(config) = list.first_mut() else {
            return Vec::new();
        };
        let linked = config.linked.unwrap_or_default();
        let path = at.field("feedback_config");
        let path = path.index(0);
        let path = path.field("values");
        let values = config.values.iter_mut().enumerate();
        values
            .map(|(index, value)| {
                let nested = value.task_json.take();
                let mut aliases: Vec<TaskId> = TaskId::parse(&value.link).into_iter().collect();
                let path = path.index(index);
                let path = path.field("task_json").to_string();
                let document = match nested {
                    None => None,
                    // Nothing is made of it, so nothing can be wrong with it.
                    Some(_) if !linked => Some(Document::unread(path)),
                    Some(nested) => self.document(nested, path, Some(&value.value), depth + 1),
                };
                let named = document.as_ref().and_then(|document| document.task.guid);
                aliases.extend(named);
                DocumentValue { aliases, document }
            })
            .collect()
    }

    /// Lists what has to be listed of a step.
    fn list(&mut self, ignored: Ignored, path: &str) {
        for field in ignored.into_fields() {
            if LISTED.contains(&field) {
                let plain = crate::domain::import::without_indexes(path);
                self.ignored.insert(format!("{plain}.{field}"));
            }
        }
    }
}

/// Reads something new, or what is wrong with it.
fn read<T>(decode: impl FnOnce(&mut Violations) -> Option<T>) -> Result<T, Violations> {
    let mut faults = Violations::new();
    match decode(&mut faults) {
        Some(value) if faults.is_empty() => Ok(value),
        Some(_) | None => Err(faults),
    }
}

fn new_step(
    mut message: v1::Step,
    at: &Path<'_>,
    ignored: &mut Ignored,
) -> Result<NewStep, Violations> {
    // Its task is the document's, whatever stands here.
    message.task = Uuid::nil().to_string();
    read(|faults| step::new(message, at, faults, ignored))
}

/// What a document says of an existing step: like an update without a mask, but
/// that the short form of dependencies counts.
fn changed_step(mut message: v1::Step, at: &Path<'_>, ignored: &mut Ignored) -> StepPatch {
    let mut faults = Violations::new();
    let group = dependencies::with_shorthand(
        message.dependencies.take(),
        message.dependency_shorthand.take(),
        at,
        &mut faults,
    );
    let update = step_patch::update(message, &Mask::Populated, at, &mut faults, ignored);
    let mut patch = update.map_or_else(StepPatch::default, |update| update.patch);
    patch.faults.append(faults);
    if let Some(group) = group {
        patch.dependencies = Edit::Set(group);
    }
    patch
}

/// What a document says of an existing task, in the same way.
fn task_patch(mut message: v1::Task, at: &Path<'_>) -> TaskPatch {
    let mut faults = Violations::new();
    let group = dependencies::with_shorthand(
        message.dependencies.take(),
        message.dependency_shorthand.take(),
        at,
        &mut faults,
    );
    if message.guid.is_empty() {
        // Which task it is, its value says.
        message.guid = Uuid::nil().to_string();
    }
    let ignored = &mut Ignored::of("task");
    let update = task::update(message, &Mask::Populated, at, &mut faults, ignored);
    let mut patch = update.map_or_else(TaskPatch::default, |update| update.patch);
    patch.faults.append(faults);
    if let Some(group) = group {
        patch.dependencies = Edit::Set(group);
    }
    patch
}
