//! Decodes documents whose structure is valid.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::Timestamp as ProtoTimestamp;
use uuid::Uuid;

use super::{SentDocument, SentStep, SentTree, is_linked};
use crate::{
    domain::{
        external_id::ExternalId,
        ids::{ProductId, StepId, TaskId},
        import::{
            Document, DocumentStep, DocumentTask, DocumentValue, StepFields, TaskTree,
            without_indexes,
        },
        nesting::MAX_NESTED_DOCUMENTS,
        step::{Step, StepKind},
        task::{MAX_TASK_STEPS, NewTask, TOO_MANY_STEPS, check_languages},
        time::Timestamp,
        violation::{Path, Reason, Violations},
    },
    messages::{
        decode::{self, field::sent_text, json, step, task},
        encode,
        managed_documents::values,
        update::{
            SUBTASK, SUBTASK_EXTERNAL_ID, StepEdit, TYPE_DEPENDENT, UNMANAGED_ONLY, check_step,
            check_task, unmanaged_only,
        },
    },
    proto::v1,
};

/// The stored counterpart of a document.
#[derive(Clone, Copy)]
pub enum Stored<'s> {
    Nothing,
    Guide(&'s TaskTree),
    /// Unknown. Only violations that do not depend on it are found.
    Unknown,
}

impl<'s> Stored<'s> {
    fn guide(self) -> Option<&'s TaskTree> {
        match self {
            Self::Guide(tree) => Some(tree),
            Self::Nothing | Self::Unknown => None,
        }
    }

    /// The stored counterpart of the task that a value of this stored step manages.
    fn managed_by_value(self, step: Option<&Step>, key: &str) -> Self {
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
pub struct Inherited {
    depth: usize,
    name: String,
    product: Option<ProductId>,
}

pub struct DocumentDecoder<'a> {
    sent: &'a SentDocument,
    violations: Violations,
    ignored: BTreeSet<String>,
}

impl<'a> DocumentDecoder<'a> {
    pub fn new(sent: &'a SentDocument) -> Self {
        Self {
            sent,
            violations: Violations::new(),
            ignored: BTreeSet::new(),
        }
    }

    /// The outermost document, with the findings of all documents.
    pub fn finish(self, document: Option<Document>) -> Document {
        Document {
            violations: self.violations,
            ignored: self.ignored,
            ..document.unwrap_or_default()
        }
    }

    /// `None` if it nests too deeply or has too many steps.
    pub fn document(
        &mut self,
        tree: &SentTree,
        path: &str,
        stored: Stored<'_>,
        inherited: Option<Inherited>,
    ) -> Option<Document> {
        let depth = inherited.as_ref().map_or(1, |inherited| inherited.depth);
        if depth > MAX_NESTED_DOCUMENTS || tree.steps.len() > MAX_TASK_STEPS {
            return None;
        }
        // A new task has no id yet, but its steps may name one.
        let first = tree.steps.first().filter(|_| inherited.is_none());
        let named = first.and_then(|step| TaskId::parse(&step.message.task));
        let mut product = match stored.guide() {
            Some(tree) => Some(tree.task.product),
            None => inherited.as_ref().and_then(|it| it.product),
        };
        let mut decoded = DocumentTask {
            path: format!("{path}.task"),
            guid: named,
            ..DocumentTask::default()
        };
        let task = tree.task.clone();
        if let Some(task) = task.or_else(|| inherited.is_some().then(Default::default)) {
            decoded.guid = TaskId::parse(&task.guid).or(named);
            decoded.created = timestamp(task.created_ts);
            decoded.new = self.task(task, &decoded.path, stored, inherited, product);
            product = product.or(decoded.new.as_ref().map(|new| new.product));
        }
        let steps = self.steps(&tree.steps, path, stored, depth, product)?;
        Some(Document {
            path: path.to_owned(),
            task: decoded,
            steps,
            ..Document::default()
        })
    }

    /// The steps with their stored counterparts. `None` if they manage too many tasks.
    fn steps(
        &mut self,
        sent: &[SentStep],
        path: &str,
        stored: Stored<'_>,
        depth: usize,
        product: Option<ProductId>,
    ) -> Option<Vec<DocumentStep>> {
        let known = stored.guide().map_or(&[][..], |tree| &tree.steps);
        let by_id: BTreeMap<StepId, &Step> = known.iter().map(|it| (it.guid, it)).collect();
        let listed = sent.iter().filter_map(|it| StepId::parse(&it.message.guid));
        let listed: BTreeSet<StepId> = listed.collect();
        let unlisted = known.iter().filter(|step| !listed.contains(&step.guid));
        let named = unlisted.filter_map(|it| Some((it.content.external_id.as_ref()?, it)));
        let by_external_id: BTreeMap<&ExternalId, &Step> = named.collect();
        let mut ids = BTreeSet::new();
        let mut managed_tasks = 0;
        let mut steps = Vec::with_capacity(sent.len());
        for (index, step) in sent.iter().enumerate() {
            let message = &step.message;
            let step_path = format!("{path}.steps[{index}]");
            let guid = StepId::parse(&message.guid);
            let mut before = guid.and_then(|id| by_id.get(&id)).copied();
            if before.is_some_and(|before| !ids.insert(before.guid)) {
                let description = "is the id of another step of the list";
                let mut at = self.violations.at(&step_path);
                at.field("guid").refuse(Reason::FieldInvalid, description);
            }
            let is_matched = self.sent.match_external_ids && message.guid.is_empty();
            let matched = message.external_id.clone().filter(|_| is_matched);
            let matched = matched.and_then(|id| ExternalId::parse(id).ok());
            before = before.or_else(|| by_external_id.get(matched.as_ref()?).copied());
            if let (Some(tree), Some(task)) = (stored.guide(), TaskId::parse(&message.task)) {
                self.ignore(&step_path, "task", task != tree.task.guid);
            }
            let has_id = !message.guid.is_empty();
            let stored = match stored {
                Stored::Unknown if !has_id && matched.is_none() => Stored::Nothing,
                // The planner refuses a step of another task.
                Stored::Guide(_) if has_id && before.is_none() => {
                    steps.push(DocumentStep::unknown(step_path, guid));
                    continue;
                }
                stored => stored,
            };
            let step = self.step(step, step_path, (stored, before), depth, product);
            let kind = match &step.fields {
                StepFields::Kept => before.map(|before| &before.kind),
                fields => fields.as_new().map(|new| &new.kind),
            };
            let question = kind.and_then(StepKind::observation_feedback);
            if question.is_some_and(|question| question.linked) {
                managed_tasks += step.values.len();
            }
            steps.push(step);
        }
        // Each managed task needs a step.
        if managed_tasks > MAX_TASK_STEPS {
            let at = Path::root(path);
            self.violations
                .add(&at.field("steps"), Reason::TooManyElements, TOO_MANY_STEPS);
            return None;
        }
        Some(steps)
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
        let managed = stored.guide().map(|tree| &tree.task);
        let managed = managed.filter(|task| task.managed.is_some());
        let name = match &inherited {
            Some(inherited) => Some(inherited.name.as_str()),
            None => managed.map(|task| task.name.as_str()),
        };
        let sets_name = name.is_some_and(|name| !["", name].contains(&&message.name[..]));
        self.ignore(path, "name", sets_name);
        let sets_id = name.is_some() && message.external_id.is_some();
        self.ignore(path, "external_id", sets_id);
        if let (Some(sent), Some(product)) = (message.product_id, product) {
            self.ignore(path, "product_id", sent != product.get());
        }
        let (mask, violations) = (&self.sent.masks.task, &mut self.violations);
        match stored {
            Stored::Unknown => {
                let (sent, at) = (message.encode_to_vec(), violations.at(path));
                check_task(mask, &sent, UNMANAGED_ONLY, at);
                None
            }
            Stored::Guide(TaskTree { task, .. }) => {
                let stored = encode::task(task.clone()).encode_to_vec();
                let sent = message.encode_to_vec();
                let (merged, languages) = mask.merge(&stored, &sent, unmanaged_only(task))?;
                let new = task::new(merged, violations.at(path));
                check_languages(&Path::root(path), languages, violations);
                new
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
        SentStep { message, nested }: &SentStep,
        path: String,
        (stored, before): (Stored<'_>, Option<&Step>),
        depth: usize,
        product: Option<ProductId>,
    ) -> DocumentStep {
        let linked = is_linked(message);
        let is_unlinked = !linked && nested.iter().any(Option::is_some);
        self.ignore(&path, "feedback_config.values.task_json", is_unlinked);
        let translations = message.translations.values();
        let mut questions = translations.flat_map(|it| &it.feedback_config);
        let sets_linked = questions.any(|it| it.linked.is_some());
        self.ignore(&path, "translations.feedback_config.linked", sets_linked);
        let fields = self.fields(message, &path, stored, before);
        // The managed tasks of an invalid step are unknown.
        let stored = match (stored, &fields) {
            (Stored::Guide(_), StepFields::Refused) => Stored::Unknown,
            _ => stored,
        };
        let nested = values(message).zip(nested);
        let values = nested.enumerate().map(|(index, (value, nested))| {
            let path = format!("{path}.feedback_config[0].values[{index}].task_json");
            let stored = stored.managed_by_value(before, &value.key);
            // A value that is not linked creates nothing, so its document is not checked.
            let document = nested.as_ref().filter(|_| linked).and_then(|nested| {
                let inherited = Inherited {
                    depth: depth + 1,
                    name: value.value.clone(),
                    product,
                };
                self.document(nested, &path, stored, Some(inherited))
            });
            let named = document.as_ref().and_then(|document| document.task.guid);
            let link = TaskId::parse(&value.link);
            DocumentValue {
                ids: link.into_iter().chain(named).collect(),
                document: document.map(Box::new),
            }
        });
        DocumentStep {
            values: values.collect(),
            guid: StepId::parse(&message.guid),
            stored: before.map(|before| before.guid),
            link: TaskId::parse(&message.link),
            subtask: step::subtask(message),
            title: sent_text(message.title.clone()),
            edits_question: (self.sent.masks.step)
                .selects("feedback_config", || !message.feedback_config.is_empty()),
            fields,
            created: timestamp(message.created_ts),
            r_data: decode::all(|unused| {
                json::members(message.r_data.clone(), unused.at("r_data"))
            })
            .ok(),
            path,
        }
    }

    /// The fields of a step after the import.
    fn fields(
        &mut self,
        message: &v1::Step,
        path: &str,
        stored: Stored<'_>,
        before: Option<&Step>,
    ) -> StepFields {
        let found = self.violations.total();
        let fields = match (stored, before) {
            (Stored::Unknown, _) => {
                let (mask, sent) = (&self.sent.masks.step, message.encode_to_vec());
                check_step(mask, &sent, TYPE_DEPENDENT, self.violations.at(path));
                StepFields::Refused
            }
            (_, Some(before)) => self.edited(message, path, before),
            (_, None) => {
                // The planner sets the task.
                let task = Some(TaskId(Uuid::nil()));
                let mut at = self.violations.at(path);
                let new = step::for_task(message.clone(), task, &mut at);
                new.map_or(StepFields::Refused, |mut new| {
                    self.sent.bodies.restore(&mut new.content, None);
                    StepFields::New(Box::new(new))
                })
            }
        };
        let (product, kind) = match (&fields, before) {
            (StepFields::New(new), _) => (new.product, &new.kind),
            (StepFields::Kept, Some(before)) => (before.product, &before.kind),
            (StepFields::Refused | StepFields::Kept, _) => return StepFields::Refused,
        };
        if self.violations.total() > found {
            return StepFields::Refused;
        }
        let (product, number) = (product.get(), kind.step_type().number());
        let other_product = message.product_id.is_some_and(|it| it != product);
        self.ignore(path, "product_id", other_product);
        self.ignore(path, "type", ![0, number].contains(&message.r#type));
        let has_subtask = kind.subtask().is_some();
        for field in step::subtask_fields(message).filter(|_| !has_subtask) {
            self.ignore(path, field, true);
        }
        fields
    }

    /// The fields of a stored step after the import.
    fn edited(&mut self, message: &v1::Step, path: &str, before: &Step) -> StepFields {
        let SentDocument { masks, bodies, .. } = self.sent;
        let (stored, sent) = (
            bodies.encode_stored(before, message),
            message.encode_to_vec(),
        );
        let edit = StepEdit {
            before,
            stored: &stored,
            sent: &sent,
            not_honored: &not_honored_by(before, message),
            names_subtask: message.subtask_external_id.is_some(),
        };
        if masks.step.keeps_all(&stored, &sent, edit.not_honored) {
            return StepFields::Kept;
        }
        let new = edit.decode(&masks.step, bodies, path, &mut self.violations);
        new.map_or(StepFields::Refused, |new| StepFields::New(Box::new(new)))
    }

    /// Lists a field of a task or step that is not honored.
    fn ignore(&mut self, path: &str, field: &str, is_ignored: bool) {
        if is_ignored {
            let path = without_indexes(path);
            self.ignored.insert(format!("{path}.{field}"));
        }
    }
}

/// The fields that a stored step of a document does not honor. If a wiring step names another task,
/// that is listed as ignored. The product follows the task.
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

fn timestamp(time: Option<ProtoTimestamp>) -> Timestamp {
    let time = time.unwrap_or_default();
    let micros = time.seconds.saturating_mul(1_000_000);
    Timestamp(micros.saturating_add(i64::from(time.nanos) / 1_000))
}
