//! Planning an import: one walk down the document. References are resolved at the end,
//! as they may point to tasks further down.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Error, Missing, Precondition,
    changes::Changes,
    decide::WriteContext,
    ids::{StepId, TaskId},
    nesting::DepthLimit,
    step::{ReferencedTask, Step, check_subtask_product},
    text::Name,
    violation::{Path, Violations},
};

use super::{
    AbsentFields, AbsentSteps, Document, ImportContext, ImportOutcome, ImportPlan, Origin, Origins,
};

mod guide;
mod managed;
mod planned;
mod restore;
mod steps;
mod tasks;
mod wiring;

use planned::{ManagedTaskIds, PlannedStep, PlannedTask, SubtaskReference};
pub use restore::{RestoreContext, RestorePlan, restore};

/// Plans an import. The document stays as it is, for another attempt.
pub fn plan(document: &Document, context: ImportContext<'_>) -> Result<ImportPlan, Error> {
    let ImportContext {
        write,
        existing,
        referenced,
        absent,
        absent_fields,
        shows_guide,
    } = context;
    let mut planner = Planner {
        write,
        referenced,
        absent_steps: absent,
        absent_fields,
        shows_guide,
        reimport: existing.is_some(),
        managed_target: existing
            .filter(|tree| tree.task.managed.is_some())
            .map(|tree| tree.task.guid),
        depth: 0,
        depth_limits: Vec::new(),
        managed_tasks: 0,
        tasks: Vec::new(),
        task_ids: BTreeMap::new(),
        ignored: BTreeSet::new(),
        origins: Origins::default(),
        violations: Violations::new(),
        unknown_steps: Vec::new(),
        unknown_tasks: Vec::new(),
        refused_steps: Vec::new(),
    };
    planner.plan_task(document, existing, None);
    planner.resolve_references();
    planner.finish()
}

struct Planner<'a> {
    write: &'a WriteContext,
    referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    absent_steps: AbsentSteps,
    absent_fields: AbsentFields,
    /// Whether the plan has the guide after the import.
    shows_guide: bool,
    /// Whether the outermost task exists.
    reimport: bool,
    /// The outermost task, if it exists and another task manages it.
    managed_target: Option<TaskId>,
    /// The depth of the task that is planned at the moment, counted from the outermost.
    depth: usize,
    /// Limits of the managed target's depth. The store checks them, as only it knows that depth.
    depth_limits: Vec<DepthLimit>,
    /// How many tasks the current one manages. Each takes a step of it, so those beyond the limit
    /// of steps are checked, but not planned: a small document has room for millions of values.
    managed_tasks: usize,
    /// The planned tasks; parents come before the tasks that they manage.
    tasks: Vec<PlannedTask<'a>>,
    /// The stored ids of planned tasks, by the document's ids.
    task_ids: BTreeMap<TaskId, TaskId>,
    ignored: BTreeSet<String>,
    origins: Origins,
    violations: Violations,
    /// Steps in the document that the task does not have.
    unknown_steps: Vec<Missing<StepId>>,
    /// Tasks in the document that the account does not have.
    unknown_tasks: Vec<Missing<TaskId>>,
    /// Steps that the document leaves out under [`AbsentSteps::Refuse`].
    refused_steps: Vec<StepId>,
}

impl Planner<'_> {
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

    /// Requires that the task that is planned at the moment is not deeper than a limit.
    fn limit_depth(&mut self, limit: DepthLimit) {
        let above = self.depth.saturating_sub(1);
        let max_depth = limit.max_depth.saturating_sub(above);
        if max_depth == 0 {
            self.violations.push(limit.violation);
        } else if self.managed_target.is_some() {
            self.depth_limits.push(DepthLimit { max_depth, ..limit });
        }
    }

    /// Sets task, product and title of every subtask step.
    fn resolve_references(&mut self) {
        let planned: BTreeMap<TaskId, ReferencedTask> = self
            .tasks
            .iter()
            .filter_map(|task| task.after.as_ref())
            .map(|task| (task.guid, ReferencedTask::to(task)))
            .collect();
        let mut tasks = std::mem::take(&mut self.tasks);
        for step in tasks.iter_mut().flat_map(|task| &mut task.steps) {
            if let Some(reference) = step.reference.take() {
                self.resolve(step, reference, &planned);
            }
        }
        self.tasks = tasks;
    }

    fn resolve(
        &mut self,
        step: &mut PlannedStep<'_>,
        reference: SubtaskReference,
        planned: &BTreeMap<TaskId, ReferencedTask>,
    ) {
        let SubtaskReference {
            task,
            product,
            title,
            is_cleared: _,
            path,
        } = reference;
        let sent = self.task_ids.get(&task).copied().unwrap_or(task);
        // A wiring step refers to its managed task, whatever was sent.
        let id = step.after.link.unwrap_or(sent);
        if id != sent && !path.is_empty() {
            self.ignore(&path, "subtask_id");
        }
        let found = planned.get(&id).or_else(|| self.referenced.get(&id));
        let former = || former_reference(step.before?, id);
        let Some(target) = found.cloned().or_else(former) else {
            let field = Path::root(&path).field("subtask_id").to_string().into();
            self.unknown_tasks.push(Missing { id: task, field });
            return;
        };
        if let Some(product) = product.filter(|_| id == sent) {
            let at = Path::root(&path);
            check_subtask_product(product, target.product, &at, &mut self.violations);
        }
        self.ignore_difference(title.as_deref(), target.name.as_str(), &path, "title");
        step.after.refer_to(target);
    }

    fn finish(mut self) -> Result<ImportPlan, Error> {
        self.violations.into_result()?;
        if let Some(missing) = self.unknown_steps.into_iter().next() {
            return Err(Error::NoStepOfTask(missing));
        }
        if let Some(missing) = self.unknown_tasks.into_iter().next() {
            return Err(Error::TaskNotFound(missing));
        }
        if !self.refused_steps.is_empty() {
            let steps = self.refused_steps;
            return Err(Precondition::AbsentSteps { steps }.into());
        }
        let step_id = |step| external_id_at(self.origins.steps.get(&step));
        let mut taken = self.tasks.iter();
        if let Some(taken) = taken.find_map(|task| task.taken_step_id(step_id)) {
            return Err(Error::ExternalIdTaken(taken));
        }
        let mut changes = Changes::default();
        if let Some(target) = self.managed_target {
            changes.limit_depth(target, self.depth_limits);
        }
        for planned in &mut self.tasks {
            planned.complete(self.write);
        }
        let guide = guide::guide(&self.tasks, self.shows_guide, self.write);
        let (guide_etag, guide) = guide.ok_or_else(no_task)?;
        let mut imported = None;
        for planned in self.tasks {
            let origin = planned.after.as_ref().map(|task| task.guid);
            let origin = origin.and_then(|task| self.origins.tasks.get(&task));
            let claimed = planned.claimed_id(external_id_at(origin));
            changes.claimed_ids.extend(claimed);
            let task = planned.add_to(&mut changes, self.write)?;
            imported = imported.or(task);
        }
        Ok(ImportPlan {
            outcome: match (self.reimport, changes.is_empty()) {
                (false, _) => ImportOutcome::Created,
                (true, false) => ImportOutcome::Updated,
                (true, true) => ImportOutcome::Unchanged,
            },
            changes,
            task: imported.ok_or_else(no_task)?,
            guide_etag,
            guide: guide?,
            ignored: self.ignored,
            origins: self.origins,
        })
    }
}

/// Where the request has the external id of a task or step; of a wiring step that is listed without
/// its id, the document.
fn external_id_at<Id>(origin: Option<&Origin<Id>>) -> String {
    match origin {
        Some(origin) => Path::root(origin.path.as_str())
            .field("external_id")
            .to_string(),
        None => "document".to_owned(),
    }
}

fn no_task() -> Error {
    Error::Internal("an import of no task".to_owned())
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
