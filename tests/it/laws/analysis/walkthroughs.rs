//! The walkthroughs of a guide, and which conditions can hold together.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use expertise::proto::v1::dependency_node::Node;
use prost_types::value::Kind as Json;

use crate::{
    laws::random_guides::{
        Guide, Kind, Known, Observation, condition_holds, full_name, group_holds,
    },
    prelude::*,
};

/// A variable, by its task if it is of one.
type Variable = (Option<usize>, String);

/// A guide with more walkthroughs is not tried.
const MAX_WALKTHROUGHS: usize = 2_000;

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

    /// The observations of the account that are not part of the guide.
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
}

fn conditions_of(group: &DependencyGroup) -> Vec<&Condition> {
    let nodes = group.nodes.iter().filter_map(|node| node.node.as_ref());
    let conditions = nodes.map(|node| match node {
        Node::Group(group) => conditions_of(group),
        Node::Condition(condition) => vec![condition],
    });
    conditions.flatten().collect()
}

fn answered(key: &str) -> Known {
    Some(Json::StringValue(key.to_owned()))
}

/// Values of which one is in each range that targets of conditions divide.
fn anything() -> Vec<Known> {
    let texts = [
        "a", "b", "1", "2", "zz", "other", "true", "false", "1.0", "1.00", "1.50", "2.0", "0", "9",
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

/// A step, by its task and its index.
type Stop = (usize, usize);

/// What a guide's walkthroughs come to.
#[derive(Clone, Debug, Default)]
pub struct Walkthroughs {
    pub begins: bool,
    /// Whether the dependencies of the root fail in one.
    pub root_fails: bool,
    pub comes: BTreeSet<Stop>,
    /// Steps whose dependencies fail in a walkthrough that reaches them.
    pub fails: BTreeSet<Stop>,
    pub sees: BTreeSet<Stop>,
    /// The levels for which a walkthrough that begins without answers ends without an outcome.
    pub levels_without_outcome: BTreeSet<i32>,
}

/// The next choice of a walkthrough: the recorded choice, or the first of this many.
fn choose(choices: &mut Vec<(usize, usize)>, made: &mut usize, count: usize) -> usize {
    if *made == choices.len() {
        choices.push((0, count));
    }
    *made += 1;
    choices[*made - 1].0
}

/// Goes through a guide in every way, or as an example says.
struct Walker<'a> {
    guide: &'a Guide,
    level: i32,
    /// The answers of the example that are left. It begins with nothing answered.
    example: Option<&'a [(String, String)]>,
    /// The values at the start of the variables that are set.
    starts: BTreeMap<Variable, Vec<Known>>,
    /// Those of the others.
    anything: Vec<Known>,
    /// For each choice of a walkthrough, what was chosen, and the number of options.
    choices: Vec<(usize, usize)>,
    made: usize,
    values: BTreeMap<Variable, Known>,
    begins_unanswered: bool,
    has_outcome: bool,
    found: Walkthroughs,
}

impl<'a> Walker<'a> {
    fn new(guide: &'a Guide, level: i32, example: Option<&'a [(String, String)]>) -> Self {
        Self {
            guide,
            level,
            example,
            starts: guide.starts(),
            anything: anything(),
            choices: Vec::new(),
            made: 0,
            values: BTreeMap::new(),
            begins_unanswered: true,
            has_outcome: false,
            found: Walkthroughs::default(),
        }
    }

    /// Whether the walkthrough has an outcome; `None` if it does not begin, or is not as the example
    /// says.
    fn walk(&mut self) -> Option<bool> {
        self.values.clear();
        (self.made, self.begins_unanswered, self.has_outcome) = (0, true, false);
        if !self.holds(0, self.guide.tasks[0].dependencies.as_ref()) {
            self.found.root_fails = true;
            return None;
        }
        self.found.begins = true;
        self.enter(0, &[])?;
        Some(self.has_outcome)
    }

    fn holds(&mut self, task: usize, group: Option<&DependencyGroup>) -> bool {
        group.is_none_or(|group| group_holds(group, &mut |name| self.value(task, name)))
    }

    fn value(&mut self, task: usize, name: &str) -> Known {
        let variable = self.guide.variable(task, name);
        if let Some(value) = self.values.get(&variable) {
            return value.clone();
        }
        let value = match self.example {
            Some(_) => None,
            None => {
                let starts = self.starts.get(&variable).unwrap_or(&self.anything);
                let chosen = choose(&mut self.choices, &mut self.made, starts.len());
                starts[chosen].clone()
            }
        };
        self.begins_unanswered &= value.is_none();
        self.values.insert(variable, value.clone());
        value
    }

    /// The answer to an observation; `None` if the example has a different answer.
    fn answer(&mut self, name: &str, keys: &[&'static str]) -> Option<&'static str> {
        let Some(answers) = &mut self.example else {
            let chosen = choose(&mut self.choices, &mut self.made, keys.len());
            return Some(keys[chosen]);
        };
        let (answer, rest) = answers.split_first()?;
        *answers = rest;
        let mut keys = keys.iter().copied();
        keys.find(|key| answer.0 == name && answer.1 == *key)
    }

    fn enter(&mut self, task: usize, via: &[Stop]) -> Option<()> {
        let guide = self.guide;
        for (index, step) in guide.tasks[task].steps.iter().enumerate() {
            let stop = (task, index);
            if !step.published {
                continue;
            }
            self.found.comes.insert(stop);
            if !self.holds(task, step.dependencies.as_ref()) {
                self.found.fails.insert(stop);
                continue;
            }
            match &step.kind {
                Kind::Information => {}
                Kind::Solution | Kind::Idp | Kind::End => self.has_outcome = true,
                Kind::Observation(observation) => {
                    let names = Guide::set_by(task, observation);
                    let key = self.answer(&names[0].1, &observation.keys)?;
                    let set = names.map(|name| (name, answered(key)));
                    self.values.extend(set);
                }
                Kind::Subtask(subtask) => {
                    let inner = &guide.tasks[*subtask];
                    // The root counts as published.
                    let is_open = *subtask == 0 || inner.published;
                    if !is_open || !inner.roles.contains(&self.level) {
                        continue;
                    }
                    if !self.holds(*subtask, inner.dependencies.as_ref()) {
                        self.found.root_fails |= *subtask == 0;
                        continue;
                    }
                    let path = [via, &[stop]].concat();
                    if path.iter().all(|(task, _)| task != subtask) {
                        self.enter(*subtask, &path)?;
                    }
                }
            }
            self.found.sees.insert(stop);
            if matches!(step.kind, Kind::End) {
                break;
            }
        }
        Some(())
    }
}

/// Walkthroughs and sets of conditions.
impl Guide {
    /// Tries every walkthrough; `None` if there are too many.
    pub fn walkthroughs(&self) -> Option<Walkthroughs> {
        let mut walker = Walker::new(self, 0, None);
        let mut tried = 0;
        for level in &self.tasks[0].roles {
            walker.level = *level;
            loop {
                if walker.walk() == Some(false) && walker.begins_unanswered {
                    walker.found.levels_without_outcome.insert(*level);
                }
                tried += 1;
                if tried == MAX_WALKTHROUGHS {
                    return None;
                }
                let is_last = |(chosen, count): &mut (usize, usize)| *chosen + 1 == *count;
                while walker.choices.pop_if(is_last).is_some() {}
                match walker.choices.last_mut() {
                    Some((chosen, _)) => *chosen += 1,
                    None => break,
                }
            }
        }
        Some(walker.found)
    }

    /// Whether the walkthrough with these answers that begins without answers has an outcome;
    /// `None` if there is no such walkthrough.
    pub fn outcome_of(&self, level: i32, answers: &[(String, String)]) -> Option<bool> {
        let mut walker = Walker::new(self, level, Some(answers));
        let outcome = walker.walk();
        let outcome = outcome.filter(|_| walker.example.is_some_and(<[_]>::is_empty));
        outcome.filter(|_| self.tasks[0].roles.contains(&level))
    }

    /// The keys that each variable can have.
    fn keys(&self) -> BTreeMap<Variable, BTreeSet<&str>> {
        let mut keys: BTreeMap<Variable, BTreeSet<&str>> = BTreeMap::new();
        for task in self.entered() {
            for observation in self.observations(task) {
                for variable in Self::set_by(task, observation) {
                    keys.entry(variable).or_default().extend(&observation.keys);
                }
            }
        }
        for observation in self.outside() {
            let [variable, _] = Self::set_by(usize::MAX, observation);
            keys.entry(variable).or_default().extend(&observation.keys);
        }
        keys
    }

    /// The values at the start of the variables that are set: only none, if nothing else sets the
    /// variable and nothing reads it before.
    fn starts(&self) -> BTreeMap<Variable, Vec<Known>> {
        let (mut set, mut early) = (BTreeSet::new(), BTreeSet::new());
        self.find_early_reads(&[0], &mut set, &mut early);
        let outside = self.outside();
        early.extend(outside.map(|one| Self::set_by(usize::MAX, one)[0].clone()));
        let keys = self.keys().into_iter().map(|(variable, keys)| {
            let keys = keys.into_iter().filter(|_| early.contains(&variable));
            let values = iter::once(None).chain(keys.map(answered)).collect();
            (variable, values)
        });
        keys.collect()
    }

    /// Finds the variables that published steps read before one sets them. `entered` are the tasks
    /// that it is inside of.
    fn find_early_reads(
        &self,
        entered: &[usize],
        set: &mut BTreeSet<Variable>,
        early: &mut BTreeSet<Variable>,
    ) {
        let task = entered[entered.len() - 1];
        if task == 0 {
            early.extend(self.reads(0, &self.tasks[0].dependencies));
        }
        for step in self.tasks[task].steps.iter().filter(|step| step.published) {
            early.extend(&self.reads(task, &step.dependencies) - set);
            match &step.kind {
                Kind::Subtask(subtask) => {
                    let dependencies = &self.tasks[*subtask].dependencies;
                    early.extend(&self.reads(*subtask, dependencies) - set);
                    if !entered.contains(subtask) {
                        let entered = [entered, &[*subtask]].concat();
                        self.find_early_reads(&entered, set, early);
                    }
                }
                Kind::Observation(observation) => set.extend(Self::set_by(task, observation)),
                _ => {}
            }
        }
    }

    /// The variables that a group of a task reads.
    fn reads(&self, task: usize, group: &Option<DependencyGroup>) -> BTreeSet<Variable> {
        let conditions = group.iter().flat_map(conditions_of);
        let variables = conditions.map(|one| self.variable(task, &full_name(one)));
        variables.collect()
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
        let possible = self.keys();
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
