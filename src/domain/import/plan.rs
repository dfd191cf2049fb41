//! Making the plan: one walk down the document, then references are resolved,
//! as they may point forward.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Error, Precondition,
    changes::Changes,
    decide::WriteContext,
    ids::{ProductId, StepId, TaskId},
    step::{ReferencedTask, Step, StepKind, SubtaskRef},
    task::ManagedBy,
    text::Name,
    violation::{Path, Violations},
};

use super::{AbsentSteps, Document, ImportContext, ImportPlan};

mod draft;
mod steps;
mod tasks;

use draft::TaskDraft;
pub(super) use draft::{Draft, Reference};

/// Plans an import.
pub fn plan(document: Document, context: ImportContext<'_>) -> Result<ImportPlan, Error> {
    let ImportContext {
        write,
        existing,
        referenced,
        absent,
    } = context;
    let mut planner = Planner {
        write,
        referenced,
        policy: absent,
        again: existing.is_some(),
        tasks: Vec::new(),
        ignored: BTreeSet::new(),
        violations: Violations::new(),
        unknown: Vec::new(),
        missing: Vec::new(),
        absent: Vec::new(),
        aliases: BTreeMap::new(),
    };
    planner.task(document, existing, None);
    planner.resolve_references();
    planner.finish()
}

/// The value that manages a task.
struct Manager {
    managed: ManagedBy,
    name: Name,
    product: ProductId,
}

struct Planner<'a> {
    write: &'a WriteContext,
    referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    policy: AbsentSteps,
    /// Whether the outermost task existed before.
    again: bool,
    tasks: Vec<TaskDraft>,
    ignored: BTreeSet<String>,
    violations: Violations,
    /// Steps that the document names and the task does not have.
    unknown: Vec<StepId>,
    /// Tasks that the document names and the account does not have.
    missing: Vec<TaskId>,
    /// Steps left out, under a policy that refuses that.
    absent: Vec<StepId>,
    /// The document's ids of tasks it holds.
    aliases: BTreeMap<TaskId, TaskId>,
}

impl Planner<'_> {
    /// Lists something that was sent and not honored.
    pub(super) fn ignore(&mut self, path: &str, field: &str) {
        let plain = without_indexes(path);
        self.ignored.insert(format!("{plain}.{field}"));
    }

    /// Gives every subtask step its task and that task's name.
    pub(super) fn resolve_references(&mut self) {
        let planned: BTreeMap<TaskId, ReferencedTask> = self
            .tasks
            .iter()
            .filter_map(|draft| draft.after.as_ref())
            .map(|task| (task.guid, ReferencedTask::to(task)))
            .collect();
        let mut tasks = std::mem::take(&mut self.tasks);
        for draft in tasks.iter_mut().flat_map(|task| &mut task.steps) {
            if let Some(reference) = draft.reference.take() {
                self.resolve(draft, reference, &planned);
            }
        }
        self.tasks = tasks;
    }

    pub(super) fn resolve(
        &mut self,
        draft: &mut Draft,
        reference: Reference,
        planned: &BTreeMap<TaskId, ReferencedTask>,
    ) {
        let Reference {
            task,
            product,
            title,
            path,
        } = reference;
        let sent = self.aliases.get(&task).copied().unwrap_or(task);
        // A wiring step refers to the task that it wires, whatever was sent.
        let id = draft.after.link.unwrap_or(sent);
        if id != sent && !path.is_empty() {
            self.ignore(&path, "subtask_id");
        }
        let found = planned.get(&id).or_else(|| self.referenced.get(&id));
        let stood = || stood(draft.before.as_ref()?, id);
        let Some(target) = found.cloned().or_else(stood) else {
            self.missing.push(task);
            return;
        };
        if let Some(product) = product.filter(|_| id == sent) {
            target.check_product(product, &Path::root(&path), &mut self.violations);
        }
        if title.is_some_and(|title| title != target.name.as_str()) {
            self.ignore(&path, "title");
        }
        if let StepKind::Subtask { subtask, .. } = &mut draft.after.kind {
            *subtask = SubtaskRef {
                task: target.task,
                product: target.product,
            };
            draft.after.title = target.name.into_string();
        }
    }

    pub(super) fn finish(self) -> Result<ImportPlan, Error> {
        if !self.violations.is_empty() {
            return Err(Error::Invalid(self.violations));
        }
        if let Some(step) = self.unknown.first() {
            return Err(Error::StepNotFound(*step));
        }
        if let Some(task) = self.missing.first() {
            return Err(Error::TaskNotFound(*task));
        }
        if !self.absent.is_empty() {
            return Err(Precondition::AbsentSteps { steps: self.absent }.into());
        }
        let mut changes = Changes::default();
        let mut imported = None;
        for draft in self.tasks {
            let task = draft.settle(&mut changes, self.write)?;
            imported = imported.or(task);
        }
        Ok(ImportPlan {
            changes,
            task: imported.ok_or_else(|| Error::Internal("an import of no task".to_owned()))?,
            ignored: self.ignored,
        })
    }
}

/// A path as receipts name it: list indexes and map keys left out.
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

/// The task that a step referred to before, if it is this one: it need not be
/// looked up.
fn stood(before: &Step, task: TaskId) -> Option<ReferencedTask> {
    let subtask = before.kind.subtask()?;
    let name = Name::parse(before.title.clone()).ok()?;
    (subtask.task == task).then_some(ReferencedTask {
        task,
        product: subtask.product,
        name,
    })
}
