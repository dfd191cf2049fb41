//! Where a task or a variable is used.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::{
    dependency::{Comparison, Condition, Group},
    feedback::Feedback,
    ids::{ProductId, StepId, TaskId},
};

use super::{
    names::{account_name, full_name, parse_account_name},
    value::{Criterion, VariableValue},
};

/// How a task or variable is used, in the order in which references are listed, with the numbers of
/// the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReferenceKind {
    Subtask = 1,
    Wiring = 2,
    /// A value of an observation manages the task.
    Manages = 3,
    Sets = 4,
    Reads = 5,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceFilter {
    Task(TaskId),
    Variable(VariableFilter),
}

/// The variable that a list of references is about, and restrictions of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableFilter {
    pub name: String,
    /// Lists only references in this task, including those by the task's own name of the variable.
    pub task: Option<TaskId>,
    /// Lists only references to this answer.
    pub answer: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReferencePlace {
    pub task: TaskId,
    /// `None` for the conditions of the task itself.
    pub step: Option<StepId>,
    /// The path within the step or task.
    pub path: String,
    pub title: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub kind: ReferenceKind,
    pub place: ReferencePlace,
    pub condition: Option<Condition>,
}

/// A point in a list of references.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceCursor {
    pub kind: ReferenceKind,
    /// The id of the step or task.
    pub id: Uuid,
    /// The path of the last listed reference of the step or task; `None` if all of them were
    /// listed.
    pub path: Option<String>,
}

/// References, and where the next page starts; `None` on the last.
#[derive(Clone, Debug)]
pub struct ReferencePage {
    pub items: Vec<Reference>,
    pub next: Option<ReferenceCursor>,
}

impl ReferenceCursor {
    /// The cursor before all references of a kind.
    pub fn before(kind: ReferenceKind) -> Self {
        Self {
            kind,
            id: Uuid::nil(),
            path: Some(String::new()),
        }
    }

    /// Whether a reference comes after the cursor.
    pub fn is_before(&self, reference: &Reference) -> bool {
        let at = (reference.kind, reference.id());
        let is_later = |path: &String| reference.place.path > *path;
        at > (self.kind, self.id)
            || at == (self.kind, self.id) && self.path.as_ref().is_some_and(is_later)
    }
}

impl Reference {
    pub fn id(&self) -> Uuid {
        let ReferencePlace { task, step, .. } = &self.place;
        step.map_or(task.0, |step| step.0)
    }

    pub fn cursor(&self) -> ReferenceCursor {
        ReferenceCursor {
            kind: self.kind,
            id: self.id(),
            path: Some(self.place.path.clone()),
        }
    }
}

impl VariableFilter {
    /// Whether observations can set the variable. Without a task, its name must be account-wide,
    /// because an own name is a different variable in each task.
    pub fn may_have_setters(&self) -> bool {
        self.task.is_some() || parse_account_name(&self.name).is_some()
    }

    /// Whether an observation of a product sets the variable within the filter's task, and
    /// offers the filter's answer.
    pub fn is_set_by(&self, product: ProductId, feedback: &Feedback) -> bool {
        let own = feedback.name.as_str();
        let sets =
            account_name(product, own) == self.name || (self.task.is_some() && own == self.name);
        let mut keys = feedback.values.iter().map(|value| value.key.as_str());
        let offers = |answer: &String| keys.any(|key| key == answer);
        sets && self.answer.as_ref().is_none_or(offers)
    }

    /// The conditions of a group that read the variable, with their paths, in the order of the
    /// paths. With an answer, only conditions that may be true for it and false for others, or vice
    /// versa.
    pub fn conditions_reading(&self, group: &Group) -> Vec<(String, Condition)> {
        let answer = self.answer.clone().map(VariableValue::Text);
        let depends_on = |condition: &Condition, answer| {
            matches!(condition.operator, Comparison::Greater | Comparison::Less)
                || Criterion::new(condition).tells_apart(answer)
        };
        let placed = group.placed_conditions().into_iter();
        let mut found: Vec<(String, Condition)> = placed
            .filter(|placed| full_name(placed.condition) == self.name)
            .filter(|placed| (answer.iter()).all(|answer| depends_on(placed.condition, answer)))
            .map(|placed| (placed.path, placed.condition.clone()))
            .collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }
}
