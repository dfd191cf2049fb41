//! Validates documents without the account that they are for. Subtask steps are followed to the
//! other documents. A task that none of them has is taken to be visible and to have an outcome.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    Error, Result,
    analysis::{
        Budget, Guide, GuideDraft, MAX_SUBTASK_LEVELS, NEVER, Outside, OutsideSetter, SourceStep,
        SourceTask, SourceTasks, account_name, parse_account_name, plan_tasks,
    },
    decide::WriteContext,
    external_id::ExternalId,
    ids::{StepId, TaskId},
    import::{Absent, Document, DocumentPath, ImportContext, plan},
    step::{Cost, NewStep, ReferencedTask, SentSubtask, Step, StepContent, StepKind, StepType},
    task::{NewTask, Task, TaskContent},
    text::Name,
    violation::{Path, Reason, Violations},
};

use super::{
    Finding, FindingCounts, OtherGuides, Rule, RuleSetting, ValidationOptions, ValidationSubject,
    suggestion::closest, validate,
};

#[derive(Debug)]
pub struct OfflineFindings {
    pub findings: Vec<Finding>,
    pub counts: FindingCounts,
    /// Variables that look misspelt, but that another guide of the account may set.
    pub unchecked: Vec<UncheckedVariable>,
}

/// A variable that a condition reads, and that only another guide can set.
#[derive(Debug, PartialEq, Eq)]
pub struct UncheckedVariable {
    pub name: String,
    /// The variable of the guide that may be meant.
    pub suggestion: String,
}

/// Documents that are validated together.
#[derive(Debug)]
pub struct DocumentSet {
    /// What the documents are called in the paths of findings about others.
    names: Vec<String>,
    /// Whether the account has no other guides.
    is_whole_account: bool,
    /// The tasks of all documents, and stand-ins for tasks of the account.
    tasks: SourceTasks,
    /// The documents of the tasks. Stand-ins have none.
    documents: BTreeMap<TaskId, usize>,
    /// The observations that set each account-wide name, with their tasks.
    setters: BTreeMap<String, Vec<(TaskId, OutsideSetter)>>,
}

impl DocumentSet {
    /// Plans the import of each document as a new guide. Returns its task, or why an import would
    /// refuse it.
    pub fn new(
        documents: Vec<(String, Document)>,
        is_whole_account: bool,
        write: &WriteContext,
    ) -> (Self, Vec<Result<TaskId>>) {
        let targets = Targets::new(&documents);
        let mut set = Self {
            names: Vec::new(),
            is_whole_account,
            tasks: SourceTasks::new(),
            documents: BTreeMap::new(),
            setters: BTreeMap::new(),
        };
        let mut links = BTreeMap::new();
        let planned = documents
            .iter()
            .enumerate()
            .map(|(index, (name, document))| {
                set.names.push(name.clone());
                set.plan(index, document, &targets, &mut links, write)
            });
        let roots = planned.collect();
        set.link(&links);
        set.find_setters();
        (set, roots)
    }

    /// Plans the import of a document. `links` get the places of the tasks of other documents by the
    /// ids of their stand-ins.
    fn plan<'d>(
        &mut self,
        index: usize,
        document: &Document,
        targets: &Targets<'d>,
        links: &mut BTreeMap<TaskId, (usize, &'d str)>,
        write: &WriteContext,
    ) -> Result<TaskId> {
        if self.is_whole_account {
            targets.check(document)?;
        }
        let mut referenced = BTreeMap::new();
        let mut stand_ins = SourceTasks::new();
        for sent in document.subtask_targets() {
            let id = sent.guid.unwrap_or_else(|| TaskId((write.new_id)()));
            let target = targets.find(&sent);
            links.extend(target.map(|target| (id, (target.document, target.path))));
            let new = target.and_then(|target| target.task.clone());
            let stand_in = stand_in(id, new.map_or_else(|| account_task(sent), Some), write);
            if let Some((task, steps)) = stand_in {
                referenced.insert(id, ReferencedTask::to(&task.task));
                stand_ins.insert(id, (task, steps));
            }
        }
        let context = ImportContext::for_new_guide(write, &referenced);
        let (root, tasks) = plan_tasks(plan(document, Absent::DEFAULT, context)?);
        self.documents
            .extend(tasks.keys().map(|task| (*task, index)));
        self.tasks.extend(tasks.into_iter().chain(stand_ins));
        Ok(root)
    }

    /// Makes subtask steps refer to the tasks of other documents in place of stand-ins.
    fn link(&mut self, links: &BTreeMap<TaskId, (usize, &str)>) {
        let by_place = self.documents.iter().filter_map(|(task, index)| {
            let (source, _) = self.tasks.get(task)?;
            match &source.origin.as_ref()?.path {
                DocumentPath::Listed(path) => Some(((*index, path.as_str()), &source.task)),
                DocumentPath::OfValue(_) | DocumentPath::Unlisted => None,
            }
        });
        let by_place: BTreeMap<(usize, &str), &Task> = by_place.collect();
        let linked = links.iter().filter_map(|(stand_in, place)| {
            Some((*stand_in, ReferencedTask::to(by_place.get(place)?)))
        });
        let linked: BTreeMap<TaskId, ReferencedTask> = linked.collect();
        let steps = self.tasks.values_mut().flat_map(|(_, steps)| steps);
        for SourceStep { step, .. } in steps.flatten() {
            let target = step.kind.subtask().and_then(|it| linked.get(&it.task));
            if let Some(target) = target {
                step.refer_to(target.clone());
            }
        }
    }

    fn find_setters(&mut self) {
        for task in self.documents.keys() {
            let Some((source, Some(steps))) = self.tasks.get(task) else {
                continue;
            };
            for SourceStep { step, origin, .. } in steps {
                let Some(feedback) = step.kind.observation_feedback() else {
                    continue;
                };
                let keys = feedback.values.iter();
                // Ids that the plan made up are not shown.
                let task_origin = source.origin.as_ref();
                let setter = OutsideSetter {
                    task: task_origin
                        .and_then(|it| it.guid)
                        .unwrap_or(TaskId(Uuid::nil())),
                    step: origin
                        .as_ref()
                        .and_then(|it| it.guid)
                        .unwrap_or(StepId(Uuid::nil())),
                    title: step.title.clone(),
                    keys: keys.map(|value| value.key.as_str().to_owned()).collect(),
                };
                let name = account_name(step.product, feedback.name.as_str());
                self.setters.entry(name).or_default().push((*task, setter));
            }
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
        let variables = draft.account_variables();
        let variables = variables.filter(|_| self.is_whole_account);
        let outside = variables.map(|variable| {
            let setters = self.setters.get(&variable.name).into_iter().flatten();
            let elsewhere = setters.filter(|(task, _)| !inside.contains(task));
            let list = elsewhere.map(|(_, setter)| setter.clone()).collect();
            let is_complete = true;
            (variable.name.clone(), Outside { list, is_complete })
        });
        let outside = outside.collect();
        let guide = draft.finish(outside, NEVER).ok_or_else(stopped)?;
        for rule in Rule::ALL.iter().filter(|rule| rule.needs_account()) {
            options.rules.insert(*rule, RuleSetting::Off);
        }
        let validated = validate(ValidationSubject {
            guide: &guide,
            readers: &BTreeMap::new(),
            options: &options,
            other_guides: match self.is_whole_account {
                true => OtherGuides::Read,
                false => OtherGuides::Unknown,
            },
            stop: NEVER,
        });
        let (findings, counts) = validated.ok_or_else(stopped)?;
        Ok(OfflineFindings {
            findings,
            counts,
            unchecked: match self.is_whole_account {
                true => Vec::new(),
                false => unchecked_variables(&guide, &options),
            },
        })
    }

    /// The task and those that its subtask steps lead to. Paths in other documents begin with their
    /// names.
    fn tasks_below(&self, root: TaskId) -> SourceTasks {
        let own = self.documents.get(&root);
        let mut tasks = SourceTasks::new();
        let mut level = vec![root];
        // The guide has the first level that is too deep, too.
        for _ in 0..=MAX_SUBTASK_LEVELS + 1 {
            for id in std::mem::take(&mut level) {
                let Some(source) = self.tasks.get(&id).filter(|_| !tasks.contains_key(&id)) else {
                    continue;
                };
                let (mut task, mut steps) = source.clone();
                let document = self.documents.get(&id).filter(|it| Some(*it) != own);
                if let Some(name) = document.and_then(|it| self.names.get(*it)) {
                    let steps = steps.iter_mut().flatten();
                    let steps = steps.filter_map(|it| Some(&mut it.origin.as_mut()?.path));
                    let task = task.origin.as_mut().map(|it| &mut it.path);
                    steps.chain(task).for_each(|path| prefix(path, name));
                }
                let steps_below = steps.iter().flatten();
                level.extend(steps_below.filter_map(|it| Some(it.step.kind.subtask()?.task)));
                tasks.insert(id, (task, steps));
            }
        }
        tasks
    }
}

fn prefix(path: &mut DocumentPath, name: &str) {
    if let DocumentPath::Listed(path) | DocumentPath::OfValue(path) = path {
        *path = format!("{name}: {path}");
    }
}

/// A task of a document to which subtask steps may refer.
struct Target<'d> {
    document: usize,
    path: &'d str,
    /// `None` if it is invalid.
    task: Option<NewTask>,
}

/// The tasks of all documents by their ids.
struct Targets<'d> {
    by_guid: BTreeMap<TaskId, Target<'d>>,
    by_external_id: BTreeMap<ExternalId, Target<'d>>,
}

impl<'d> Targets<'d> {
    fn new(documents: &'d [(String, Document)]) -> Self {
        let mut targets = Self {
            by_guid: BTreeMap::new(),
            by_external_id: BTreeMap::new(),
        };
        for (index, (_, document)) in documents.iter().enumerate() {
            for Document { task, .. } in document.all() {
                let new = task.to_create();
                let external_id = new.as_ref().and_then(|it| it.content.external_id.clone());
                let target = || Target {
                    document: index,
                    path: &task.path,
                    task: new.clone(),
                };
                targets.by_guid.extend(task.guid.map(|id| (id, target())));
                targets
                    .by_external_id
                    .extend(external_id.map(|id| (id, target())));
            }
        }
        targets
    }

    fn find(&self, subtask: &SentSubtask) -> Option<&Target<'d>> {
        match &subtask.external_id {
            Some(id) => self.by_external_id.get(id),
            None => self.by_guid.get(&subtask.guid?),
        }
    }

    /// Refuses subtask steps whose tasks no document has.
    fn check(&self, document: &Document) -> Result<(), Violations> {
        let mut violations = Violations::new();
        for step in document.all_steps() {
            let subtask = &step.subtask;
            if step.step_type == Some(StepType::Subtask)
                && subtask.names_task()
                && self.find(subtask).is_none()
            {
                let (field, description) = match subtask.external_id {
                    Some(_) => (
                        "subtask_external_id",
                        "is the external id of no task of these guides",
                    ),
                    None => ("subtask_id", "is the id of no task of these guides"),
                };
                let path = Path::root(&step.path);
                violations.add(&path.field(field), Reason::FieldInvalid, description);
            }
        }
        violations.into_result()
    }
}

fn stopped() -> Error {
    Error::Internal("a validation stopped".to_owned())
}

/// The variables that only another guide may set, if their names are close to a known one.
fn unchecked_variables(guide: &Guide, options: &ValidationOptions) -> Vec<UncheckedVariable> {
    let rule = Rule::UnknownVariable;
    if options.severity(rule, rule.text().severity).is_none() {
        return Vec::new();
    }
    let of_account = guide.variables.iter();
    let of_account = of_account.filter(|it| parse_account_name(&it.name).is_some());
    let (unknown, known): (Vec<_>, Vec<_>) = of_account.partition(|it| it.is_unknown());
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

/// A task with a solution in place of one that may not be known.
fn stand_in(
    guid: TaskId,
    new: Option<NewTask>,
    write: &WriteContext,
) -> Option<(SourceTask, Option<Vec<SourceStep>>)> {
    let task = Task {
        guid,
        ..Task::create(new?, None, write)
    };
    let new = NewStep {
        task: guid,
        product: task.product,
        title: "A solution".to_owned(),
        kind: StepKind::new(StepType::Solution, Cost::default(), None, None)?,
        content: StepContent::default(),
    };
    Some((task.into(), Some(vec![Step::create(new, write).into()])))
}
