//! Updates of steps. The updated step is checked, not the update alone.

use crate::domain::{
    error::{Error, Precondition},
    feedback::Feedback,
    ids::{ProductId, TaskId},
    link::{self, LinkChanges},
    patch::{Deferred, Edit},
    task::check_languages,
    text::Title,
    violation::{Path, Reason, Violations},
};

use super::{
    ContentPatch, Cost, ReferencedTask, Step, StepKind, SubtaskRef, check_subtask_product,
};

/// The path of a step in an update request.
const STEP: Path<'static> = Path::root("step");

/// An update of a step.
#[derive(Clone, Debug, Default)]
pub struct StepPatch {
    /// Violations found while the request was decoded.
    pub violations: Violations,
    /// Type-dependent fields that were sent or are in the mask. They are listed as ignored
    /// if the step's type does not have them.
    pub type_dependent: Vec<&'static str>,
    /// The heading; ignored for a subtask step.
    pub title: Edit<Deferred<Title>>,
    /// The task of a subtask step; ignored for other types.
    pub subtask_id: Edit<Deferred<TaskId>>,
    /// Its product; ignored for other types.
    pub subtask_pid: Edit<Deferred<ProductId>>,
    /// The cost of trying it.
    pub cost: Edit<Cost>,
    /// The question.
    pub feedback: Edit<Feedback>,
    /// The fields that steps of every type have.
    pub content: ContentPatch,
}

impl StepPatch {
    /// The task that the update sets for a subtask step, if any.
    pub fn new_subtask(&self) -> Option<TaskId> {
        match &self.subtask_id {
            Edit::Set(Ok(task)) => Some(*task),
            Edit::Set(Err(_)) | Edit::Clear | Edit::Keep => None,
        }
    }
}

/// The result of an update.
#[derive(Debug)]
pub struct MergedStep {
    /// The step after the update.
    pub step: Step,
    /// Fields of the update that are not honored.
    pub ignored: Vec<&'static str>,
    /// How the update changes managed tasks.
    pub links: LinkChanges,
    /// The task that the update refers to, if the account does not have it.
    pub missing: Option<TaskId>,
}

impl Step {
    /// Applies an update. `target` is the task of [`StepPatch::new_subtask`], if the account
    /// has it. New links are refused, as only an import creates them.
    pub fn merge(
        &self,
        patch: StepPatch,
        target: Option<ReferencedTask>,
    ) -> Result<MergedStep, Error> {
        let mut violations = Violations::new();
        let merged = self.merge_at(patch, target, &STEP, &mut violations);
        violations.into_result()?;
        if let Some(task) = merged.missing {
            return Err(Error::task_not_found(task, "step.subtask_id"));
        }
        if !merged.links.unmatched.is_empty() {
            let was_linked = self.kind.feedback().is_some_and(|before| before.linked);
            return Err(match was_linked {
                true => new_linked_values(&merged.links.unmatched),
                false => linked_import_only(),
            });
        }
        Ok(merged)
    }

    /// Applies an update to the step at a path of a request, and adds its violations.
    pub fn merge_at(
        &self,
        patch: StepPatch,
        target: Option<ReferencedTask>,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> MergedStep {
        let StepPatch {
            violations: earlier,
            type_dependent,
            title,
            subtask_id,
            subtask_pid,
            cost,
            feedback,
            content,
        } = patch;
        violations.append(earlier);
        let mut step = self.clone();
        let is_subtask = self.kind.subtask().is_some();
        // A wiring step always refers to its managed task.
        let honors_subtask = is_subtask && self.link.is_none();
        let honors = |field: &str| match field {
            "title" => !is_subtask,
            // `subtask_id` and `subtask_pid`.
            _ => honors_subtask,
        };
        let ignored = type_dependent
            .into_iter()
            .filter(|field| !honors(field))
            .collect();
        let mut missing = None;
        if honors_subtask {
            missing = step.merge_subtask(subtask_id, subtask_pid, target, at, violations);
        } else if !is_subtask {
            step.merge_title(title, at, violations);
        }
        step.merge_cost(cost, at, violations);
        let links = step.merge_feedback(feedback, at, violations);
        content.apply(&mut step.content);
        check_languages(at, step.content.translations.len(), violations);
        MergedStep {
            step,
            ignored,
            links,
            missing,
        }
    }

    fn merge_title(
        &mut self,
        edit: Edit<Deferred<Title>>,
        at: &Path<'_>,
        violations: &mut Violations,
    ) {
        let Some(new) = edit.required(&at.field("title"), violations) else {
            return;
        };
        match &mut self.kind {
            StepKind::Solution { title, .. }
            | StepKind::Observation { title, .. }
            | StepKind::Information { title, .. }
            | StepKind::End { title, .. }
            | StepKind::Idp { title, .. } => {
                self.title = new.as_str().to_owned();
                *title = new;
            }
            StepKind::Subtask { .. } => {}
        }
    }

    /// Returns the task that the update refers to, if the account does not have it.
    fn merge_subtask(
        &mut self,
        id: Edit<Deferred<TaskId>>,
        product: Edit<Deferred<ProductId>>,
        target: Option<ReferencedTask>,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> Option<TaskId> {
        let StepKind::Subtask { subtask, .. } = &mut self.kind else {
            return None;
        };
        let mut missing = None;
        let mut task_product = matches!(id, Edit::Keep).then_some(subtask.product);
        if let Some(task) = id.required(&at.field("subtask_id"), violations) {
            match target {
                None => missing = Some(task),
                Some(found) => {
                    *subtask = SubtaskRef {
                        task: found.task,
                        product: found.product,
                    };
                    self.title = found.name.into_string();
                    task_product = Some(found.product);
                }
            }
        }
        let sent = product.required(&at.field("subtask_pid"), violations);
        if let (Some(sent), Some(task_product)) = (sent, task_product) {
            check_subtask_product(sent, task_product, at, violations);
        }
        missing
    }

    fn merge_cost(&mut self, edit: Edit<Cost>, at: &Path<'_>, violations: &mut Violations) {
        let new = match edit {
            Edit::Keep => return,
            Edit::Clear => Cost::default(),
            Edit::Set(cost) => cost,
        };
        match &mut self.kind {
            StepKind::Solution { cost, .. } | StepKind::Idp { cost, .. } => *cost = new,
            StepKind::Observation { .. }
            | StepKind::Information { .. }
            | StepKind::Subtask { .. }
            | StepKind::End { .. } => {
                if new != Cost::default() {
                    violations.add(&at.field("cost"), Reason::FieldOutOfRange, COST_NOT_ALLOWED);
                }
            }
        }
    }

    /// Returns how the update changes managed tasks.
    fn merge_feedback(
        &mut self,
        edit: Edit<Feedback>,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> LinkChanges {
        let path = at.field("feedback_config");
        let new = match edit {
            Edit::Keep => return LinkChanges::default(),
            Edit::Clear => None,
            Edit::Set(new) => Some(new),
        };
        match &mut self.kind {
            StepKind::Observation { feedback, .. } => {
                let Some(mut new) = new else {
                    violations.add(
                        &path,
                        Reason::FieldRequired,
                        "is required for an observation",
                    );
                    return LinkChanges::default();
                };
                let changes = link::copy_links(feedback, &mut new);
                *feedback = new;
                changes
            }
            StepKind::Solution { feedback, .. }
            | StepKind::Information { feedback, .. }
            | StepKind::Subtask { feedback, .. }
            | StepKind::End { feedback, .. }
            | StepKind::Idp { feedback, .. } => {
                if new.as_ref().is_some_and(|new| new.linked) {
                    violations.add(
                        &path.index(0).field("linked"),
                        Reason::FieldInvalid,
                        LINKED_OBSERVATIONS_ONLY,
                    );
                }
                *feedback = new;
                LinkChanges::default()
            }
        }
    }
}

/// The violation of a cost on a type without one.
pub const COST_NOT_ALLOWED: &str = "must be 0 for this type of step";
/// The violation of links on another type than an observation.
pub const LINKED_OBSERVATIONS_ONLY: &str = "only an observation can be linked";

/// The error of a question that is linked outside of an import.
pub fn linked_import_only() -> Error {
    let question = STEP.field("feedback_config");
    let question = question.index(0);
    Precondition::LinkedImportOnly {
        paths: vec![question.field("linked").to_string()],
        new_values: false,
    }
    .into()
}

/// The error of values that are added to a linked question outside of an import.
fn new_linked_values(indexes: &[usize]) -> Error {
    let question = STEP.field("feedback_config");
    let question = question.index(0);
    let values = question.field("values");
    let keys = indexes
        .iter()
        .map(|index| values.index(*index).field("key").to_string());
    Precondition::LinkedImportOnly {
        paths: keys.collect(),
        new_values: true,
    }
    .into()
}
