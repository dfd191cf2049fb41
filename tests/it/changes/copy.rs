//! Copies that follow the changes: after any writes each equals what the service exports.

use std::collections::BTreeMap;

use proptest::collection::vec;

use crate::kit::{
    prelude::*,
    random_writes::{self, Write},
};

/// Tasks and steps by their ids, as a reader keeps them.
#[derive(Default, PartialEq, Debug)]
pub struct Copy {
    tasks: BTreeMap<String, Task>,
    steps: BTreeMap<String, Step>,
}

impl Copy {
    /// All that there is.
    pub async fn of(client: &Client) -> Self {
        let mut copy = Self::default();
        for (task, steps) in client.tasks_with_steps().await {
            copy.put(task, steps);
        }
        copy
    }

    fn put(&mut self, task: Task, steps: Vec<Step>) {
        self.tasks.insert(task.guid.clone(), task);
        self.steps
            .extend(steps.into_iter().map(|step| (step.guid.clone(), step)));
    }

    /// Reads what a change names. What is gone by now is deleted by a later change.
    pub async fn follow(&mut self, client: &Client, change: &Change) {
        let task = client.get_task(&change.task).await.ok();
        match change.kind() {
            ChangeKind::TaskDeleted => {
                self.tasks.remove(&change.task);
                self.steps.retain(|_, step| step.task != change.task);
            }
            ChangeKind::StepDeleted => {
                self.steps.remove(&change.step);
            }
            ChangeKind::TaskCreated => {
                self.steps.retain(|_, step| step.task != change.task);
                if let Some(task) = &task {
                    let steps = client.steps_with_bodies(&task.guid).await;
                    self.put(task.clone(), steps);
                }
            }
            ChangeKind::StepCreated | ChangeKind::StepUpdated => {
                if let Ok(step) = client.get_step(&change.step).await {
                    self.steps.insert(step.guid.clone(), step);
                }
            }
            ChangeKind::TaskUpdated | ChangeKind::Unspecified => {}
        }
        // The list of steps is a field of the task.
        if change.kind() != ChangeKind::TaskDeleted {
            self.put_task(task);
        }
    }

    fn put_task(&mut self, task: Option<Task>) {
        if let Some(task) = task {
            self.tasks.insert(task.guid.clone(), task);
        }
    }
}

/// A reader that follows from before the first write, and one that begins in the middle and meets
/// every change of its second half twice.
#[apply(property_on_both_databases)]
#[cases(24, vec(random_writes::write(), 1..24))]
async fn a_copy_equals_the_exports(client: Client, writes: Vec<Write>) {
    let start = client.cursor_now().await;
    let (mut early, mut late) = (Copy::default(), Copy::default());
    let mut middle = start.clone();
    for (number, write) in writes.iter().enumerate() {
        if number == writes.len() / 2 {
            middle = client.cursor_now().await;
            late = Copy::of(&client).await;
        }
        random_writes::apply(&client, write, number).await;
    }
    let (changes, _) = client.changes_after(&start).await;
    for change in &changes {
        early.follow(&client, change).await;
    }
    let (changes, _) = client.changes_after(&middle).await;
    for change in changes.iter().chain(&changes) {
        late.follow(&client, change).await;
    }
    let stored = Copy::of(&client).await;
    assert_eq!(early, stored);
    assert_eq!(late, stored);
}
