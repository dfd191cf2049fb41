//! A second evaluator of guides, written only from the documentation of the API. It knows every
//! value, so it has two truth values.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    laws::random_guides::{Known, group_holds},
    prelude::*,
};

/// The tasks of an account with their steps.
pub struct StoredGuides {
    tasks: BTreeMap<String, (Task, Vec<Step>)>,
}

/// Who sees the guide, and how much of it.
#[derive(Clone, Copy)]
pub struct Viewer {
    pub level: Option<AccessLevel>,
    pub include_unpublished: bool,
}

/// A name, and the task within which it is valid; empty for the account.
pub type Scoped = (String, String);

/// A step as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceStep {
    pub via: Vec<String>,
    pub guid: String,
    pub visible: bool,
}

/// A walk that lists steps.
struct ReferenceWalk<'a> {
    guides: &'a StoredGuides,
    viewer: Viewer,
    depth: usize,
    /// The value of a name as a task reads it.
    value: &'a dyn Fn(&str, &str) -> Known,
    listed: Vec<ReferenceStep>,
}

impl StoredGuides {
    pub async fn of(client: &Client) -> Self {
        let tasks = client.tasks_with_steps().await.into_iter();
        Self {
            tasks: tasks.map(|both| (both.0.guid.clone(), both)).collect(),
        }
    }

    /// The step with an id.
    pub fn step(&self, guid: &str) -> &Step {
        let mut steps = self.tasks.values().flat_map(|(_, steps)| steps);
        steps.find(|step| step.guid == guid).expect("a step")
    }

    pub fn task(&self, guid: &str) -> &Task {
        &self.tasks[guid].0
    }

    /// The keys of the observations that set a name for a task: the task's own name, or an
    /// account-wide one, in whichever task. `None` if none sets it.
    pub fn keys(&self, task: &str, name: &str) -> Option<Vec<String>> {
        let keys: Vec<Vec<String>> = self
            .setters(task, name)
            .map(|step| {
                answers_of(step)
                    .iter()
                    .map(|answer| answer.key.clone())
                    .collect()
            })
            .collect();
        (!keys.is_empty()).then(|| keys.concat())
    }

    /// The observations that set a name for a task.
    fn setters<'a>(&'a self, task: &'a str, name: &'a str) -> impl Iterator<Item = &'a Step> {
        let own = move |step: &&Step| step.task == task && step.feedback_config[0].name == name;
        let wide = move |step: &&Step| {
            let product = step.product_id.expect("a product");
            name == format!("components.{product}.{}", step.feedback_config[0].name)
        };
        let steps = self.tasks.values().flat_map(|(_, steps)| steps);
        steps
            .filter(|step| step.r#type() == StepType::Observation)
            .filter(move |step| own(step) || wide(step))
    }

    /// The names that observations set of which all are listed and none is visible.
    pub fn names_of_hidden(&self, listed: &[ReferenceStep]) -> BTreeSet<Scoped> {
        let seen = listed.iter().filter(|step| step.visible);
        let seen: BTreeSet<&str> = seen.map(|step| step.guid.as_str()).collect();
        let hidden = listed.iter().map(|step| step.guid.as_str());
        self.names_set_only_by(&hidden.filter(|step| !seen.contains(step)).collect())
    }

    /// The names whose observations are all listed.
    pub fn names_set_by(&self, listed: &[ReferenceStep]) -> BTreeSet<Scoped> {
        let listed = listed.iter().map(|step| step.guid.as_str());
        self.names_set_only_by(&listed.collect())
    }

    fn names_set_only_by(&self, guids: &BTreeSet<&str>) -> BTreeSet<Scoped> {
        let steps = guids.iter().map(|guid| self.step(guid));
        let names = steps
            .filter(|step| step.r#type() == StepType::Observation)
            .flat_map(|step| {
                let own = &step.feedback_config[0].name;
                let product = step.product_id.expect("a product");
                [
                    (step.task.clone(), own.clone()),
                    (String::new(), format!("components.{product}.{own}")),
                ]
            });
        names
            .filter(|(task, name)| {
                let mut setters = self.setters(task, name);
                setters.all(|step| guids.contains(step.guid.as_str()))
            })
            .collect()
    }

    /// Whether the task itself has an observation with this name.
    pub fn is_own(&self, task: &str, name: &str) -> bool {
        let steps = self.tasks[task].1.iter();
        steps
            .filter(|step| step.r#type() == StepType::Observation)
            .any(|step| step.feedback_config[0].name == name)
    }

    /// The steps of a guide with their visibility. `value` returns the value of a name as read by
    /// the task with an id.
    pub fn list(
        &self,
        root: &str,
        viewer: Viewer,
        depth: usize,
        value: &dyn Fn(&str, &str) -> Known,
    ) -> Vec<ReferenceStep> {
        let mut walk = ReferenceWalk {
            guides: self,
            viewer,
            depth,
            value,
            listed: Vec::new(),
        };
        let reached = walk.task_is_visible(root);
        walk.list(root, reached, &[], &[root]);
        walk.listed
    }
}

impl ReferenceWalk<'_> {
    fn task_is_visible(&self, guid: &str) -> bool {
        let task = self.guides.task(guid);
        let published = self.viewer.include_unpublished || task.published == Some(1);
        let level = self.viewer.level;
        published
            && level.is_none_or(|level| task.roles.contains(&level.into()))
            && self.holds(guid, task.dependencies.as_ref())
    }

    fn list(&mut self, task: &str, reached: bool, via: &[String], entered: &[&str]) {
        let guides = self.guides;
        let mut ended = false;
        for step in &guides.tasks[task].1 {
            let published = self.viewer.include_unpublished || step.published == Some(1);
            let is_subtask = step.r#type() == StepType::Subtask;
            let subtask = step.subtask_id.as_str();
            let visible = published
                && self.holds(task, step.dependencies.as_ref())
                && !ended
                && (!is_subtask || self.task_is_visible(subtask));
            ended |= visible && step.r#type() == StepType::End;
            let cycle = is_subtask && entered.contains(&subtask);
            let visible = visible && reached && !cycle;
            self.listed.push(ReferenceStep {
                via: via.to_vec(),
                guid: step.guid.clone(),
                visible,
            });
            if is_subtask && !cycle && entered.len() <= self.depth {
                let via = [via, std::slice::from_ref(&step.guid)].concat();
                let entered = [entered, &[subtask]].concat();
                self.list(subtask, visible, &via, &entered);
            }
        }
    }

    fn holds(&self, task: &str, group: Option<&DependencyGroup>) -> bool {
        group.is_none_or(|group| group_holds(group, &mut |name| (self.value)(task, name)))
    }
}
