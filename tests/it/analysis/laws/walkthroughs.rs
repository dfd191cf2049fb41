//! A walkthrough of a guide, and which conditions can hold together.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::dependency_node::Node;
use prost_types::value::Kind as Json;

use crate::{
    kit::prelude::*,
    random_guides::{Guide, Kind, Known, Observation, condition_holds, full_name, group_holds},
};

/// A variable, by its task if it is of one.
type Variable = (Option<usize>, String);
type Variables = BTreeMap<Variable, Known>;

impl Guide {
    /// The tasks that are part of the guide.
    pub fn entered(&self) -> BTreeSet<usize> {
        let mut entered = BTreeSet::from([0]);
        let mut open = vec![0];
        while let Some(task) = open.pop() {
            for step in &self.tasks[task].steps {
                if let Kind::Subtask(subtask) = step.kind
                    && entered.insert(subtask)
                {
                    open.push(subtask);
                }
            }
        }
        entered
    }

    fn observations(&self, task: usize) -> impl Iterator<Item = &Observation> {
        self.tasks[task]
            .steps
            .iter()
            .filter_map(|step| match &step.kind {
                Kind::Observation(observation) => Some(observation),
                _ => None,
            })
    }

    /// The observations of the account that are no part of the guide.
    fn outside(&self) -> impl Iterator<Item = &Observation> {
        let entered = self.entered();
        let others = (0..self.tasks.len()).filter(move |task| !entered.contains(task));
        let others = others.flat_map(|task| self.observations(task));
        self.outside.iter().chain(others)
    }

    /// The variable that a name stands for in a task.
    fn variable(&self, task: usize, name: &str) -> Variable {
        let own = self.observations(task).any(|one| one.name == name);
        (own.then_some(task), name.to_owned())
    }

    fn set_by(task: usize, observation: &Observation) -> [Variable; 2] {
        let Observation { product, name, .. } = observation;
        [
            (None, format!("components.{product}.{name}")),
            (Some(task), (*name).to_owned()),
        ]
    }

    fn holds(&self, task: usize, group: Option<&DependencyGroup>, variables: &Variables) -> bool {
        let value = |name: &str| {
            let variable = self.variable(task, name);
            variables.get(&variable).cloned().flatten()
        };
        group.is_none_or(|group| group_holds(group, &value))
    }
}

fn answered(key: &str) -> Known {
    Some(Json::StringValue(key.to_owned()))
}

/// Values of which one is in each range that targets of conditions divide.
fn anything() -> Vec<Known> {
    let texts = [
        "a", "b", "1", "2", "zz", "other", "true", "false", "1.0", "1.50", "2.0", "0", "9",
    ];
    let numbers = [0.0, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0].map(Json::NumberValue);
    let bools = [true, false].map(Json::BoolValue);
    let others = numbers.into_iter().chain(bools).map(Some);
    texts
        .map(answered)
        .into_iter()
        .chain(others)
        .chain([None])
        .collect()
}

/// Single walkthroughs and sets of conditions.
impl Guide {
    /// Whether the walkthrough with these answers, which begins with nothing answered, has
    /// an outcome; `None` if there is no such walkthrough.
    pub fn outcome_of(&self, level: i32, answers: &[(String, String)]) -> Option<bool> {
        let mut variables = Variables::new();
        let root = &self.tasks[0];
        if !self.holds(0, root.dependencies.as_ref(), &variables) || !root.roles.contains(&level) {
            return None;
        }
        let mut answers = answers.iter();
        let mut entered = vec![(0, 0)];
        let mut outcome = false;
        while let Some((task, next)) = entered.last_mut() {
            let task = *task;
            let Some(step) = self.tasks[task].steps.get(*next) else {
                entered.pop();
                continue;
            };
            *next += 1;
            if !step.published || !self.holds(task, step.dependencies.as_ref(), &variables) {
                continue;
            }
            match &step.kind {
                Kind::Information => {}
                Kind::Solution | Kind::Idp => outcome = true,
                Kind::End => {
                    outcome = true;
                    entered.pop();
                }
                Kind::Observation(observation) => {
                    let (name, key) = answers.next()?;
                    let names = Self::set_by(task, observation);
                    if names[0].1 != *name || !observation.keys.contains(&key.as_str()) {
                        return None;
                    }
                    for name in names {
                        variables.insert(name, answered(key));
                    }
                }
                Kind::Subtask(subtask) => {
                    let inner = &self.tasks[*subtask];
                    let sees = inner.roles.contains(&level)
                        && (*subtask == 0 || inner.published)
                        && self.holds(*subtask, inner.dependencies.as_ref(), &variables);
                    if sees && entered.iter().all(|(task, _)| task != subtask) {
                        entered.push((*subtask, 0));
                    }
                }
            }
        }
        answers.next().is_none().then_some(outcome)
    }

    /// The condition at a path such as `dependencies.nodes[0].condition`, with its task.
    pub fn condition(&self, task: usize, step: Option<usize>, path: &str) -> (usize, Condition) {
        let group = match step {
            None => &self.tasks[task].dependencies,
            Some(step) => &self.tasks[task].steps[step].dependencies,
        };
        let mut group = group.as_ref().expect("dependencies");
        let indexes: Vec<usize> = path
            .split("nodes[")
            .skip(1)
            .map(|part| part.split(']').next().unwrap().parse().expect("an index"))
            .collect();
        let (last, inner) = indexes.split_last().expect("a node");
        for index in inner {
            group = match group.nodes[*index].node.as_ref() {
                Some(Node::Group(group)) => group,
                _ => panic!("{path} leads into a condition"),
            };
        }
        match group.nodes[*last].node.as_ref() {
            Some(Node::Condition(condition)) => (task, condition.clone()),
            _ => panic!("{path} is a group"),
        }
    }

    /// Whether possible values meet all of the conditions.
    pub fn can_hold_together(&self, conditions: &[(usize, Condition)]) -> bool {
        let mut possible: BTreeMap<Variable, BTreeSet<&str>> = BTreeMap::new();
        for task in self.entered() {
            for observation in self.observations(task) {
                for variable in Self::set_by(task, observation) {
                    possible
                        .entry(variable)
                        .or_default()
                        .extend(&observation.keys);
                }
            }
        }
        for observation in self.outside() {
            let [variable, _] = Self::set_by(usize::MAX, observation);
            possible
                .entry(variable)
                .or_default()
                .extend(&observation.keys);
        }
        let variables: BTreeSet<_> = conditions
            .iter()
            .map(|(task, condition)| self.variable(*task, &full_name(condition)))
            .collect();
        variables.iter().all(|variable| {
            let values = match possible.get(variable) {
                None => anything(),
                Some(keys) => keys.iter().map(|key| answered(key)).chain([None]).collect(),
            };
            values.iter().any(|value| {
                let of_variable = conditions
                    .iter()
                    .filter(|(task, one)| self.variable(*task, &full_name(one)) == *variable);
                of_variable
                    .map(|(_, one)| one)
                    .all(|one| condition_holds(value, &one.operator, &one.targets))
            })
        })
    }
}
