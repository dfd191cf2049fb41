//! Steps.

use serde_json::{Map, Value};

use super::{
    dependency::Group,
    error::{Error, Precondition},
    feedback::Feedback,
    ids::{AccountId, ProductId, StepId, TaskId},
    json::{Instruction, Json},
    link::{self, LinkChanges},
    patch::{Deferred, Edit},
    task::{Published, Task, check_languages},
    text::{Body, Name, Tag, Title},
    time::Timestamp,
    translation::{StepOverlay, StepOverlayEdit, StepTranslations, TranslationsEdit},
    violation::{Path, Reason, Violations},
};

/// What a step asks. The numbers are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepType {
    /// Something to try.
    Solution = 1,
    /// Something to look at and answer.
    Observation = 2,
    /// Something to read.
    Information = 3,
    /// Another task, followed here.
    Subtask = 4,
    /// The end of the guide.
    End = 5,
    /// An identified problem.
    Idp = 6,
}

impl StepType {
    /// All types.
    pub const ALL: [Self; 6] = [
        Self::Solution,
        Self::Observation,
        Self::Information,
        Self::Subtask,
        Self::End,
        Self::Idp,
    ];

    /// The type of a number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The type's number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// Whether steps of this type may have a cost.
    pub fn has_cost(self) -> bool {
        match self {
            Self::Solution | Self::Idp => true,
            Self::Observation | Self::Information | Self::Subtask | Self::End => false,
        }
    }
}

/// What trying a step costs: 0, or 2 and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cost(i32);

impl Cost {
    /// Accepts 0, and 2 and more.
    pub fn new(cost: i32) -> Option<Self> {
        (cost == 0 || cost >= 2).then_some(Self(cost))
    }

    /// The number.
    pub fn get(self) -> i32 {
        self.0
    }
}

/// The task that a subtask step stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubtaskRef {
    /// The task.
    pub task: TaskId,
    /// Its product.
    pub product: ProductId,
}

/// What each type of step needs, and nothing that it must not have.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Something to try.
    Solution {
        /// The heading.
        title: Title,
        /// What trying costs.
        cost: Cost,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// Something to look at and answer.
    Observation {
        /// The heading.
        title: Title,
        /// The question.
        feedback: Feedback,
    },
    /// Something to read.
    Information {
        /// The heading.
        title: Title,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// Another task; its name is the heading.
    Subtask {
        /// The task.
        subtask: SubtaskRef,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// The end of the guide.
    End {
        /// The heading.
        title: Title,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// An identified problem.
    Idp {
        /// The heading.
        title: Title,
        /// What trying costs.
        cost: Cost,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
}

impl StepKind {
    /// The type.
    pub fn step_type(&self) -> StepType {
        match self {
            Self::Solution { .. } => StepType::Solution,
            Self::Observation { .. } => StepType::Observation,
            Self::Information { .. } => StepType::Information,
            Self::Subtask { .. } => StepType::Subtask,
            Self::End { .. } => StepType::End,
            Self::Idp { .. } => StepType::Idp,
        }
    }

    /// The step's own heading; none for a subtask.
    pub fn title(&self) -> Option<&Title> {
        match self {
            Self::Solution { title, .. }
            | Self::Observation { title, .. }
            | Self::Information { title, .. }
            | Self::End { title, .. }
            | Self::Idp { title, .. } => Some(title),
            Self::Subtask { .. } => None,
        }
    }

    /// What trying costs; 0 where the type has no cost.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Solution { cost, .. } | Self::Idp { cost, .. } => *cost,
            Self::Observation { .. }
            | Self::Information { .. }
            | Self::Subtask { .. }
            | Self::End { .. } => Cost::default(),
        }
    }

    /// The question.
    pub fn feedback(&self) -> Option<&Feedback> {
        match self {
            Self::Observation { feedback, .. } => Some(feedback),
            Self::Solution { feedback, .. }
            | Self::Information { feedback, .. }
            | Self::Subtask { feedback, .. }
            | Self::End { feedback, .. }
            | Self::Idp { feedback, .. } => feedback.as_ref(),
        }
    }

    /// The task that a subtask step stands for.
    pub fn subtask(&self) -> Option<SubtaskRef> {
        match self {
            Self::Subtask { subtask, .. } => Some(*subtask),
            Self::Solution { .. }
            | Self::Observation { .. }
            | Self::Information { .. }
            | Self::End { .. }
            | Self::Idp { .. } => None,
        }
    }
}

/// How a step repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Looping {
    /// The name under which one round sees its element.
    pub alias: Tag,
    /// What is looped over.
    pub array: Option<Json>,
    /// How often, or in which rounds.
    pub iterations: Option<Json>,
}

/// What steps of every type have. The default is a step that says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepContent {
    /// The text.
    pub body: Option<Body>,
    /// When it is visible; `None` is always.
    pub dependencies: Option<Group>,
    /// Instructions of the caller's own shape.
    pub instructions: Vec<Instruction>,
    /// How it repeats.
    pub looping: Option<Looping>,
    /// Parts needed.
    pub parts: Vec<Tag>,
    /// Whether it is shown.
    pub published: Published,
    /// Skills needed.
    pub skills: Vec<Tag>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Its texts in other languages.
    pub translations: StepTranslations,
}

/// What a caller says of a new step.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// The task it belongs to, for ever.
    pub task: TaskId,
    /// The product it is about, for ever.
    pub product: ProductId,
    /// What it asks, for ever.
    pub kind: StepKind,
    /// The rest.
    pub content: StepContent,
}

/// A step as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its id.
    pub guid: StepId,
    /// Its owner.
    pub account: AccountId,
    /// The task it belongs to.
    pub task: TaskId,
    /// The product it is about.
    pub product: ProductId,
    /// What it asks.
    pub kind: StepKind,
    /// The heading as a reader sees it: its own, or the subtask's name.
    pub title: String,
    /// What steps of every type have.
    pub content: StepContent,
    /// The managed task that it wires.
    pub link: Option<TaskId>,
    /// Data of reporting systems.
    pub r_data: Map<String, Value>,
    /// Whether it was written since the external index read it.
    pub dirty: bool,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created: Timestamp,
    /// When it last changed.
    pub modified: Timestamp,
}

/// Where a new step was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the end.
    Appended,
    /// Right after the step named.
    AfterPrevstep,
    /// At the end, as the step named is not of the task.
    AppendedPrevstepUnknown,
}

/// The task behind a reference, as the store found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referenced {
    /// The task.
    pub task: TaskId,
    /// Its product.
    pub product: ProductId,
    /// Its name.
    pub name: Name,
}

/// Where violations of a step's own fields are reported.
const STEP: Path<'static> = Path::root("step");

impl Referenced {
    /// A task as a reference sees it.
    pub fn to(task: &Task) -> Self {
        Self {
            task: task.guid,
            product: task.product,
            name: task.name.clone(),
        }
    }

    /// Notes when a caller's product is not that of the task.
    pub fn check_product(&self, product: ProductId, step: &Path<'_>, faults: &mut Violations) {
        if product != self.product {
            faults.add(
                &step.field("subtask_pid"),
                Reason::FieldInvalid,
                "is not the product of the task that `subtask_id` names",
            );
        }
    }
}

/// What an update says of a step.
#[derive(Clone, Debug, Default)]
pub struct StepPatch {
    /// What was wrong with the request so far.
    pub faults: Violations,
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
pub struct Merged {
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
    pub fn merge(&self, patch: StepPatch, target: Option<Referenced>) -> Result<Merged, Error> {
        let mut faults = Violations::new();
        let merged = self.merge_at(patch, target, &STEP, &mut faults);
        if !faults.is_empty() {
            return Err(Error::Invalid(faults));
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
        target: Option<Referenced>,
        at: &Path<'_>,
        faults: &mut Violations,
    ) -> Merged {
        faults.append(std::mem::take(&mut patch.faults));
        let mut step = self.clone();
        let honors_subtask = self.kind.subtask().is_some();
        let ignored = patch
            .sent
            .iter()
            .copied()
            .filter(|field| (*field == "title") == honors_subtask)
            .collect();
        let mut missing = None;
        if honors_subtask {
            missing = step.merge_subtask(&patch, target, at, faults);
        } else {
            step.merge_title(patch.title, at, faults);
        }
        step.merge_cost(patch.cost, at, faults);
        let links = step.merge_feedback(patch.feedback, at, faults);
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
        check_languages(at, content.translations.len(), faults);
        Merged {
            step,
            ignored,
            links,
            missing,
        }
    }

    fn merge_title(&mut self, edit: Edit<Deferred<Title>>, at: &Path<'_>, faults: &mut Violations) {
        let new = match edit {
            Edit::Keep => return,
            Edit::Clear => {
                faults.add(&at.field("title"), Reason::FieldRequired, "is required");
                return;
            }
            Edit::Set(Err(fault)) => return faults.push(fault),
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
        target: Option<Referenced>,
        at: &Path<'_>,
        faults: &mut Violations,
    ) -> Option<TaskId> {
        let StepKind::Subtask { subtask, .. } = &mut self.kind else {
            return None;
        };
        let mut missing = None;
        let mut current = None;
        match &patch.subtask_id {
            Edit::Keep => current = Some(subtask.product),
            Edit::Clear => {
                faults.add(
                    &at.field("subtask_id"),
                    Reason::FieldRequired,
                    "is required",
                );
            }
            Edit::Set(Err(fault)) => faults.push(fault.clone()),
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
                faults.add(
                    &at.field("subtask_pid"),
                    Reason::FieldRequired,
                    "is required",
                );
            }
            Edit::Set(Err(fault)) => faults.push(fault.clone()),
            Edit::Set(Ok(product)) if current.is_some_and(|current| current != *product) => {
                faults.add(
                    &at.field("subtask_pid"),
                    Reason::FieldInvalid,
                    "is not the product of the task that `subtask_id` names",
                );
            }
            Edit::Set(Ok(_)) => {}
        }
        missing
    }

    fn merge_cost(&mut self, edit: Edit<Cost>, at: &Path<'_>, faults: &mut Violations) {
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
                    faults.add(&at.field("cost"), Reason::FieldOutOfRange, COSTLESS);
                }
            }
        }
    }

    /// Returns what the update means for managed tasks.
    fn merge_feedback(
        &mut self,
        edit: Edit<Feedback>,
        at: &Path<'_>,
        faults: &mut Violations,
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
                    faults.add(
                        &path,
                        Reason::FieldRequired,
                        "is required for an observation",
                    );
                    return LinkChanges::default();
                };
                let changes = link::carry_over(Some(feedback), &mut new);
                *feedback = new;
                changes
            }
            StepKind::Solution { feedback, .. }
            | StepKind::Information { feedback, .. }
            | StepKind::Subtask { feedback, .. }
            | StepKind::End { feedback, .. }
            | StepKind::Idp { feedback, .. } => {
                if new.as_ref().is_some_and(|new| new.linked) {
                    faults.add(
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
pub const COSTLESS: &str = "must be 0 for this type of step";
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
