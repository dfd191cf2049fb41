//! What a write changes: the one value that every decision makes and the store turns
//! into statements.

use super::{
    decide::WriteContext,
    error::Result,
    ids::{RoleId, StepId, TaskId},
    order::{OrderChange, Place},
    revision::Revision,
    size::{self, StepSize},
    step::Step,
    task::Task,
    text::Name,
    translation::{Language, StepOverlay, TaskOverlay},
    translation_work::SourceDigest,
};

/// What a write changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// Tasks; parents stand before the tasks that they manage.
    pub tasks: Vec<TaskChange>,
    /// The order of tasks' steps, where the task itself is not among
    /// [`Changes::tasks`].
    pub orders: Vec<StepListChange>,
    /// Steps that are new or change.
    pub steps: Vec<StepChange>,
    /// Steps that are deleted.
    pub deleted_steps: Vec<StepDeletion>,
    /// Steps of which the place alone changes. That makes no new state of them.
    pub moved: Vec<(StepId, Place)>,
    /// Tasks whose name has changed: subtask steps that refer to them take it on.
    pub renamed: Vec<TaskId>,
    /// Automatic translations of tasks.
    pub translated_tasks: Vec<TranslatedTask>,
    /// Automatic translations of steps.
    pub translated_steps: Vec<TranslatedStep>,
    /// A role.
    pub role: Option<RoleChange>,
}

/// What becomes of a task.
#[derive(Debug)]
pub enum TaskChange {
    /// It is new.
    Create(Box<Task>),
    /// It changes.
    Update {
        /// As it was.
        before: Box<Task>,
        /// As it is to be.
        after: Box<Task>,
    },
    /// It is deleted with its steps.
    Delete {
        /// The task.
        task: TaskId,
        /// Whether it has any.
        has_steps: bool,
    },
}

/// A step that is new or changes.
#[derive(Debug)]
pub struct StepChange {
    /// As it was; `None` if it is new.
    pub before: Option<Box<Step>>,
    /// As it is to be.
    pub after: Box<Step>,
    /// Where it stands then; `None` is behind all others, where the database finds
    /// the place.
    pub place: Option<Place>,
}

/// A step that is deleted.
#[derive(Debug)]
pub struct StepDeletion {
    /// The step.
    pub step: StepId,
    /// The state that the decision was made on.
    pub revision: Revision,
}

/// A change of the steps that a task has.
#[derive(Debug)]
pub struct StepListChange {
    /// The task.
    pub task: TaskId,
    /// The change.
    pub change: OrderChange,
    /// The version of the task that it was decided in, where the task is not locked
    /// and its order matters.
    pub task_version: Option<i64>,
}

/// Automatic translations of a task.
#[derive(Debug)]
pub struct TranslatedTask {
    /// The task.
    pub task: TaskId,
    /// The name that they were made from.
    pub name: Name,
    /// The texts by language.
    pub rows: Vec<(Language, TaskOverlay)>,
    /// How many languages come to those that it has.
    pub added_languages: i64,
    /// By how much the task grows.
    pub growth: i64,
}

/// Automatic translations of a step.
#[derive(Debug)]
pub struct TranslatedStep {
    /// The step.
    pub step: StepId,
    /// The title that they were made from.
    pub title: String,
    /// Stands for the other texts that they were made from.
    pub rest: SourceDigest,
    /// The texts by language.
    pub rows: Vec<(Language, StepOverlay)>,
    /// How many languages come to those that it has.
    pub added_languages: i64,
    /// By how much the step grows.
    pub growth: StepSize,
}

/// What becomes of a role.
#[derive(Debug)]
pub enum RoleChange {
    /// A role of this name is new.
    Create(Name),
    /// It is deleted.
    Delete(RoleId),
}

impl Changes {
    /// Adds a new task, or what differs between two states of one.
    pub fn put_task(
        &mut self,
        before: Option<Task>,
        mut after: Task,
        context: &WriteContext,
    ) -> Result<()> {
        let change = match before {
            None => {
                size::check_task(&after, context.max_message_bytes)?;
                TaskChange::Create(Box::new(after))
            }
            Some(before) => {
                if !after.revise(&before, context) {
                    return Ok(());
                }
                size::check_task(&after, context.max_message_bytes)?;
                if after.name != before.name {
                    self.renamed.push(after.guid);
                }
                TaskChange::Update {
                    before: Box::new(before),
                    after: Box::new(after),
                }
            }
        };
        self.tasks.push(change);
        Ok(())
    }

    /// Adds a new step, or what differs between two states of one. `place` is where it
    /// stands then.
    pub fn put_step(
        &mut self,
        before: Option<Step>,
        mut after: Step,
        place: Option<Place>,
        context: &WriteContext,
    ) -> Result<()> {
        if before
            .as_ref()
            .is_some_and(|before| !after.revise(before, context))
        {
            return Ok(());
        }
        StepSize::of(&after).check(context.max_message_bytes)?;
        self.steps.push(StepChange {
            before: before.map(Box::new),
            after: Box::new(after),
            place,
        });
        Ok(())
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        let Self {
            tasks,
            orders,
            steps,
            deleted_steps,
            moved,
            renamed,
            translated_tasks,
            translated_steps,
            role,
        } = self;
        tasks.is_empty()
            && orders.is_empty()
            && steps.is_empty()
            && deleted_steps.is_empty()
            && moved.is_empty()
            && renamed.is_empty()
            && translated_tasks.is_empty()
            && translated_steps.is_empty()
            && role.is_none()
    }
}
