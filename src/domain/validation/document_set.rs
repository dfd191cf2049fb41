//! Validates documents without their account. Subtask steps are followed into the other documents.
//! A task that no document has is assumed to be visible and to have an outcome.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    Error, Result,
    analysis::{
        Budget, Guide, GuideDraft, GuideTask, MAX_SUBTASK_LEVELS, NEVER, Outside, OutsideSetter,
        SourceTasks, account_name, parse_account_name, plan_tasks, refer_to_documents,
    },
    decide::WriteContext,
    external_id::ExternalId,
    ids::{StepId, TaskId},
    import::{Absent, Document, DocumentTask, ImportContext, plan},
    step::{Cost, NewStep, ReferencedTask, SentSubtask, Step, StepContent, StepKind, StepType},
    task::{NewTask, Task, TaskContent},
    text::Name,
    violation::{Path, Reason, Violations},
};

use super::{
    Finding, FindingCounts, OtherGuides, Rule, ValidationOptions, ValidationSubject,
    suggestion::closest, validate,
};

#[derive(Debug)]
pub struct OfflineFindings {
    pub findings: Vec<Finding>,
    pub counts: FindingCounts,
    /// Variables that look misspelled, but that another guide of the account may set.
    pub unchecked: Vec<UncheckedVariable>,
}

/// A variable that a condition reads, and that only another guide can set.
#[derive(Debug, PartialEq, Eq)]
pub struct UncheckedVariable {
    pub name: String,
    /// The variable of the guide that was probably meant.
    pub suggestion: String,
}

/// Documents that are validated together.
#[derive(Debug)]
pub struct DocumentSet {
    /// `Read` if the account has no guides other than these documents.
    other_guides: OtherGuides,
    /// The tasks of all documents, and stand-ins for tasks of the account.
    tasks: SourceTasks,
    /// The names of the tasks' documents, for the paths of findings about other documents.
    /// Stand-ins have none.
    documents: BTreeMap<TaskId, String>,
    /// The observations that set each account-wide name, with their tasks.
    setters: BTreeMap<String, Vec<(TaskId, OutsideSetter)>>,
}

/// How a subtask step names a task.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum TaskKey {
    Guid(TaskId),
    ExternalId(ExternalId),
}

impl TaskKey {
    fn new(subtask: &SentSubtask) -> Option<Self> {
        match &subtask.external_id {
            Some(id) => Some(Self::ExternalId(id.clone())),
            None => subtask.guid.map(Self::Guid),
        }
    }
}

/// The tasks of all documents.
type Targets<'d> = BTreeMap<TaskKey, &'d DocumentTask>;

impl DocumentSet {
    /// Plans the import of each document as a new guide. Returns the task of each document, or why
    /// an import would refuse it.
    pub fn new(
        documents: Vec<(String, Document)>,
        is_whole_account: bool,
        write: &WriteContext,
    ) -> (Self, Vec<Result<TaskId>>) {
        let mut targets = Targets::new();
        for Document { task, .. } in documents.iter().flat_map(|(_, it)| it.all()) {
            let external_id = task.new.clone().and_then(|new| new.content.external_id);
            let external_id = external_id.map(TaskKey::ExternalId);
            let keys = task.guid.map(TaskKey::Guid).into_iter().chain(external_id);
            targets.extend(keys.map(|key| (key, task)));
        }
        let mut set = Self {
            other_guides: if is_whole_account {
                OtherGuides::Read
            } else {
                OtherGuides::Unknown
            },
            tasks: SourceTasks::new(),
            documents: BTreeMap::new(),
            setters: BTreeMap::new(),
        };
        let planned = documents.iter().map(|(name, document)| {
            if is_whole_account {
                check_targets(document, &targets)?;
            }
            set.plan(name, document, &targets, write)
        });
        let roots = planned.collect();
        refer_to_documents(&mut set.tasks, |_| true);
        (set, roots)
    }

    /// Plans the import of a document. Its subtask steps refer to stand-ins.
    fn plan(
        &mut self,
        name: &str,
        document: &Document,
        targets: &Targets<'_>,
        write: &WriteContext,
    ) -> Result<TaskId> {
        let mut stand_ins = BTreeMap::new();
        for sent in document.subtask_targets() {
            let guid = sent.guid.unwrap_or_else(|| TaskId((write.new_id)()));
            let target = TaskKey::new(&sent).and_then(|key| targets.get(&key)?.new.clone());
            if let Some(new) = target.or_else(|| account_task(sent)) {
                let task = Task::create(new, None, write);
                stand_ins.insert(guid, Task { guid, ..task });
            }
        }
        let referenced = stand_ins.iter();
        let referenced = referenced.map(|(guid, task)| (*guid, ReferencedTask::to(task)));
        let referenced = referenced.collect();
        let context = ImportContext::for_new_guide(write, &referenced);
        let (root, tasks) = plan_tasks(plan(document, Absent::DEFAULT, context)?);
        let stand_ins = stand_ins.into_iter();
        self.tasks
            .extend(stand_ins.filter_map(|(guid, task)| Some((guid, stand_in(task, write)?))));
        for (guid, task) in tasks {
            self.add_setters(&task);
            self.documents.insert(guid, name.to_owned());
            self.tasks.insert(guid, task);
        }
        Ok(root)
    }

    fn add_setters(&mut self, task: &GuideTask) {
        for step in task.steps.iter().flatten() {
            let Some(feedback) = step.step.kind.observation_feedback() else {
                continue;
            };
            // Ids that the plan generated are not shown.
            let task_guid = task.origin.as_ref().and_then(|origin| origin.guid);
            let step_guid = step.origin.as_ref().and_then(|origin| origin.guid);
            let keys = feedback.values.iter();
            let setter = OutsideSetter {
                task: task_guid.unwrap_or(TaskId(Uuid::nil())),
                step: step_guid.unwrap_or(StepId(Uuid::nil())),
                title: step.step.title.clone(),
                keys: keys.map(|value| value.key.as_str().to_owned()).collect(),
            };
            let name = account_name(step.step.product, feedback.name.as_str());
            let setters = self.setters.entry(name).or_default();
            setters.push((task.task.guid, setter));
        }
    }

    /// The findings of a document by the rules that do not need the account.
    pub fn validate(
        &self,
        root: TaskId,
        mut options: ValidationOptions,
    ) -> Result<OfflineFindings> {
        let tasks = self.tasks_below(root);
        let inside: BTreeSet<TaskId> = tasks.keys().copied().collect();
        let draft = GuideDraft::new(root, tasks, &options.known_variables);
        let draft = draft.ok_or_else(|| Error::task_not_found(root, "document.task.guid"))?;
        let knows_all = self.other_guides == OtherGuides::Read;
        let outside = draft.account_variables().filter_map(|variable| {
            let setters = self.setters.get(&variable.name).into_iter().flatten();
            let (own, elsewhere): (Vec<_>, Vec<_>) =
                setters.partition(|(task, _)| inside.contains(task));
            // Guides without a document are assumed not to set the variables of this guide.
            let is_known = knows_all || !own.is_empty();
            let list = elsewhere.into_iter().map(|(_, setter)| setter.clone());
            let outside = Outside {
                list: list.collect(),
                is_complete: true,
            };
            is_known.then_some((variable.name.clone(), outside))
        });
        let outside = outside.collect();
        let guide = draft.finish(outside, NEVER).ok_or_else(stopped)?;
        for rule in Rule::ALL.iter().filter(|rule| rule.needs_account()) {
            options.rules.insert(*rule, None);
        }
        let validated = validate(ValidationSubject {
            guide: &guide,
            readers: &BTreeMap::new(),
            options: &options,
            other_guides: self.other_guides,
            stop: NEVER,
        });
        let (findings, counts) = validated.ok_or_else(stopped)?;
        Ok(OfflineFindings {
            findings,
            counts,
            unchecked: match self.other_guides {
                OtherGuides::Read => Vec::new(),
                OtherGuides::Unknown => unchecked_variables(&guide, &options),
            },
        })
    }

    /// The task and the tasks that its subtask steps lead to. Paths in other documents begin with
    /// their names.
    fn tasks_below(&self, root: TaskId) -> SourceTasks {
        let own = self.documents.get(&root);
        let mut tasks = SourceTasks::new();
        let mut level = vec![root];
        // The guide also has the first level that is too deep.
        for _ in 0..=MAX_SUBTASK_LEVELS + 1 {
            for id in std::mem::take(&mut level) {
                let Some(source) = self.tasks.get(&id).filter(|_| !tasks.contains_key(&id)) else {
                    continue;
                };
                let mut task = source.clone();
                let document = self.documents.get(&id);
                if let Some(name) = document.filter(|it| Some(*it) != own) {
                    let steps = task.steps.iter_mut().flatten();
                    let steps = steps.filter_map(|it| Some(&mut it.origin.as_mut()?.path));
                    let task = task.origin.as_mut().map(|it| &mut it.path);
                    for path in steps.chain(task) {
                        *path = format!("{name}: {path}");
                    }
                }
                let steps = task.steps.iter().flatten();
                level.extend(steps.filter_map(|it| Some(it.step.kind.subtask()?.task)));
                tasks.insert(id, task);
            }
        }
        tasks
    }
}

/// Refuses subtask steps whose tasks no document has.
fn check_targets(document: &Document, targets: &Targets<'_>) -> Result<(), Violations> {
    let mut violations = Violations::new();
    let steps = document.all_steps();
    for step in steps.filter(|step| step.fields.step_type() == Some(StepType::Subtask)) {
        let key = TaskKey::new(&step.subtask);
        let (field, id) = match key.filter(|key| !targets.contains_key(key)) {
            Some(TaskKey::Guid(_)) => ("subtask_id", "id"),
            Some(TaskKey::ExternalId(_)) => ("subtask_external_id", "external id"),
            None => continue,
        };
        let path = Path::root(&step.path);
        let description = format!("is not the {id} of any task in these guides");
        violations.add(&path.field(field), Reason::FieldInvalid, description);
    }
    violations.into_result()
}

fn stopped() -> Error {
    Error::Internal("a validation stopped".to_owned())
}

/// The variables that only another guide may set and whose names are close to a known one.
fn unchecked_variables(guide: &Guide, options: &ValidationOptions) -> Vec<UncheckedVariable> {
    let rule = Rule::UnknownVariable;
    if options.severity(rule, rule.text().severity).is_none() {
        return Vec::new();
    }
    let account_wide = guide.variables.iter();
    let account_wide = account_wide.filter(|it| parse_account_name(&it.name).is_some());
    let (unknown, known): (Vec<_>, Vec<_>) = account_wide.partition(|it| it.is_unknown());
    let budget = Budget::new(0, NEVER);
    let read = unknown.into_iter().filter(|variable| variable.is_read);
    let unchecked = read.filter_map(|variable| {
        let known = known.iter().map(|known| known.name.as_str());
        Some(UncheckedVariable {
            name: variable.name.clone(),
            suggestion: closest(&variable.name, known, &budget.hints)?.to_owned(),
        })
    });
    unchecked.collect()
}

/// A task of the account that no document has.
fn account_task(sent: SentSubtask) -> Option<NewTask> {
    Some(NewTask {
        name: Name::parse("A task of the account".to_owned()).ok()?,
        product: sent.unresolved().product,
        content: TaskContent {
            external_id: sent.external_id,
            ..TaskContent::default()
        },
    })
}

/// A task with a solution that stands for a task that may be unknown.
fn stand_in(task: Task, write: &WriteContext) -> Option<GuideTask> {
    let new = NewStep {
        task: task.guid,
        product: task.product,
        title: "A solution".to_owned(),
        kind: StepKind::new(StepType::Solution, Cost::default(), None, None)?,
        content: StepContent::default(),
    };
    Some(GuideTask {
        steps: Some(vec![Step::create(new, write).into()]),
        ..task.into()
    })
}
