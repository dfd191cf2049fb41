//! New steps, updates of steps, and steps of documents, which are a patch of a blank step or of a
//! stored one. The result is checked, not the patch alone.

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
    ContentPatch, Cost, NewStep, ReferencedTask, Step, StepContent, StepKind, StepType, SubtaskRef,
};

/// The path of a step in an update request.
const STEP: Path<'static> = Path::root("step");

/// The fields of a step that were sent, or that an update clears.
#[derive(Clone, Debug, Default)]
pub struct StepPatch {
    /// Violations found while the request was decoded.
    pub violations: Violations,
    /// Type-dependent fields that were sent or are in the mask. They are listed as ignored
    /// if the step's type does not have them.
    pub type_dependent: Vec<&'static str>,
    /// The product; only a new step takes it.
    pub product: Edit<Deferred<ProductId>>,
    /// The type; only a new step takes it.
    pub step_type: Edit<Deferred<StepType>>,
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
    /// Whether a linked question was sent, valid or not.
    pub linked: bool,
    /// The fields that steps of every type have.
    pub content: ContentPatch,
}

impl StepPatch {
    /// The task that the update sets for a subtask step, if any.
    pub fn new_subtask(&self) -> Option<TaskId> {
        self.subtask_id.valid().copied()
    }

    /// Adds all violations, as it is not known which fields the step honors.
    pub fn refuse_deferred(self, violations: &mut Violations) {
        violations.append(self.violations);
        self.title.honored(violations);
        self.subtask_id.honored(violations);
        self.subtask_pid.honored(violations);
    }
}

/// What a patch does beside its changes of the step.
#[derive(Debug)]
pub struct Merged {
    /// Fields of the patch that are not honored.
    pub ignored: Vec<&'static str>,
    /// How the patch changes managed tasks.
    pub links: LinkChanges,
}

impl NewStep {
    /// The step that a patch makes of a blank one, and the fields that are not honored. Adds all
    /// violations; without them there is a step. A task of `None` is refused already.
    pub fn from_patch(
        task: Option<TaskId>,
        mut patch: StepPatch,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> (Option<Self>, Vec<&'static str>) {
        let earlier = violations.total();
        let product = std::mem::take(&mut patch.product).honored(violations);
        let product = product.required(false, &at.field("product_id"), violations);
        let step_type = std::mem::take(&mut patch.step_type).honored(violations);
        let Some(step_type) = step_type.required(false, &at.field("type"), violations) else {
            patch.refuse_deferred(violations);
            return (None, Vec::new());
        };
        let mut title = String::new();
        let mut kind = StepKind {
            step_type,
            cost: Cost::default(),
            feedback: None,
            subtask: None,
        };
        let mut content = StepContent::default();
        let blank = Editable {
            title: &mut title,
            kind: &mut kind,
            content: &mut content,
        };
        let Merged { ignored, .. } = blank.merge(patch, at, violations);
        let new = || {
            Some(Self {
                task: task?,
                product: product?,
                title,
                kind,
                content,
            })
        };
        let new = new().filter(|_| violations.total() == earlier);
        (new, ignored)
    }
}

impl Step {
    /// The step with the fields of an update, and how its links change. `target` is the task that
    /// the update sets for a subtask step. New links are refused, as only an import creates them.
    pub fn edited(
        &self,
        new: NewStep,
        target: Option<ReferencedTask>,
        edits_question: bool,
    ) -> Result<(Self, LinkChanges), Error> {
        let mut step = Self {
            title: new.title,
            kind: new.kind,
            content: new.content,
            ..self.clone()
        };
        match target {
            Some(target) => step.refer_to(target),
            None if step.kind.subtask().is_some() => step.title.clone_from(&self.title),
            None => {}
        }
        if !edits_question {
            // Its links are not in the update.
            step.kind.set_feedback(self.kind.feedback().cloned());
            return Ok((step, LinkChanges::default()));
        }
        let before = self.kind.observation_feedback();
        let links = match before.zip(step.kind.observation_feedback_mut()) {
            Some((before, after)) => link::copy_links(before, after),
            None => LinkChanges::default(),
        };
        if !links.unmatched.is_empty() {
            return Err(match before.is_some_and(|before| before.linked) {
                true => new_linked_values(&links.unmatched),
                false => linked_import_only(),
            });
        }
        Ok((step, links))
    }

    /// Applies a document to the step at a path of a request, and adds its violations. The
    /// reference of a subtask step stays.
    pub fn merge_at(
        &self,
        patch: StepPatch,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> (Step, Merged) {
        let mut step = self.clone();
        let stored = Editable {
            title: &mut step.title,
            kind: &mut step.kind,
            content: &mut step.content,
        };
        let merged = stored.merge(patch, at, violations);
        (step, merged)
    }
}

/// What a patch changes of a step.
struct Editable<'a> {
    title: &'a mut String,
    kind: &'a mut StepKind,
    content: &'a mut StepContent,
}

impl Editable<'_> {
    fn merge(mut self, patch: StepPatch, at: &Path<'_>, violations: &mut Violations) -> Merged {
        let StepPatch {
            violations: earlier,
            type_dependent,
            product: _,
            step_type: _,
            title,
            subtask_id,
            subtask_pid,
            cost,
            feedback,
            linked,
            content,
        } = patch;
        violations.append(earlier);
        let is_subtask = self.kind.step_type == StepType::Subtask;
        // The others are `subtask_id` and `subtask_pid`.
        let is_ignored = |field: &&str| (*field == "title") == is_subtask;
        let ignored = type_dependent.into_iter().filter(is_ignored).collect();
        if is_subtask && self.kind.subtask.is_none() {
            // A new step has the reference as it was sent. It is checked once its task is read.
            let id = subtask_id.honored(violations);
            let id = id.required(false, &at.field("subtask_id"), violations);
            let product = subtask_pid.honored(violations);
            let product = product.required(false, &at.field("subtask_pid"), violations);
            let sent = id.zip(product);
            self.kind.subtask = sent.map(|(task, product)| SubtaskRef { task, product });
        } else if !is_subtask {
            let has_title = !self.title.is_empty();
            let title = title.honored(violations);
            if let Some(title) = title.required(has_title, &at.field("title"), violations) {
                *self.title = title.into_string();
            }
        }
        self.merge_cost(cost, at, violations);
        let links = self.merge_feedback(feedback, linked, at, violations);
        content.apply(self.content);
        check_languages(at, self.content.translations.len(), violations);
        Merged { ignored, links }
    }

    fn merge_cost(&mut self, edit: Edit<Cost>, at: &Path<'_>, violations: &mut Violations) {
        let mut cost = self.kind.cost;
        edit.apply_or(&mut cost, Cost::default());
        if cost == Cost::default() || self.kind.step_type.has_cost() {
            self.kind.cost = cost;
        } else {
            let description = "must be 0 for this type of step";
            violations.add(&at.field("cost"), Reason::FieldOutOfRange, description);
        }
    }

    /// Returns how the patch changes managed tasks.
    fn merge_feedback(
        &mut self,
        edit: Edit<Feedback>,
        linked: bool,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> LinkChanges {
        let path = at.field("feedback_config");
        let is_observation = self.kind.step_type == StepType::Observation;
        if linked && !is_observation {
            violations.add(
                &path.index(0).field("linked"),
                Reason::FieldInvalid,
                "only an observation can be linked",
            );
        }
        let mut changes = LinkChanges::default();
        match edit {
            Edit::Refused => {}
            Edit::Keep if self.kind.feedback.is_some() || !is_observation => {}
            Edit::Keep | Edit::Clear if is_observation => {
                let description = "is required for an observation";
                violations.add(&path, Reason::FieldRequired, description);
            }
            Edit::Keep | Edit::Clear => self.kind.feedback = None,
            Edit::Set(mut new) => {
                if let Some(before) = self.kind.observation_feedback() {
                    changes = link::copy_links(before, &mut new);
                }
                self.kind.feedback = Some(new);
            }
        }
        changes
    }
}

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
