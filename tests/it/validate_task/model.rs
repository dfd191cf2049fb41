//! Everything that the walkthroughs of a guide show, found by going through all of them.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::dependency_node::Node;
use prost_types::value::Kind as Json;

use crate::{
    kit::prelude::*,
    random_guides::{
        Guide, GuideTask, Kind, Known, Observation, condition_holds, conditions_of, full_name,
        group_holds,
    },
};

/// A task and a step of it, by index.
pub type Position = (usize, usize);

/// What all walkthroughs together show.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub begins: bool,
    /// The root's dependencies do not hold in some walkthrough.
    pub root_fails: bool,
    /// Published steps that some walkthrough comes to, seen or not.
    pub comes: BTreeSet<Position>,
    /// Those whose dependencies do not hold in some walkthrough that comes to them.
    pub fails: BTreeSet<Position>,
    /// Those that some walkthrough sees.
    pub sees: BTreeSet<Position>,
    /// The same two of tasks.
    pub task_comes: BTreeSet<usize>,
    pub task_fails: BTreeSet<usize>,
    /// Pairs of observations that one walkthrough sees.
    pub together: BTreeSet<(Position, Position)>,
    /// The levels for which a walkthrough that begins unanswered has no outcome.
    pub without_outcome: BTreeSet<i32>,
    /// Too many walkthroughs to go through.
    pub gave_up: bool,
}

/// A variable, by its task if it is of one.
type Variable = (Option<usize>, String);
type Variables = BTreeMap<Variable, Known>;

struct Walker<'a> {
    guide: &'a Guide,
    shown: Shown,
    work: usize,
    level: i32,
    judge_outcome: bool,
}

/// Guides of more work are left out.
const MAX_WORK: usize = 30_000;

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

    /// The values of each variable at the start.
    fn start_values(&self) -> BTreeMap<Variable, Vec<Known>> {
        let mut keys: BTreeMap<Variable, BTreeSet<&str>> = BTreeMap::new();
        for task in self.entered() {
            for observation in self.observations(task) {
                for variable in Self::set_by(task, observation) {
                    keys.entry(variable).or_default().extend(&observation.keys);
                }
            }
        }
        let mut outside = BTreeSet::new();
        for observation in self.outside() {
            let [variable, _] = Self::set_by(usize::MAX, observation);
            keys.entry(variable.clone())
                .or_default()
                .extend(&observation.keys);
            outside.insert(variable);
        }
        let mut set = BTreeSet::new();
        let mut read_first = BTreeSet::new();
        self.reads(0, None, &set, &mut read_first);
        self.follow(&mut vec![0], &mut set, &mut read_first);
        let mut read = BTreeSet::new();
        for task in self.entered() {
            self.reads(task, None, &BTreeSet::new(), &mut read);
            for step in 0..self.tasks[task].steps.len() {
                self.reads(task, Some(step), &BTreeSet::new(), &mut read);
            }
        }
        let values = read.into_iter().map(|variable| {
            let values = match keys.get(&variable) {
                None => anything(),
                Some(keys) if outside.contains(&variable) || read_first.contains(&variable) => {
                    keys.iter().map(|key| answered(key)).chain([None]).collect()
                }
                Some(_) => vec![None],
            };
            (variable, values)
        });
        values.collect()
    }

    /// Adds the variables that a task's or step's dependencies read, except those set.
    fn reads(
        &self,
        task: usize,
        step: Option<usize>,
        set: &BTreeSet<Variable>,
        into: &mut BTreeSet<Variable>,
    ) {
        let group = match step {
            None => &self.tasks[task].dependencies,
            Some(step) => &self.tasks[task].steps[step].dependencies,
        };
        for condition in group.iter().flat_map(conditions_of) {
            let variable = self.variable(task, &full_name(condition));
            if !set.contains(&variable) {
                into.insert(variable);
            }
        }
    }

    fn follow(
        &self,
        entered: &mut Vec<usize>,
        set: &mut BTreeSet<Variable>,
        read_first: &mut BTreeSet<Variable>,
    ) {
        let task = *entered.last().unwrap();
        for (index, step) in self.tasks[task].steps.iter().enumerate() {
            if !step.published {
                continue;
            }
            self.reads(task, Some(index), set, read_first);
            match &step.kind {
                Kind::Observation(observation) => {
                    set.extend(Self::set_by(task, observation));
                }
                Kind::Subtask(subtask) => {
                    self.reads(*subtask, None, set, read_first);
                    if !entered.contains(subtask) {
                        entered.push(*subtask);
                        self.follow(entered, set, read_first);
                        entered.pop();
                    }
                }
                _ => {}
            }
        }
    }

    /// Goes through all walkthroughs.
    pub fn go_through(&self) -> Shown {
        let start = self.start_values();
        let mut walker = Walker {
            guide: self,
            shown: Shown::default(),
            work: 0,
            level: 0,
            judge_outcome: false,
        };
        for level in self.tasks[0].roles.clone() {
            walker.level = level;
            walker.judge_outcome = false;
            let variables: Vec<_> = start.iter().collect();
            walker.start(&variables, Variables::new());
            walker.judge_outcome = true;
            let unanswered = start.keys().map(|name| (name.clone(), None));
            walker.begin(unanswered.collect());
        }
        walker.shown.gave_up = walker.work > MAX_WORK;
        walker.shown
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

/// A variable, by its task if it is of one, and its possible values at the start.
type PossibleStart<'a> = (&'a Variable, &'a Vec<Known>);

impl Walker<'_> {
    fn start(&mut self, variables: &[PossibleStart<'_>], chosen: Variables) {
        self.work += 1;
        if self.work > MAX_WORK {
            return;
        }
        let Some(((name, values), rest)) = variables.split_first() else {
            self.begin(chosen);
            return;
        };
        for value in *values {
            let mut chosen = chosen.clone();
            chosen.insert((*name).clone(), value.clone());
            self.start(rest, chosen);
        }
    }

    fn begin(&mut self, variables: Variables) {
        let root = &self.guide.tasks[0];
        if !self.guide.holds(0, root.dependencies.as_ref(), &variables) {
            self.shown.root_fails |= !self.judge_outcome;
            return;
        }
        self.shown.begins |= !self.judge_outcome;
        self.walk(vec![(0, 0)], variables, false, Vec::new());
    }

    fn walk(
        &mut self,
        mut entered: Vec<(usize, usize)>,
        variables: Variables,
        mut outcome: bool,
        mut seen: Vec<Position>,
    ) {
        while let Some((task, next)) = entered.last_mut() {
            self.work += 1;
            if self.work > MAX_WORK {
                return;
            }
            let position = (*task, *next);
            let task = position.0;
            let Some(step) = self.guide.tasks[task].steps.get(position.1) else {
                entered.pop();
                continue;
            };
            *next += 1;
            if !step.published {
                continue;
            }
            self.shown.comes.insert(position);
            if !self
                .guide
                .holds(task, step.dependencies.as_ref(), &variables)
            {
                self.shown.fails.insert(position);
                continue;
            }
            if let Kind::Subtask(subtask) = step.kind
                && !self.sees_task(subtask, &variables)
            {
                continue;
            }
            self.shown.sees.insert(position);
            match &step.kind {
                Kind::Information => {}
                Kind::Solution | Kind::Idp => outcome = true,
                Kind::End => {
                    outcome = true;
                    entered.pop();
                }
                Kind::Subtask(subtask) => {
                    if entered.iter().all(|(task, _)| task != subtask) {
                        entered.push((*subtask, 0));
                    }
                }
                Kind::Observation(observation) => {
                    for other in &seen {
                        self.shown.together.insert((*other, position));
                    }
                    seen.push(position);
                    for key in &observation.keys {
                        let mut variables = variables.clone();
                        for name in Guide::set_by(task, observation) {
                            variables.insert(name, answered(key));
                        }
                        self.walk(entered.clone(), variables, outcome, seen.clone());
                    }
                    return;
                }
            }
        }
        if self.judge_outcome && !outcome {
            self.shown.without_outcome.insert(self.level);
        }
    }

    fn sees_task(&mut self, task: usize, variables: &Variables) -> bool {
        let GuideTask {
            roles,
            published,
            dependencies,
            steps: _,
        } = &self.guide.tasks[task];
        if !roles.contains(&self.level) || (task != 0 && !published) {
            return false;
        }
        self.shown.task_comes.insert(task);
        let holds = self.guide.holds(task, dependencies.as_ref(), variables);
        if !holds {
            self.shown.task_fails.insert(task);
        }
        holds
    }
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
