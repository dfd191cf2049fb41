//! Planning an import: one walk down the document. References are resolved at the end,
//! as they may point to tasks further down.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Error, Missing, Precondition, Result, SizedResource,
    changes::Changes,
    etag::GuideEtag,
    ids::{StepId, TaskId},
    nesting::DepthLimit,
    size::exported_bytes,
    step::{ReferencedTask, Step, check_subtask_product},
    text::Name,
    violation::{Path, Violations},
};

use super::{
    Document, ImportContext, ImportOutcome, ImportPlan, Imported, MissingSubtasks, Origins,
    TaskTree,
};

mod managed;
mod planned;
mod steps;
mod tasks;
mod wiring;

use planned::{ManagedTask, PlannedStep, PlannedTask};

/// Plans an import. The document stays as it is, for another attempt.
pub fn plan<'a>(document: &'a Document, context: ImportContext<'a>) -> Result<ImportPlan> {
    let mut planner = Planner {
        context,
        depth: 0,
        depth_limits: Vec::new(),
        managed_tasks: 0,
        tasks: Vec::new(),
        task_ids: BTreeMap::new(),
        unlinked: Vec::new(),
        problems: Problems::default(),
        ignored: BTreeSet::new(),
    };
    planner.plan_task(document, context.existing, None);
    planner.resolve_references();
    planner.finish()
}

struct Planner<'a> {
    context: ImportContext<'a>,
    /// The depth of the task that is planned at the moment, counted from the outermost.
    depth: usize,
    /// Limits of the depth of a stored task that another task manages. The store checks them, as only
    /// it knows that depth.
    depth_limits: Vec<DepthLimit>,
    /// How many tasks the current one manages. Each takes a step of it, so those beyond the limit
    /// of steps are checked, but not planned: a small document has room for millions of values.
    managed_tasks: usize,
    /// All tasks of the guide; parents come before the tasks that they manage.
    tasks: Vec<PlannedTask<'a>>,
    /// The ids of planned tasks, by the document's ids.
    task_ids: BTreeMap<TaskId, TaskId>,
    /// Stored tasks that are no longer managed.
    unlinked: Vec<&'a TaskTree>,
    problems: Problems,
    /// Fields that were sent and not honored.
    ignored: BTreeSet<String>,
}

/// Why an import is refused.
#[derive(Default)]
struct Problems {
    /// Why a task or step was not decoded, if that is not a violation.
    failure: Option<Error>,
    violations: Violations,
    /// Steps in the document that the task does not have.
    unknown_steps: Vec<Missing<StepId>>,
    /// Tasks in the document that the account does not have.
    unknown_tasks: Vec<Missing<TaskId>>,
    /// Subtask steps whose tasks the account does not have, by the document's ids.
    missing_subtasks: Vec<StepId>,
    /// Steps that the document leaves out although they are to stay.
    absent_steps: Vec<StepId>,
}

impl Problems {
    /// The subtask steps that are left out.
    fn into_result(self, missing: MissingSubtasks) -> Result<BTreeSet<StepId>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.violations.into_result()?;
        if let Some(missing) = self.unknown_steps.into_iter().next() {
            return Err(Error::NoStepOfTask(missing));
        }
        if let Some(missing) = self.unknown_tasks.into_iter().next() {
            return Err(Error::TaskNotFound(missing));
        }
        if !self.absent_steps.is_empty() {
            let steps = self.absent_steps;
            return Err(Precondition::AbsentSteps { steps }.into());
        }
        let steps = self.missing_subtasks;
        if missing != MissingSubtasks::Skip && !steps.is_empty() {
            return Err(Precondition::MissingSubtasks { steps }.into());
        }
        Ok(steps.into_iter().collect())
    }
}

impl<'a> Planner<'a> {
    /// What was decoded, or `None` and its violations.
    fn accept<T>(&mut self, decoded: Result<T>) -> Option<T> {
        match decoded {
            Ok(decoded) => return Some(decoded),
            Err(Error::Invalid(violations)) => self.problems.violations.append(violations),
            Err(error) => self.problems.failure = Some(error),
        }
        None
    }

    /// Lists a field that was sent and not honored.
    fn ignore(&mut self, path: &str, field: &str) {
        let path = without_indexes(path);
        self.ignored.insert(format!("{path}.{field}"));
    }

    /// Lists a field that was sent with another value than it keeps.
    fn ignore_difference<T: PartialEq>(
        &mut self,
        sent: Option<T>,
        kept: T,
        path: &str,
        field: &str,
    ) {
        if sent.is_some_and(|sent| sent != kept) {
            self.ignore(path, field);
        }
    }

    /// The outermost task, if it exists and another task manages it.
    fn managed_target(&self) -> Option<TaskId> {
        let existing = &self.context.existing?.task;
        existing.managed.map(|_| existing.guid)
    }

    /// Requires that the task that is planned at the moment is not deeper than a limit.
    fn limit_depth(&mut self, limit: DepthLimit) {
        let above = self.depth.saturating_sub(1);
        let max_depth = limit.max_depth.saturating_sub(above);
        if max_depth == 0 {
            self.problems.violations.push(limit.violation);
        } else if self.managed_target().is_some() {
            self.depth_limits.push(DepthLimit { max_depth, ..limit });
        }
    }

    /// Sets task, product and title of every subtask step.
    fn resolve_references(&mut self) {
        let mut tasks = std::mem::take(&mut self.tasks);
        let planned = tasks.iter().filter_map(|task| task.after.as_ref());
        let planned: BTreeMap<TaskId, ReferencedTask> = planned
            .map(|task| (task.guid, ReferencedTask::to(task)))
            .collect();
        for task in &mut tasks {
            task.steps.retain_mut(|step| self.resolve(step, &planned));
        }
        self.tasks = tasks;
    }

    /// Returns whether the step refers to no task, or the account has the task.
    fn resolve(
        &mut self,
        step: &mut PlannedStep<'a>,
        planned: &BTreeMap<TaskId, ReferencedTask>,
    ) -> bool {
        let Some(subtask) = step.after.kind.subtask() else {
            return true;
        };
        let document = step.document;
        let path = document.map_or("", |document| &document.path);
        let task = document.and_then(|document| document.subtask_id);
        let task = task.unwrap_or(subtask.task);
        let sent = self.task_ids.get(&task).copied().unwrap_or(task);
        // A wiring step refers to its managed task, whatever was sent.
        let id = step.after.link.unwrap_or(sent);
        if id != sent && document.is_some() {
            self.ignore(path, "subtask_id");
        }
        let found = planned
            .get(&id)
            .or_else(|| self.context.referenced.get(&id));
        let former = || former_reference(step.before?, id);
        let Some(target) = found.cloned().or_else(former) else {
            match self.context.missing_subtasks {
                MissingSubtasks::NotFound => {
                    let field = Path::root(path).field("subtask_id").to_string().into();
                    self.problems
                        .unknown_tasks
                        .push(Missing { id: task, field });
                }
                MissingSubtasks::Refuse | MissingSubtasks::Skip => {
                    self.problems.missing_subtasks.extend(step.origin.guid);
                }
            }
            return false;
        };
        if let Some(document) = document {
            if let Some(product) = document.subtask_pid.filter(|_| id == sent) {
                let (at, violations) = (Path::root(path), &mut self.problems.violations);
                check_subtask_product(product, target.product, &at, violations);
            }
            let title = document.title.as_deref();
            self.ignore_difference(title, target.name.as_str(), path, "title");
        }
        step.after.refer_to(target);
        true
    }

    fn finish(mut self) -> Result<ImportPlan> {
        let managed_target = self.managed_target();
        let ImportContext {
            write,
            existing,
            missing_subtasks,
            shows_guide,
            ..
        } = self.context;
        let skipped = self.problems.into_result(missing_subtasks)?;
        if let Some(taken) = self.tasks.iter().find_map(PlannedTask::taken_step_id) {
            return Err(Error::ExternalIdTaken(taken));
        }
        for planned in &mut self.tasks {
            planned.complete(write);
        }
        let row_versions = self.tasks.iter().flat_map(PlannedTask::row_versions);
        let guide_etag = GuideEtag::of_row_versions(row_versions.collect());
        let guide = shows_guide.then(|| shown_guide(&self.tasks, write.max_message_bytes));
        let mut changes = Changes::default();
        if let Some(target) = managed_target {
            changes.limit_depth(target, self.depth_limits);
        }
        let (mut origins, mut root) = (Origins::default(), None);
        for planned in self.tasks {
            let task = planned.add_to(&mut changes, &mut origins, write)?;
            root = root.or(task);
        }
        for tree in self.unlinked {
            let before = tree.task.clone();
            changes.put_task(Some(before.clone()), before.unmanaged(), write)?;
        }
        let imported = Imported {
            outcome: match (existing, changes.is_empty()) {
                (None, _) => ImportOutcome::Created,
                (Some(_), false) => ImportOutcome::Updated,
                (Some(_), true) => ImportOutcome::Unchanged,
            },
            task: root.ok_or_else(no_task)?,
            guide_etag,
            previous_revision: 0,
            guide: guide.transpose()?.map(Box::new),
            ignored: self.ignored,
            skipped,
            replaced: BTreeMap::new(),
        };
        Ok(ImportPlan {
            changes,
            imported,
            origins,
        })
    }
}

fn no_task() -> Error {
    Error::Internal("an import of no task".to_owned())
}

/// The guide of completed tasks. Fails if it is too large to be returned.
fn shown_guide(tasks: &[PlannedTask<'_>], limit: usize) -> Result<TaskTree> {
    let bytes = tasks.iter().map(|planned| {
        let steps = planned.steps.iter().map(|step| step.after.as_ref());
        let after = planned.after.as_ref();
        after.map_or(0, |task| exported_bytes(task, steps))
    });
    if bytes.fold(0, usize::saturating_add) > limit {
        let resource = SizedResource::Guide;
        return Err(Error::TooLarge { resource, limit });
    }
    // Managed tasks come after the tasks that manage them.
    let (root, below) = tasks.split_first().ok_or_else(no_task)?;
    let mut managed = BTreeMap::new();
    for planned in below.iter().rev() {
        if let Some(tree) = planned.tree(&mut managed)
            && let Some(by) = tree.task.managed
        {
            let of_parent: &mut BTreeMap<_, _> = managed.entry(by.parent).or_default();
            of_parent.insert(tree.task.guid, tree);
        }
    }
    root.tree(&mut managed).ok_or_else(no_task)
}

/// A path as in `ignored_paths`: without list indexes and map keys.
pub fn without_indexes(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut depth = 0_u32;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// The reference of a stored step, if it is to this task. The step has the task's name and
/// product, so the task itself need not be read.
fn former_reference(step: &Step, task: TaskId) -> Option<ReferencedTask> {
    let subtask = step.kind.subtask()?;
    let name = Name::parse(step.title.clone()).ok()?;
    (subtask.task == task).then_some(ReferencedTask {
        task,
        product: subtask.product,
        name,
    })
}
