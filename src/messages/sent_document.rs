//! Documents of requests. They are decoded against the guide that is stored, because fields that are not
//! sent may be kept.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use serde_json::Map;
use uuid::Uuid;

use super::{
    bodies::Bodies,
    decode::{
        Field,
        field::{expected_etag, optional_guid, sent_text},
        step, task,
    },
    document_masks::DocumentMasks,
    encode,
    managed_documents::{all_steps, for_each_step_mut},
    update::{
        SUBTASK, SUBTASK_EXTERNAL_ID, TYPE_DEPENDENT, UNMANAGED_ONLY, decode_selected,
        unmanaged_only,
    },
};
use crate::{
    domain::{
        external_id::ExternalId,
        ids::{ProductId, StepId, TaskId},
        import::{
            AbsentFields, Document, DocumentStep, DocumentTask, DocumentValue, GuideDocument,
            ImportTarget, TaskTree, without_indexes,
        },
        nesting::MAX_NESTED_DOCUMENTS,
        step::{NewStep, Step},
        task::{MAX_TASK_STEPS, NewTask, TOO_MANY_STEPS},
        time::Timestamp,
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

/// A document as it was sent, checked for its structure: ids, nesting, numbers of elements.
#[derive(Debug)]
pub struct SentDocument {
    /// The task that it is imported to.
    pub target: ImportTarget,
    /// Whether the steps may exist: the task has an id, even a malformed one, or is missing, or is
    /// found by its external id.
    pub reimport: bool,
    /// Whether steps without an id are found by their external ids.
    match_external_ids: bool,
    masks: DocumentMasks,
    /// It has numbers in place of bodies.
    message: v1::TaskDocument,
    bodies: Bodies,
}

impl SentDocument {
    /// Reads the document of an import.
    pub fn import(
        message: Option<v1::TaskDocument>,
        masks: DocumentMasks,
        match_external_ids: bool,
        violations: &mut Violations,
    ) -> Option<Self> {
        let message = violations.at("document").required(message)?;
        let root = message.task.as_ref();
        let has_id = root.is_none_or(|root| !root.guid.is_empty());
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

    /// A document that is not stored. It is checked like one that creates its task; its task may have an
    /// id all the same, which only ties its parts together.
    pub fn unstored(message: v1::TaskDocument) -> Self {
        Self::new(message, DocumentMasks::new(AbsentFields::Keep))
    }

    fn new(mut message: v1::TaskDocument, masks: DocumentMasks) -> Self {
        let mut bodies = Bodies::default();
        for_each_step_mut(&mut message.steps, &mut |step| bodies.take_from(step));
        Self {
            target: ImportTarget::New,
            reimport: false,
            match_external_ids: false,
            masks,
            message,
            bodies,
        }
    }

    /// If the request or the structure of the document is invalid, adds the violations that do not depend on
    /// what is stored. Otherwise `decode` finds them, together with those that do.
    pub fn add_violations(&self, violations: &mut Violations) {
        let structure = self.decode_against(Stored::Unread).violations;
        if !violations.is_empty() || !structure.is_empty() {
            let stored = match self.reimport {
                true => Stored::Unknown,
                false => Stored::Nothing,
            };
            violations.append(self.decode_against(stored).violations);
        }
    }

    /// The ids that its tasks have, those of managed tasks included.
    pub fn task_ids(&self) -> BTreeSet<TaskId> {
        self.decode_against(Stored::Unread).task_ids()
    }

    /// The document with numbers in place of bodies.
    pub fn message(&self) -> &v1::TaskDocument {
        &self.message
    }

    fn decode_against(&self, stored: Stored<'_>) -> Document {
        let mut decoder = DocumentDecoder {
            sent: self,
            violations: Violations::new(),
            ignored: BTreeSet::new(),
        };
        let document = decoder.document(self.message.clone(), "document", stored, None);
        Document {
            violations: decoder.violations,
            ignored: decoder.ignored,
            ..document.unwrap_or_default()
        }
    }
}

impl GuideDocument for SentDocument {
    fn decode(&self, stored: Option<&TaskTree>) -> Document {
        self.decode_against(stored.map_or(Stored::Nothing, Stored::Guide))
    }

    fn subtasks(&self) -> BTreeSet<TaskId> {
        let steps = all_steps(&self.message.steps).into_iter();
        steps.filter_map(|it| step::subtask(it).guid).collect()
    }

    fn named_subtasks(&self) -> BTreeSet<ExternalId> {
        let steps = all_steps(&self.message.steps).into_iter();
        steps
            .filter_map(|it| step::subtask(it).external_id)
            .collect()
    }

    fn step_count(&self) -> usize {
        all_steps(&self.message.steps).len()
    }
}

/// What is stored of a document.
#[derive(Clone, Copy)]
enum Stored<'s> {
    Nothing,
    Guide(&'s TaskTree),
    /// Unknown: only violations that do not depend on it are found.
    Unknown,
    /// Only the structure is checked.
    Unread,
}

impl<'s> Stored<'s> {
    fn guide(self) -> Option<&'s TaskTree> {
        match self {
            Self::Guide(tree) => Some(tree),
            Self::Nothing | Self::Unknown | Self::Unread => None,
        }
    }

    /// What is stored of the task that a value of this stored step manages.
    fn of_value(self, step: Option<&Step>, key: &str) -> Self {
        let Self::Guide(tree) = self else {
            return self;
        };
        let question = step.and_then(|step| step.kind.observation_feedback());
        let mut values = question.into_iter().flat_map(|question| &question.values);
        let link = values
            .find(|it| it.key.as_str() == key)
            .and_then(|it| it.link);
        let managed = link.and_then(|task| tree.managed.get(&task));
        managed.map_or(Self::Nothing, Self::Guide)
    }
}

/// What a managed task takes from its answer and from the task of its observation.
struct Inherited {
    depth: usize,
    name: String,
    product: Option<ProductId>,
}

struct DocumentDecoder<'a> {
    sent: &'a SentDocument,
    violations: Violations,
    ignored: BTreeSet<String>,
}

impl DocumentDecoder<'_> {
    /// `None` if it nests too deep or has too many steps.
    fn document(
        &mut self,
        message: v1::TaskDocument,
        path: &str,
        stored: Stored<'_>,
        inherited: Option<Inherited>,
    ) -> Option<Document> {
        let v1::TaskDocument { mut task, steps } = message;
        let depth = inherited.as_ref().map_or(1, |inherited| inherited.depth);
        let mut field = self.violations.at(path);
        if inherited.is_none() {
            field.field("task").required(task.as_ref());
        } else {
            task.get_or_insert_default();
        }
        if depth > MAX_NESTED_DOCUMENTS {
            let description = format!("documents nest at most {MAX_NESTED_DOCUMENTS} deep");
            field.refuse(Reason::NestingTooDeep, description);
            return None;
        }
        if !field.field("steps").at_most(steps.len(), MAX_TASK_STEPS) {
            return None;
        }
        // A task to be created has no id, but its steps may name one.
        let first = steps.first().filter(|_| inherited.is_none());
        let named = first.and_then(|step| TaskId::parse(&step.task));
        let mut decoded = DocumentTask {
            path: format!("{path}.task"),
            guid: named,
            ..DocumentTask::default()
        };
        let mut product = match stored.guide() {
            Some(tree) => Some(tree.task.product),
            None => inherited.as_ref().and_then(|it| it.product),
        };
        if let Some(task) = task {
            decoded.guid = TaskId::parse(&task.guid).or(named);
            decoded.new = self.task(task, &decoded.path, stored, inherited, product);
            product = product.or(decoded.new.as_ref().map(|new| new.product));
        }
        let steps = self.steps(steps, path, stored, depth, product);
        // Each managed task takes a step.
        let linked = steps.iter().filter_map(|step| {
            let question = step.new.as_ref()?.kind.observation_feedback()?;
            question.linked.then_some(step.values.len())
        });
        if linked.sum::<usize>() > MAX_TASK_STEPS {
            let at = Path::root(path);
            self.violations
                .add(&at.field("steps"), Reason::TooManyElements, TOO_MANY_STEPS);
            return None;
        }
        Some(Document {
            path: path.to_owned(),
            task: decoded,
            steps,
            ..Document::default()
        })
    }

    /// The steps, each with the stored one that it is.
    fn steps(
        &mut self,
        steps: Vec<v1::Step>,
        path: &str,
        stored: Stored<'_>,
        depth: usize,
        product: Option<ProductId>,
    ) -> Vec<DocumentStep> {
        let known = stored.guide().map_or(&[][..], |tree| &tree.steps);
        let by_id: BTreeMap<StepId, &Step> = known.iter().map(|it| (it.guid, it)).collect();
        let listed = steps.iter().filter_map(|step| StepId::parse(&step.guid));
        let listed: BTreeSet<StepId> = listed.collect();
        let unlisted = known.iter().filter(|step| !listed.contains(&step.guid));
        let named = unlisted.filter_map(|it| Some((it.content.external_id.clone()?, it)));
        let by_external_id: BTreeMap<ExternalId, &Step> = named.collect();
        let mut ids = BTreeSet::new();
        let mut external_ids = BTreeMap::new();
        let steps = steps.into_iter().enumerate().map(|(index, message)| {
            let step_path = format!("{path}.steps[{index}]");
            let mut at = self.violations.at(&step_path);
            let external_id = ExternalId::parse(message.external_id().to_owned()).ok();
            let equal = external_id
                .clone()
                .and_then(|id| external_ids.insert(id, index));
            if let Some(other) = equal {
                let description = format!("equals {path}.steps[{other}].external_id");
                at.field("external_id")
                    .refuse(Reason::FieldInvalid, description);
            }
            let guid = StepId::parse(&message.guid);
            let mut before = guid.and_then(|id| by_id.get(&id)).copied();
            if before.is_some_and(|before| !ids.insert(before.guid)) {
                let description = "is the id of another step of the list";
                at.field("guid").refuse(Reason::FieldInvalid, description);
            }
            let is_matched = self.sent.match_external_ids && message.guid.is_empty();
            let matched = external_id.filter(|_| is_matched);
            before = before.or_else(|| by_external_id.get(matched.as_ref()?).copied());
            let may_be_stored = !message.guid.is_empty() || matched.is_some();
            if self.sent.reimport && may_be_stored {
                expected_etag(&message.etag, at.field("etag"));
            }
            if let (Some(tree), Some(task)) = (stored.guide(), TaskId::parse(&message.task)) {
                self.ignore(&step_path, "task", task != tree.task.guid);
            }
            let stored = match stored {
                // The planner refuses a step of another task.
                Stored::Guide(_) if guid.is_some() && before.is_none() => Stored::Unread,
                Stored::Unknown if !may_be_stored => Stored::Nothing,
                stored => stored,
            };
            self.step(message, step_path, (stored, before), depth, product)
        });
        steps.collect()
    }

    /// The task with its fields after the import, except for those that it inherits.
    fn task(
        &mut self,
        mut message: v1::Task,
        path: &str,
        stored: Stored<'_>,
        inherited: Option<Inherited>,
        product: Option<ProductId>,
    ) -> Option<NewTask> {
        message.external_id.take_if(|id| id.is_empty());
        let mut at = self.violations.at(path);
        optional_guid(&message.guid, TaskId::parse, at.field("guid"));
        if self.sent.reimport {
            expected_etag(&message.etag, at.field("etag"));
        }
        let managed = stored.guide().map(|tree| &tree.task);
        let managed = managed.filter(|task| task.managed.is_some());
        let name = match &inherited {
            Some(inherited) => Some(inherited.name.as_str()),
            None => managed.map(|task| task.name.as_str()),
        };
        let sets_name = name.is_some_and(|name| !["", name].contains(&&message.name[..]));
        self.ignore(path, "name", sets_name);
        self.ignore(
            path,
            "external_id",
            name.is_some() && message.external_id.is_some(),
        );
        if let (Some(sent), Some(product)) = (message.product_id, product) {
            self.ignore(path, "product_id", sent != product.get());
        }
        let (mask, violations) = (&self.sent.masks.task, &mut self.violations);
        match stored {
            Stored::Unread => None,
            Stored::Unknown => {
                let both = (&[][..], &message.encode_to_vec()[..]);
                let check = |message, at: Field<'_>| {
                    task::check(message, at);
                    None
                };
                decode_selected(mask, both, UNMANAGED_ONLY, path, violations, check)
            }
            Stored::Guide(TaskTree { task, .. }) => {
                let before = encode::task(task.clone()).encode_to_vec();
                let both = (&before[..], &message.encode_to_vec()[..]);
                let kept = unmanaged_only(task);
                decode_selected(mask, both, kept, path, violations, task::new)
            }
            Stored::Nothing => {
                if inherited.is_some() {
                    // The planner replaces name and product.
                    message.name = "managed".to_owned();
                    message.external_id = None;
                    message.product_id.get_or_insert(1);
                }
                task::new(message, violations.at(path))
            }
        }
    }

    fn step(
        &mut self,
        mut message: v1::Step,
        path: String,
        (stored, before): (Stored<'_>, Option<&Step>),
        depth: usize,
        product: Option<ProductId>,
    ) -> DocumentStep {
        let mut at = self.violations.at(&path);
        let guid = optional_guid(&message.guid, StepId::parse, at.field("guid"));
        for id in [&mut message.external_id, &mut message.subtask_external_id] {
            id.take_if(|id| id.is_empty());
        }
        // The nested documents are decoded apart.
        let config = message.feedback_config.first_mut();
        let linked = config.as_ref().is_some_and(|it| it.linked == Some(true));
        let values = config
            .into_iter()
            .flat_map(|it| &mut it.values)
            .map(|value| {
                let task_json = value.task_json.take();
                let value = value.clone();
                v1::FeedbackValue { task_json, ..value }
            });
        let values: Vec<v1::FeedbackValue> = values.collect();
        let is_unlinked = !linked && values.iter().any(|it| it.task_json.is_some());
        self.ignore(&path, "feedback_config.values.task_json", is_unlinked);
        let translations = message.translations.values();
        let mut questions = translations.flat_map(|it| &it.feedback_config);
        let is_linked = questions.any(|it| it.linked.is_some());
        self.ignore(&path, "translations.feedback_config.linked", is_linked);
        let step = DocumentStep {
            guid,
            stored: before.map(|before| before.guid),
            link: TaskId::parse(&message.link),
            subtask: step::subtask(&message),
            title: sent_text(message.title.clone()),
            edits_question: (self.sent.masks.step)
                .selects("feedback_config", || !message.feedback_config.is_empty()),
            values: Vec::new(),
            new: self.new_step(message, &path, stored, before),
            created: Timestamp::default(),
            r_data: Map::new(),
            path,
        };
        // It is not known which tasks a refused step manages.
        let stored = match (stored, &step.new) {
            (Stored::Guide(_), None) => Stored::Unknown,
            _ => stored,
        };
        let values = values.into_iter().enumerate().map(|(index, value)| {
            let path = format!("{}.feedback_config[0].values[{index}].task_json", step.path);
            let stored = stored.of_value(before, &value.key);
            let inherited = Inherited {
                depth: depth + 1,
                name: value.value,
                product,
            };
            // Nothing is created of a value that is not linked, so nothing of it is refused.
            let nested = value.task_json.filter(|_| linked);
            let document = nested.and_then(|it| self.document(*it, &path, stored, Some(inherited)));
            let named = document.as_ref().and_then(|document| document.task.guid);
            DocumentValue {
                ids: TaskId::parse(&value.link)
                    .into_iter()
                    .chain(named)
                    .collect(),
                document: document.map(Box::new),
            }
        });
        DocumentStep {
            values: values.collect(),
            ..step
        }
    }

    /// The step with its fields after the import.
    fn new_step(
        &mut self,
        message: v1::Step,
        path: &str,
        stored: Stored<'_>,
        before: Option<&Step>,
    ) -> Option<NewStep> {
        let SentDocument { masks, bodies, .. } = self.sent;
        let (mask, violations) = (&masks.step, &mut self.violations);
        let (mut is_kept, found) = (false, violations.total());
        let new = match (stored, before) {
            (Stored::Unread, _) => None,
            (Stored::Unknown, _) => {
                let both = (&[][..], &message.encode_to_vec()[..]);
                let check = |message, at: Field<'_>| {
                    step::check(message, at);
                    None
                };
                decode_selected(mask, both, TYPE_DEPENDENT, path, violations, check)
            }
            (_, Some(before)) => {
                let not_honored = not_honored_by(before, &message);
                let names_subtask = message.subtask_external_id.is_some();
                let encoded = bodies.encode_stored(before, &message);
                let both = (&encoded[..], &message.encode_to_vec()[..]);
                let decode = |mut message: v1::Step, mut at: Field<'_>| {
                    // The stored one follows the task, and does not name it.
                    message.subtask_external_id.take_if(|_| !names_subtask);
                    step::for_task(message, Some(before.task), &mut at)
                };
                is_kept = mask.keeps_all(both.0, both.1, &not_honored);
                match is_kept {
                    true => Some(before.to_new()),
                    false => decode_selected(mask, both, &not_honored, path, violations, decode),
                }
            }
            (_, None) => {
                // The planner sets the task.
                let task = Some(TaskId(Uuid::nil()));
                step::for_task(message.clone(), task, &mut violations.at(path))
            }
        };
        let mut new = new.filter(|_| self.violations.total() == found)?;
        if !is_kept {
            bodies.restore(&mut new.content, before);
        }
        let (product, number) = (new.product.get(), new.kind.step_type().number());
        self.ignore(
            path,
            "product_id",
            message.product_id.is_some_and(|it| it != product),
        );
        self.ignore(path, "type", ![0, number].contains(&message.r#type));
        let has_subtask = new.kind.subtask().is_some();
        for field in step::subtask_fields(&message).filter(|_| !has_subtask) {
            self.ignore(path, field, true);
        }
        Some(new)
    }

    /// Lists a field of a task or step that is not honored.
    fn ignore(&mut self, path: &str, field: &str, is_ignored: bool) {
        if is_ignored {
            let path = without_indexes(path);
            self.ignored.insert(format!("{path}.{field}"));
        }
    }
}

/// The fields that a stored step of a document does not honor. A wiring step may name another task, which
/// is listed as ignored. The product follows the task.
fn not_honored_by(stored: &Step, sent: &v1::Step) -> Vec<&'static str> {
    if stored.kind.subtask().is_none() {
        return SUBTASK.to_vec();
    }
    let is_wiring = stored.link.is_some();
    let fields = [
        ("title", true),
        (SUBTASK_EXTERNAL_ID, is_wiring),
        ("subtask_id", is_wiring && sent.subtask_id.is_empty()),
        ("subtask_pid", sent.subtask_pid.is_none()),
    ];
    let kept = fields.into_iter().filter(|(_, is_kept)| *is_kept);
    kept.map(|(field, _)| field).collect()
}
