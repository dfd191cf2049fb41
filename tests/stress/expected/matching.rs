//! Comparison of the expected state with what the service holds.

use std::fmt::Debug;

use expertise::proto::v1::*;

use super::{
    observed::ObservedWorkspace,
    workspace::{ExpectedEtag, ExpectedStep, ExpectedTask, Workspace, is_placeholder},
    write::WriteResponse,
    writer::UnansweredOutcome,
};
use crate::kit::documents::{without_system_fields_of_step, without_system_fields_of_task};

impl Workspace {
    /// Finds out what became of the unanswered write, and asserts that everything
    /// else is as expected. Afterwards ids and etags are the observed ones.
    ///
    /// # Panics
    /// When a part of the unanswered write is there, or anything else differs.
    pub fn resolve(&mut self, observed: &ObservedWorkspace) -> Option<UnansweredOutcome> {
        let without = self.matched(observed);
        let Some(write) = self.unanswered.clone() else {
            *self = without.unwrap_or_else(|why| panic!("workspace {}: {why}", self.prefix));
            return None;
        };
        let mut with = self.clone();
        let id = with.apply(&write);
        let (mut matched, outcome) = match (without, with.matched(observed)) {
            (Ok(matched), _) => (matched, UnansweredOutcome::NotDone),
            (Err(_), Ok(matched)) => {
                let id = matched.ids.get(&id).cloned().unwrap_or(id);
                (matched, UnansweredOutcome::Done(id))
            }
            (Err(without), Err(with)) => panic!(
                "workspace {}: it fits neither without nor with {write:?}\n\
                 without: {without}\nwith: {with}",
                self.prefix
            ),
        };
        matched.unanswered = None;
        *self = matched;
        Some(outcome)
    }

    /// Takes ids and the etag from the response to a write of the resource `id`, and
    /// asserts that the rest of it is as expected.
    pub fn match_response(&mut self, id: &str, response: WriteResponse) {
        match response {
            WriteResponse::Task(task) => {
                self.replace_placeholder(id, &task.guid);
                let steps = &self.task_mut(&task.guid).steps;
                assert_eq!(task.steps.len(), steps.len(), "steps of {task:?}");
                let placeholders: Vec<String> = steps
                    .iter()
                    .map(|expected| expected.step.guid.clone())
                    .collect();
                for (placeholder, guid) in placeholders.iter().zip(&task.steps) {
                    self.replace_placeholder(placeholder, guid);
                }
                let expected = self.task_mut(&task.guid);
                expected
                    .matches(&task)
                    .unwrap_or_else(|why| panic!("{why}"));
                expected.etag = ExpectedEtag::Equals(task.etag);
            }
            WriteResponse::Step(step) => {
                self.replace_placeholder(id, &step.guid);
                let expected = self.step_mut(&step.guid);
                expected
                    .matches(&step)
                    .unwrap_or_else(|why| panic!("{why}"));
                expected.etag = ExpectedEtag::Equals(step.etag);
            }
            WriteResponse::Role(role) => {
                let known = self.roles.iter_mut().find(|known| known.name == role.name);
                *known.expect("a role of the workspace") = role;
            }
            WriteResponse::Empty => {}
        }
    }

    /// This state with the observed ids and etags; else the first difference.
    pub fn matched(&self, observed: &ObservedWorkspace) -> Result<Self, String> {
        let mut matched = self.clone();
        let own = self.tasks.iter().filter(|expected| !expected.shared);
        ensure("number of tasks", &own.count(), &observed.tasks.len())?;
        // Ids come first, as tasks refer to each other.
        for expected in &self.tasks {
            let found = ObservedTask::find(expected, observed)?;
            if let Some(task) = found.task {
                matched.replace_placeholder(&expected.task.guid, &task.guid);
            }
            let what = format!("number of steps of {}", expected.task.name);
            ensure(&what, &expected.steps.len(), &found.steps.len())?;
            for (expected, step) in expected.steps.iter().zip(found.steps) {
                matched.replace_placeholder(&expected.step.guid, &step.guid);
            }
        }
        for expected in &mut matched.tasks {
            let found = ObservedTask::find(expected, observed)?;
            if let Some(task) = found.task {
                expected.matches(task)?;
                expected.etag = ExpectedEtag::Equals(task.etag.clone());
            }
            for (expected, step) in expected.steps.iter_mut().zip(found.steps) {
                expected.matches(step)?;
                expected.etag = ExpectedEtag::Equals(step.etag.clone());
            }
        }
        matched.match_roles(observed)?;
        Ok(matched)
    }

    fn match_roles(&mut self, observed: &ObservedWorkspace) -> Result<(), String> {
        ensure("number of roles", &self.roles.len(), &observed.roles.len())?;
        for role in &mut self.roles {
            let mut roles = observed.roles.iter();
            let found = roles.find(|found| found.name == role.name);
            let found = found.ok_or_else(|| format!("{role:?} is missing"))?;
            if role.id != 0 {
                ensure("id of a role", &role.id, &found.id)?;
            }
            role.id = found.id;
        }
        Ok(())
    }
}

/// What was observed of an expected task.
struct ObservedTask<'a> {
    /// `None` for a shared one.
    task: Option<&'a Task>,
    steps: Vec<&'a Step>,
}

impl<'a> ObservedTask<'a> {
    fn find(expected: &ExpectedTask, observed: &ObservedWorkspace<'a>) -> Result<Self, String> {
        if expected.shared {
            return Ok(Self {
                task: None,
                steps: observed.steps_of_shared_task.clone(),
            });
        }
        let has_id = !is_placeholder(&expected.task.guid);
        let is_it = |task: &Task| match has_id {
            true => task.guid == expected.task.guid,
            false => task.name == expected.task.name,
        };
        let (task, steps) = *observed
            .tasks
            .iter()
            .find(|(task, _)| is_it(task))
            .ok_or_else(|| format!("the task {} is missing", expected.task.name))?;
        Ok(Self {
            task: Some(task),
            steps: steps.iter().collect(),
        })
    }
}

impl ExpectedTask {
    /// Compares it with a task of the service, and returns the difference if there is one.
    pub fn matches(&self, task: &Task) -> Result<(), String> {
        let mut expected = self.task.clone();
        expected.r#type = Some(expected.r#type().into());
        let comparable = Task {
            steps: Vec::new(),
            ..without_system_fields_of_task(task.clone())
        };
        ensure("a task", &expected, &comparable)?;
        ensure_etag(&task.guid, &self.etag, &task.etag)
    }
}

impl ExpectedStep {
    fn matches(&self, step: &Step) -> Result<(), String> {
        let comparable = without_system_fields_of_step(step.clone());
        ensure("a step", &self.step, &comparable)?;
        ensure_etag(&step.guid, &self.etag, &step.etag)
    }
}

fn ensure<T: PartialEq + Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    match expected == found {
        true => Ok(()),
        false => Err(format!("{what}: expected {expected:?}, found {found:?}")),
    }
}

fn ensure_etag(guid: &str, expected: &ExpectedEtag, etag: &str) -> Result<(), String> {
    match expected.allows(etag) {
        true => Ok(()),
        false => Err(format!("the etag of {guid}: {expected:?}, found {etag}")),
    }
}
