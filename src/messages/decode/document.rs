//! Documents of an import.
//!
//! A task or step of a document is decoded as a new one, as an update of an existing
//! one, or as both where only the store knows which it is. Violations of the other
//! reading do not count.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{
    Field, all,
    field::{optional_guid, sent_text},
    step, task,
};
use crate::{
    domain::{
        ids::{ProductId, StepId, TaskId},
        import::{
            AbsentFields, Document, DocumentPath, DocumentStep, DocumentTask, DocumentValue,
            without_indexes,
        },
        nesting::MAX_NESTED_DOCUMENTS,
        step::{NewStep, StepPatch, StepType},
        task::{MAX_TASK_STEPS, TaskPatch},
        text::Name,
        violation::{Reason, Violations},
    },
    messages::{ignored::Ignored, mask::Mask},
    proto::v1,
};

/// The fields of a step that are listed in `ignored_paths` when they are not honored.
/// The planner lists more; system fields are in every exported document and are not
/// listed.
const LISTED: [&str; 3] = [
    "subtask_id",
    "subtask_pid",
    "translations.feedback_config.linked",
];

/// The document of an import.
pub struct ImportDocument {
    /// The task to update; `None` creates one.
    pub target: Option<TaskId>,
    /// Whether the steps may exist: the task has an id, even a malformed one, or is missing.
    pub reimport: bool,
    pub document: Document,
}

/// Decodes the document of a request.
pub fn document(
    message: Option<v1::TaskDocument>,
    absent: AbsentFields,
    violations: &mut Violations,
    ignored: &mut BTreeSet<String>,
) -> Option<ImportDocument> {
    let mut field = Field::root("document", violations);
    let message = field.required(message)?;
    let root = field.field("task").required(message.task.as_ref());
    // `DocumentReader::task` refuses a malformed id.
    let target = root.and_then(|root| TaskId::parse(&root.guid));
    let reimport = root.is_none_or(|root| !root.guid.is_empty());
    let updates = reimport.then_some(match absent {
        AbsentFields::Keep => Mask::Document,
        AbsentFields::Reset => Mask::WholeDocument,
    });
    let document = read_root(message, target, updates, violations, ignored)?;
    Some(ImportDocument {
        target,
        reimport,
        document,
    })
}

/// Adds the violations in a document to those of its request, if the request has any. Otherwise
/// the planner adds them, as it knows which tasks and steps are stored.
pub fn add_violations(document: &Document, reimport: bool, violations: &mut Violations) {
    if !violations.is_empty() {
        document.add_violations(reimport, violations);
    }
}

/// Decodes a document that is not stored. It is checked like one that creates its task;
/// its task may have an id all the same, which only ties its parts together.
pub fn unstored(message: v1::TaskDocument, violations: &mut Violations) -> Option<Document> {
    let mut field = Field::root("document", violations);
    let root = field.field("task").required(message.task.as_ref());
    let id = root.and_then(|root| TaskId::parse(&root.guid));
    read_root(message, id, None, violations, &mut BTreeSet::new())
}

/// Decodes the outermost document. `id` is that of its task, if the task has a valid one, and
/// `updates` the mask of updates, if the task may exist.
fn read_root(
    message: v1::TaskDocument,
    id: Option<TaskId>,
    updates: Option<Mask>,
    violations: &mut Violations,
    ignored: &mut BTreeSet<String>,
) -> Option<Document> {
    // A task to be created has no id, but its steps may name one.
    let id = id.or_else(|| {
        let first = message.steps.first();
        first.and_then(|step| TaskId::parse(&step.task))
    });
    let without_task = message.task.is_none();
    let mut reader = DocumentReader {
        updates,
        violations,
        ignored,
    };
    let mut document = reader.document(message, "document".to_owned(), None, 1)?;
    document.task.guid = id;
    if without_task {
        // The missing task has been refused, so its fields are not.
        document.task.new = Err(Violations::new());
    }
    Some(document)
}

struct DocumentReader<'a> {
    /// The mask of updates if the document's task exists, so that its steps may exist, too.
    updates: Option<Mask>,
    violations: &'a mut Violations,
    ignored: &'a mut BTreeSet<String>,
}

impl DocumentReader<'_> {
    /// A document; `value` is the text of the value that manages its task.
    fn document(
        &mut self,
        message: v1::TaskDocument,
        path: String,
        value: Option<&str>,
        depth: usize,
    ) -> Option<Document> {
        let v1::TaskDocument { task, steps } = message;
        let mut field = Field::root(&path, self.violations);
        if depth > MAX_NESTED_DOCUMENTS {
            let description = format!("documents nest at most {MAX_NESTED_DOCUMENTS} deep");
            field.refuse(Reason::NestingTooDeep, description);
            return None;
        }
        if !field.field("steps").at_most(steps.len(), MAX_TASK_STEPS) {
            return None;
        }
        let task = self.task(task.unwrap_or_default(), &format!("{path}.task"), value);
        let steps = steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| self.step(step, format!("{path}.steps[{index}]"), depth))
            .collect();
        Some(Document { path, task, steps })
    }

    fn task(&mut self, mut message: v1::Task, path: &str, value: Option<&str>) -> DocumentTask {
        let mut field = Field::root(path, self.violations);
        let guid = optional_guid(&message.guid, TaskId::parse, field.field("guid"));
        let product = message.product_id.and_then(ProductId::new);
        if guid.is_none() {
            message.guid.clear();
        }
        let name = sent_text(message.name.clone());
        if let Some(text) = value {
            // A managed task takes name and product from its value and its parent, so
            // those of the document must not be refused, nor is the value refused twice.
            let name = Name::parse(text.to_owned());
            message.name = name.map_or_else(|_| "-".to_owned(), Name::into_string);
            message.product_id = message.product_id.or(Some(1));
        }
        let patch = match &self.updates {
            Some(mask) => task_patch(message.clone(), mask, path),
            None => TaskPatch::default(),
        };
        let new = if value.is_some() || self.updates.is_none() {
            all(|violations| {
                let field = Field::root(path, violations);
                task::new(message, field, &mut Ignored::default())
            })
        } else {
            Err(Violations::new())
        };
        DocumentTask {
            path: DocumentPath::Listed(path.to_owned()),
            guid,
            product,
            name,
            new,
            patch,
        }
    }

    fn step(&mut self, mut message: v1::Step, path: String, depth: usize) -> DocumentStep {
        let mut field = Field::root(&path, self.violations);
        let guid = optional_guid(&message.guid, StepId::parse, field.field("guid"));
        let values = self.values(&mut message.feedback_config, &path, depth);
        let updates = match message.guid.as_str() {
            "" => None,
            _ => self.updates.as_ref(),
        };
        if guid.is_none() {
            message.guid.clear();
        }
        let task = TaskId::parse(&message.task);
        let link = TaskId::parse(&message.link);
        let step_type = StepType::from_number(message.r#type);
        let product = message.product_id.and_then(ProductId::new);
        let title = (updates.is_some() || step_type == Some(StepType::Subtask))
            .then(|| sent_text(message.title.clone()))
            .flatten();
        let mut ignored = Ignored::default();
        let (new, patch) = match updates {
            Some(mask) => {
                // Only the outermost task is known to exist.
                let new = if depth > 1 && guid.is_some() {
                    new_step(message.clone(), &path, &mut Ignored::default())
                } else {
                    Err(Violations::new())
                };
                let patch = step_patch(message, mask, &path, &mut ignored);
                (new, Some(Box::new(patch)))
            }
            None => (new_step(message, &path, &mut ignored), None),
        };
        for field in ignored.into_fields() {
            if LISTED.contains(&field) {
                let step = without_indexes(&path);
                self.ignored.insert(format!("{step}.{field}"));
            }
        }
        DocumentStep {
            path,
            guid,
            task,
            link,
            step_type,
            product,
            title,
            new,
            patch,
            values,
        }
    }

    /// Takes the nested documents out of a step's `feedback_config`.
    fn values(
        &mut self,
        list: &mut [v1::FeedbackConfig],
        step: &str,
        depth: usize,
    ) -> Vec<DocumentValue> {
        let Some(config) = list.first_mut() else {
            return Vec::new();
        };
        let linked = config.linked.unwrap_or_default();
        let values = config.values.iter_mut().enumerate();
        values
            .map(|(index, value)| {
                let nested = value.task_json.take();
                let mut ids: Vec<TaskId> = TaskId::parse(&value.link).into_iter().collect();
                let path = format!("{step}.feedback_config[0].values[{index}].task_json");
                let document = match nested {
                    None => None,
                    // Nothing is created from it, so nothing in it is refused.
                    Some(_) if !linked => Some(Document::skipped(path)),
                    Some(nested) => self.document(*nested, path, Some(&value.value), depth + 1),
                };
                let named = document.as_ref().and_then(|document| document.task.guid);
                ids.extend(named);
                let document = document.map(Box::new);
                DocumentValue { ids, document }
            })
            .collect()
    }
}

fn new_step(
    mut message: v1::Step,
    path: &str,
    ignored: &mut Ignored,
) -> Result<Box<NewStep>, Violations> {
    // The step's task is that of the document, whatever was sent.
    message.task = Uuid::nil().to_string();
    all(|violations| step::new(message, Field::root(path, violations), ignored).map(Box::new))
}

fn step_patch(mut message: v1::Step, mask: &Mask, path: &str, ignored: &mut Ignored) -> StepPatch {
    if message.guid.is_empty() {
        // `DocumentReader::step` has refused a malformed id.
        message.guid = Uuid::nil().to_string();
    }
    let mut violations = Violations::new();
    let field = Field::root(path, &mut violations);
    let update = step::update(message, mask, field, ignored);
    let mut patch = update.map_or_else(StepPatch::default, |update| update.patch);
    patch.violations.append(violations);
    patch
}

fn task_patch(mut message: v1::Task, mask: &Mask, path: &str) -> TaskPatch {
    if message.guid.is_empty() {
        // The value that manages the task identifies it, or its id is malformed and refused.
        message.guid = Uuid::nil().to_string();
    }
    let mut violations = Violations::new();
    let field = Field::root(path, &mut violations);
    let update = task::update(message, mask, field, &mut Ignored::default());
    let mut patch = update.map_or_else(TaskPatch::default, |update| update.patch);
    patch.violations.append(violations);
    patch
}
