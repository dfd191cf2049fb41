//! Updates of steps, checked against what they make of the step.

use crate::domain::{
    dependency::Group,
    error::{Error, Precondition},
    feedback::Feedback,
    ids::{ProductId, TaskId},
    json::Instruction,
    link::{self, LinkChanges},
    patch::{Deferred, Edit},
    task::{Published, check_languages},
    text::{Body, Tag, Title},
    translation::{StepOverlay, StepOverlayEdit, TranslationsEdit},
    violation::{Path, Reason, Violations},
};

use super::{Cost, Looping, ReferencedTask, Step, StepKind, SubtaskRef};

/// Where violations of a step's own fields are reported.
const STEP: Path<'static> = Path::root("step");

/// What an update says of a step.
#[derive(Clone, Debug, Default)]
pub struct StepPatch {
    /// What was wrong with the request so far.
    pub violations: Violations,
    /// Honored fields of some types that were sent or named in the mask, so
    /// that a receipt is due when this step's type ignores them.
    pub sent: Vec<&'static str>,
    /// The heading; ignored for a subtask.
    pub title: Edit<Deferred<Title>>,
    /// The task of a subtask; ignored for other types.
    pub subtask_id: Edit<Deferred<TaskId>>,
    /// Its product; ignored for other types.
    pub subtask_pid: Edit<Deferred<ProductId>>,
    /// What trying costs.
    pub cost: Edit<Cost>,
    /// The question.
    pub feedback: Edit<Feedback>,
    /// The text.
    pub body: Edit<Body>,
    /// When it is visible.
    pub dependencies: Edit<Group>,
    /// Instructions.
    pub instructions: Option<Vec<Instruction>>,
    /// How it repeats.
    pub looping: Edit<Looping>,
    /// Parts needed.
    pub parts: Option<Vec<Tag>>,
    /// Whether it is shown.
    pub published: Edit<Published>,
    /// Skills needed.
    pub skills: Option<Vec<Tag>>,
    /// Tags.
    pub tags: Option<Vec<Tag>>,
    /// Its texts in other languages.
    pub translations: TranslationsEdit<StepOverlay, StepOverlayEdit>,
}

impl StepPatch {
    /// The task that a subtask step would stand for after the update, if the
    /// update names one.
    pub fn new_subtask(&self) -> Option<TaskId> {
        match &self.subtask_id {
            Edit::Set(Ok(task)) => Some(*task),
            Edit::Set(Err(_)) | Edit::Clear | Edit::Keep => None,
        }
    }
}

/// A step after an update.
#[derive(Debug)]
pub struct MergedStep {
    /// The step.
    pub step: Step,
    /// Fields of the update that were not honored.
    pub ignored: Vec<&'static str>,
    /// What the update means for managed tasks.
    pub links: LinkChanges,
    /// The task that the update names and the account does not have.
    pub missing: Option<TaskId>,
}

impl Step {
    /// The step after an update of its own. Everything is checked against the
    /// merged step. `target` is the task that [`StepPatch::new_subtask`] names,
    /// if it is in the account. New links are refused: an import makes those.
    pub fn merge(
        &self,
        patch: StepPatch,
        target: Option<ReferencedTask>,
    ) -> Result<MergedStep, Error> {
        let mut violations = Violations::new();
        let merged = self.merge_at(patch, target, &STEP, &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        if let Some(task) = merged.missing {
            return Err(Error::TaskNotFound(task));
        }
        if !merged.links.unmatched.is_empty() {
            return Err(linked_import_only());
        }
        Ok(merged)
    }

    /// The step after an update, as part of something larger: `at` is where the
    /// step stands in the request, and what is wrong is noted.
    pub fn merge_at(
        &self,
        mut patch: StepPatch,
        target: Option<ReferencedTask>,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> MergedStep {
        violations.append(std::mem::take(&mut patch.violations));
        let mut step = self.clone();
        let is_subtask = self.kind.subtask().is_some();
        // A wiring step refers to the task that it wires and to no other.
        let honors_subtask = is_subtask && self.link.is_none();
        let honors = |field: &str| match field {
            "title" => !is_subtask,
            _ => honors_subtask,
        };
        let ignored = patch
            .sent
            .iter()
            .copied()
            .filter(|field| !honors(field))
            .collect();
        let mut missing = None;
        if honors_subtask {
            missing = step.merge_subtask(&patch, target, at, violations);
        } else if !is_subtask {
            step.merge_title(patch.title, at, violations);
        }
        step.merge_cost(patch.cost, at, violations);
        let links = step.merge_feedback(patch.feedback, at, violations);
        let content = &mut step.content;
        patch.body.apply(&mut content.body);
        patch.dependencies.apply(&mut content.dependencies);
        patch.looping.apply(&mut content.looping);
        patch
            .published
            .apply_or(&mut content.published, Published::default());
        replace(patch.instructions, &mut content.instructions);
        replace(patch.parts, &mut content.parts);
        replace(patch.skills, &mut content.skills);
        replace(patch.tags, &mut content.tags);
        patch.translations.apply(&mut content.translations);
        check_languages(at, content.translations.len(), violations);
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
        let new = match edit {
            Edit::Keep => return,
            Edit::Clear => {
                violations.add(&at.field("title"), Reason::FieldRequired, "is required");
                return;
            }
            Edit::Set(Err(violation)) => return violations.push(violation),
            Edit::Set(Ok(new)) => new,
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

    /// Returns the task that the update names and the account does not have.
    fn merge_subtask(
        &mut self,
        patch: &StepPatch,
        target: Option<ReferencedTask>,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> Option<TaskId> {
        let StepKind::Subtask { subtask, .. } = &mut self.kind else {
            return None;
        };
        let mut missing = None;
        let mut current = None;
        match &patch.subtask_id {
            Edit::Keep => current = Some(subtask.product),
            Edit::Clear => {
                violations.add(
                    &at.field("subtask_id"),
                    Reason::FieldRequired,
                    "is required",
                );
            }
            Edit::Set(Err(violation)) => violations.push(violation.clone()),
            Edit::Set(Ok(task)) => match &target {
                None => missing = Some(*task),
                Some(found) => {
                    current = Some(found.product);
                    *subtask = SubtaskRef {
                        task: found.task,
                        product: found.product,
                    };
                    self.title = found.name.as_str().to_owned();
                }
            },
        }
        match &patch.subtask_pid {
            Edit::Keep => {}
            Edit::Clear => {
                violations.add(
                    &at.field("subtask_pid"),
                    Reason::FieldRequired,
                    "is required",
                );
            }
            Edit::Set(Err(violation)) => violations.push(violation.clone()),
            Edit::Set(Ok(product)) if current.is_some_and(|current| current != *product) => {
                violations.add(
                    &at.field("subtask_pid"),
                    Reason::FieldInvalid,
                    "is not the product of the task that `subtask_id` names",
                );
            }
            Edit::Set(Ok(_)) => {}
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

    /// Returns what the update means for managed tasks.
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

/// Why a cost is refused on a type that has none.
pub const COST_NOT_ALLOWED: &str = "must be 0 for this type of step";
/// Why links are refused on a type that has none.
pub const LINKED_OBSERVATIONS_ONLY: &str = "only an observation can be linked";

/// The failure of asking for links outside of an import.
pub fn linked_import_only() -> Error {
    Precondition::LinkedImportOnly {
        path: STEP
            .field("feedback_config")
            .index(0)
            .field("linked")
            .to_string(),
    }
    .into()
}

fn replace<T>(edit: Option<Vec<T>>, field: &mut Vec<T>) {
    if let Some(new) = edit {
        *field = new;
    }
}
