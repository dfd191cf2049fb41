//! Documents of requests. Fields that are not sent may keep their stored values, so the document of
//! a stored guide is decoded after reading that guide.

use std::collections::BTreeMap;

use super::{
    bodies::Bodies,
    decode::{
        Field,
        field::{expected_etag, optional_guid},
        step,
    },
    document_masks::DocumentMasks,
};
use crate::{
    domain::{
        external_id::ExternalId,
        ids::{StepId, TaskId},
        import::{
            AbsentFields, Document, GuideDocument, ImportDocument, ImportTarget, SubtaskIds,
            TaskTree,
        },
        nesting::MAX_NESTED_DOCUMENTS,
        task::MAX_TASK_STEPS,
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

mod decoder;

use decoder::{DocumentDecoder, Stored};

/// A document as it was sent.
#[derive(Debug)]
pub struct SentDocument {
    /// The task that the import updates.
    pub target: ImportTarget,
    /// Whether its task and steps may already be stored: the task has an id, even a malformed one,
    /// or is found by its external id.
    pub reimport: bool,
    /// Whether steps without an id are found by their external ids.
    match_external_ids: bool,
    masks: DocumentMasks,
    root: SentTree,
    bodies: Bodies,
}

/// A task of a document with its steps.
#[derive(Debug)]
struct SentTree {
    task: Option<v1::Task>,
    steps: Vec<SentStep>,
}

/// A step of a document.
#[derive(Debug)]
struct SentStep {
    /// It has numbers instead of bodies, and no nested documents.
    message: v1::Step,
    /// The nested documents, one for each value of the question.
    nested: Vec<Option<SentTree>>,
}

/// Decodes a document that is not stored, and reports all its violations. Ids in it only connect
/// its parts.
pub fn decode_unstored(message: v1::TaskDocument) -> Document {
    let sent = SentDocument::unstored(message);
    let mut violations = sent.structure_violations();
    let document = sent.decode(None);
    violations.append(document.violations);
    Document {
        violations,
        ..document
    }
}

impl SentDocument {
    /// Decodes the document of an import.
    pub fn import(
        message: Option<v1::TaskDocument>,
        masks: DocumentMasks,
        match_external_ids: bool,
        violations: &mut Violations,
    ) -> Option<Self> {
        let message = violations.at("document").required(message)?;
        let root = message.task.as_ref();
        let has_id = root.is_some_and(|root| !root.guid.is_empty());
        let external_id = root
            .filter(|_| match_external_ids && !has_id)
            .and_then(|root| ExternalId::parse(root.external_id().to_owned()).ok());
        let reimport = has_id || external_id.is_some();
        let target = match (root.and_then(|root| TaskId::parse(&root.guid)), external_id) {
            (Some(id), _) => ImportTarget::Id(id),
            (None, Some(id)) => ImportTarget::ExternalId(id),
            (None, None) => ImportTarget::New,
        };
        Some(Self {
            target,
            reimport,
            match_external_ids,
            ..Self::new(message, masks)
        })
    }

    /// A document that is checked as if it created its task.
    pub fn unstored(message: v1::TaskDocument) -> Self {
        Self::new(message, DocumentMasks::new(AbsentFields::Keep))
    }

    fn new(message: v1::TaskDocument, masks: DocumentMasks) -> Self {
        let mut bodies = Bodies::default();
        Self {
            target: ImportTarget::New,
            reimport: false,
            match_external_ids: false,
            masks,
            root: SentTree::new(message, &mut bodies),
            bodies,
        }
    }

    /// The document for the store. If the request or the structure of the document is invalid, adds
    /// all violations that do not depend on stored data, and returns `None`. Otherwise, the plan of
    /// the import adds the violations of fields, together with its own.
    pub fn into_checked(self, violations: &mut Violations) -> Option<ImportDocument> {
        if !self.reimport {
            let document = self.decode_new(violations)?;
            return Some(ImportDocument::Decoded(Box::new(document)));
        }
        violations.append(self.structure_violations());
        if violations.is_empty() {
            return Some(ImportDocument::Undecoded(Box::new(self)));
        }
        violations.append(self.decode_against(Stored::Unknown).violations);
        None
    }

    /// The same, for a document that creates its task.
    pub fn decode_new(&self, violations: &mut Violations) -> Option<Document> {
        violations.append(self.structure_violations());
        let document = self.decode(None);
        if violations.is_empty() {
            return Some(document);
        }
        violations.append(document.violations);
        None
    }

    /// The ids of the tasks to which subtask steps refer.
    pub fn subtasks(&self) -> SubtaskIds {
        let mut subtasks = SubtaskIds::default();
        let mut trees = vec![&self.root];
        while let Some(tree) = trees.pop() {
            for step in &tree.steps {
                subtasks.add(step::subtask(&step.message));
                trees.extend(step.nested.iter().flatten());
            }
        }
        subtasks
    }

    /// The violations of ids, nesting, and numbers of elements.
    fn structure_violations(&self) -> Violations {
        let mut violations = Violations::new();
        let mut at = violations.at("document");
        at.field("task").required(self.root.task.as_ref());
        self.check_structure(&self.root, 1, at);
        violations
    }

    /// Checks a task with its steps, at a depth of nested documents.
    fn check_structure(&self, tree: &SentTree, depth: usize, mut at: Field<'_>) {
        if depth > MAX_NESTED_DOCUMENTS {
            let description = format!("documents nest at most {MAX_NESTED_DOCUMENTS} deep");
            at.refuse(Reason::NestingTooDeep, description);
            return;
        }
        if !at.field("steps").at_most(tree.steps.len(), MAX_TASK_STEPS) {
            return;
        }
        if let Some(task) = &tree.task {
            let mut at = at.field("task");
            optional_guid(&task.guid, TaskId::parse, at.field("guid"));
            if self.reimport {
                expected_etag(&task.etag, at.field("etag"));
            }
        }
        let mut list = at.field("steps");
        let mut external_ids = BTreeMap::new();
        for (index, SentStep { message, nested }) in tree.steps.iter().enumerate() {
            let external_id = ExternalId::parse(message.external_id().to_owned()).ok();
            let may_be_stored =
                !message.guid.is_empty() || (self.match_external_ids && external_id.is_some());
            let equal = external_id.and_then(|id| external_ids.insert(id, index));
            if let Some(other) = equal {
                let path = |list: &Path<'_>| list.index(other).field("external_id").to_string();
                let description = format!("equals {}", list.check(|list, _| path(list)));
                let mut at = list.index(index);
                at.field("external_id")
                    .refuse(Reason::FieldInvalid, description);
            }
            let mut at = list.index(index);
            optional_guid(&message.guid, StepId::parse, at.field("guid"));
            if self.reimport && may_be_stored {
                expected_etag(&message.etag, at.field("etag"));
            }
            let mut config = at.field("feedback_config");
            let mut config = config.index(0);
            let mut values = config.field("values");
            // A value that is not linked creates nothing, so its document is not checked.
            for (index, nested) in nested.iter().enumerate().filter(|_| is_linked(message)) {
                if let Some(tree) = nested {
                    let mut value = values.index(index);
                    self.check_structure(tree, depth + 1, value.field("task_json"));
                }
            }
        }
    }

    fn decode_against(&self, stored: Stored<'_>) -> Document {
        let mut decoder = DocumentDecoder::new(self);
        let document = decoder.document(&self.root, "document", stored, None);
        decoder.finish(document)
    }
}

impl GuideDocument for SentDocument {
    fn decode(&self, stored: Option<&TaskTree>) -> Document {
        self.decode_against(stored.map_or(Stored::Nothing, Stored::Guide))
    }
}

/// Whether the values of its question manage tasks.
fn is_linked(step: &v1::Step) -> bool {
    let question = step.feedback_config.first();
    question.is_some_and(|it| it.linked == Some(true))
}

impl SentTree {
    /// Takes bodies and nested documents out of the messages. Empty external ids count as not sent.
    fn new(message: v1::TaskDocument, bodies: &mut Bodies) -> Self {
        let v1::TaskDocument { mut task, steps } = message;
        if let Some(task) = &mut task {
            task.external_id.take_if(|id| id.is_empty());
        }
        let steps = steps.into_iter().map(|mut message| {
            bodies.take_from(&mut message);
            step::clear_empty_ids(&mut message);
            let question = message.feedback_config.first_mut();
            let values = question.map(|it| &mut it.values).into_iter().flatten();
            let nested = values.map(|value| value.task_json.take());
            let nested = nested.map(|nested| nested.map(|it| Self::new(*it, bodies)));
            SentStep {
                nested: nested.collect(),
                message,
            }
        });
        Self {
            steps: steps.collect(),
            task,
        }
    }
}
