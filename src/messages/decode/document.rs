//! Decodes the structure of a document: ids, nesting, references. The planner decodes the fields of
//! tasks and steps, because it knows which of them are stored.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{
    field::{expected_etag, optional_guid, sent_text},
    step,
};
use crate::{
    domain::{
        external_id::ExternalId,
        ids::{StepId, TaskId},
        import::{
            AbsentFields, Document, DocumentStep, DocumentTask, DocumentValue, ImportTarget,
            without_indexes,
        },
        nesting::MAX_NESTED_DOCUMENTS,
        step::StepType,
        task::MAX_TASK_STEPS,
        violation::{Reason, Violations},
    },
    messages::{
        document_masks::DocumentMasks,
        sent_fields::{document_step, document_task},
    },
    proto::v1,
};

pub struct ImportDocument {
    pub target: ImportTarget,
    /// Whether the steps may exist: the task has an id, even a malformed one, or is missing, or is
    /// found by its external id.
    pub reimport: bool,
    pub document: Document,
}

/// Decodes the document of a request.
pub fn document(
    message: Option<v1::TaskDocument>,
    masks: &DocumentMasks,
    match_external_ids: bool,
    violations: &mut Violations,
    ignored: &mut BTreeSet<String>,
) -> Option<ImportDocument> {
    let message = violations.at("document").required(message)?;
    let root = message.task.as_ref();
    let has_id = root.is_none_or(|root| !root.guid.is_empty());
    let external_id = root
        .filter(|_| match_external_ids && !has_id)
        .and_then(|root| ExternalId::parse(root.external_id().to_owned()).ok());
    let reimport = has_id || external_id.is_some();
    let reader = DocumentReader {
        reimport,
        match_external_ids,
        masks,
        violations,
        ignored,
    };
    let (id, document) = reader.root(message)?;
    let target = match (id, external_id) {
        (Some(id), _) => ImportTarget::Id(id),
        (None, Some(id)) => ImportTarget::ExternalId(id),
        (None, None) => ImportTarget::New,
    };
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
    let reader = DocumentReader {
        reimport: false,
        match_external_ids: false,
        masks: &DocumentMasks::new(AbsentFields::Keep),
        violations,
        ignored: &mut BTreeSet::new(),
    };
    let (_, document) = reader.root(message)?;
    Some(document)
}

struct DocumentReader<'a> {
    /// Whether the outermost task may exist, and so the steps that have an id.
    reimport: bool,
    /// Whether steps without an id are found by their external ids.
    match_external_ids: bool,
    masks: &'a DocumentMasks,
    violations: &'a mut Violations,
    ignored: &'a mut BTreeSet<String>,
}

impl DocumentReader<'_> {
    /// Decodes the outermost document. Returns the id of its task, too, if it has a valid one.
    fn root(mut self, message: v1::TaskDocument) -> Option<(Option<TaskId>, Document)> {
        let mut field = self.violations.at("document");
        let task = field.field("task").required(message.task.as_ref());
        let has_task = task.is_some();
        // `Self::task` refuses a malformed id.
        let id = task.and_then(|task| TaskId::parse(&task.guid));
        // A task to be created has no id, but its steps may name one.
        let first = message.steps.first();
        let named = id.or_else(|| TaskId::parse(&first?.task));
        let mut document = self.document(message, "document".to_owned(), 1)?;
        document.task.guid = named;
        if !has_task {
            // The missing task has been refused, so its fields are not.
            document.task.fields = None;
        }
        Some((id, document))
    }

    fn document(
        &mut self,
        message: v1::TaskDocument,
        path: String,
        depth: usize,
    ) -> Option<Document> {
        let steps = message.steps;
        let mut field = self.violations.at(&path);
        if depth > MAX_NESTED_DOCUMENTS {
            let description = format!("documents nest at most {MAX_NESTED_DOCUMENTS} deep");
            field.refuse(Reason::NestingTooDeep, description);
            return None;
        }
        if !field.field("steps").at_most(steps.len(), MAX_TASK_STEPS) {
            return None;
        }
        let (task, is_managed) = (message.task.unwrap_or_default(), depth > 1);
        let task = self.task(task, format!("{path}.task"), is_managed);
        let external_ids: Vec<Option<ExternalId>> = steps.iter().map(external_id).collect();
        let steps: Vec<DocumentStep> = steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| self.step(step, format!("{path}.steps[{index}]"), depth))
            .collect();
        self.refuse_equal(&external_ids, &steps);
        Some(Document { path, task, steps })
    }

    fn refuse_equal(&mut self, external_ids: &[Option<ExternalId>], steps: &[DocumentStep]) {
        let mut first: BTreeMap<&ExternalId, &str> = BTreeMap::new();
        for (id, step) in external_ids.iter().zip(steps) {
            if let Some(id) = id
                && let Some(other) = first.insert(id, &step.path)
            {
                let description = format!("equals {other}.external_id");
                let mut field = self.violations.at(&step.path);
                let mut field = field.field("external_id");
                field.refuse(Reason::FieldInvalid, description);
            }
        }
    }

    fn task(&mut self, message: v1::Task, path: String, is_managed: bool) -> DocumentTask {
        let mut field = self.violations.at(&path);
        let guid = optional_guid(&message.guid, TaskId::parse, field.field("guid"));
        let mut violations = Violations::new();
        if self.reimport {
            expected_etag(&message.etag, violations.at(&path).field("etag"));
        }
        DocumentTask {
            guid,
            fields: Some(document_task(
                message, is_managed, self.masks, &path, violations,
            )),
            path,
        }
    }

    fn step(&mut self, mut message: v1::Step, path: String, depth: usize) -> DocumentStep {
        let has_id = self.reimport && !message.guid.is_empty();
        let is_matched = self.match_external_ids && message.guid.is_empty();
        let matched_id = external_id(&message).filter(|_| is_matched);
        let may_be_stored = has_id || (self.reimport && matched_id.is_some());
        let mut field = self.violations.at(&path);
        let guid = optional_guid(&message.guid, StepId::parse, field.field("guid"));
        let values = self.values(&mut message.feedback_config, &path, depth);
        let translations = message.translations.values();
        let mut translated = translations.flat_map(|it| &it.feedback_config);
        if translated.any(|config| config.linked.is_some()) {
            self.ignore(&path, "translations.feedback_config.linked");
        }
        let mut violations = Violations::new();
        if may_be_stored {
            expected_etag(&message.etag, violations.at(&path).field("etag"));
        }
        let is_subtask = message.r#type() == v1::StepType::Subtask;
        let title = (may_be_stored || is_subtask).then(|| sent_text(message.title.clone()));
        DocumentStep {
            // A malformed id is refused; its step is checked like a stored one.
            guid: guid.or_else(|| has_id.then_some(StepId(Uuid::nil()))),
            matched_id,
            task: TaskId::parse(&message.task),
            link: TaskId::parse(&message.link),
            step_type: StepType::from_repr(message.r#type),
            subtask: step::subtask(&message),
            title: title.flatten(),
            edits_question: (self.masks.step)
                .selects("feedback_config", || !message.feedback_config.is_empty()),
            values,
            fields: document_step(message, self.masks, &path, violations),
            path,
        }
    }

    /// Lists a field of a step that is not honored.
    fn ignore(&mut self, step: &str, field: &str) {
        let step = without_indexes(step);
        self.ignored.insert(format!("{step}.{field}"));
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
        let decoded = values.map(|(index, value)| {
            let nested = value.task_json.take();
            if nested.is_some() && !linked {
                self.ignore(step, "feedback_config.values.task_json");
            }
            let path = format!("{step}.feedback_config[0].values[{index}].task_json");
            // Nothing is created of a value that is not linked, so nothing of it is refused.
            let nested = nested.filter(|_| linked);
            let document = nested.and_then(|nested| self.document(*nested, path, depth + 1));
            let named = document.as_ref().and_then(|document| document.task.guid);
            DocumentValue {
                ids: TaskId::parse(&value.link)
                    .into_iter()
                    .chain(named)
                    .collect(),
                document: document.map(Box::new),
            }
        });
        decoded.collect()
    }
}

fn external_id(step: &v1::Step) -> Option<ExternalId> {
    ExternalId::parse(step.external_id().to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, collections::BTreeMap};

    use serde_json::json;

    use super::*;
    use crate::{
        domain::{
            Error,
            decide::WriteContext,
            ids::AccountId,
            import::{Absent, ImportContext, plan},
            time::Timestamp,
        },
        messages::message_json::{descriptor, from_json},
    };

    thread_local! {
        static IDS: Cell<usize> = const { Cell::new(0) };
    }

    fn counted_id() -> Uuid {
        IDS.set(IDS.get() + 1);
        Uuid::now_v7()
    }

    #[test]
    fn tasks_beyond_the_limit_of_steps_are_not_planned() {
        let values = (0..999).map(|key| json!({"key": key.to_string(), "value": "A"}));
        let observation = json!({
            "type": "STEP_TYPE_OBSERVATION",
            "product_id": 1,
            "title": "What is it?",
            "feedback_config": [{
                "name": "it",
                "type": "enum",
                "linked": true,
                "values": values.collect::<Vec<_>>(),
            }],
        });
        let guide = json!({
            "task": {"name": "Guide", "product_id": 1},
            "steps": vec![observation; 100],
        });
        let message = descriptor("TaskDocument").and_then(|it| from_json(it, &guide));
        let message = message.expect("a document");
        let document = unstored(message, &mut Violations::new()).expect("a document");
        let write = WriteContext {
            account: AccountId::parse("42").expect("an account"),
            subject: String::new(),
            now: Timestamp(1),
            new_id: counted_id,
            max_message_bytes: 1 << 20,
            automatic_revisions: 0,
            keeps_deleted_tasks: false,
        };
        let planned = plan(
            &document,
            Absent::DEFAULT,
            ImportContext::for_new_guide(&write, &BTreeMap::new()),
        );
        assert!(matches!(planned, Err(Error::Invalid(_))));
        // A task with 100 steps, and a task and a step for each value up to the limit.
        assert_eq!(IDS.get(), 1 + 100 + 2 * MAX_TASK_STEPS);
    }
}
