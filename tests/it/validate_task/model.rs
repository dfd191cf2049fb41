//! Guides as plain values, and everything that their walkthroughs show, found by going
//! through all of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*, sample::subsequence};

pub const LEVELS: [i32; 3] = [0, 1, 5];
const KEYS: [&str; 4] = ["a", "b", "1", "2"];

#[derive(Clone, Debug)]
pub struct Guide {
    /// The first is the root.
    pub tasks: Vec<GuideTask>,
    /// Observations of a task that is no part of the guide.
    pub outside: Vec<Observation>,
}

#[derive(Clone, Debug)]
pub struct GuideTask {
    pub roles: Vec<i32>,
    pub published: bool,
    pub dependencies: Option<Group>,
    pub steps: Vec<GuideStep>,
}

#[derive(Clone, Debug)]
pub struct GuideStep {
    pub kind: Kind,
    pub published: bool,
    pub dependencies: Option<Group>,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Information,
    Observation(Observation),
    Solution,
    Idp,
    End,
    Subtask(usize),
}

#[derive(Clone, Debug)]
pub struct Observation {
    pub product: i64,
    pub name: String,
    pub keys: Vec<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub and: bool,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
pub enum Node {
    Condition(Condition),
    Group(Group),
}

#[derive(Clone, Debug)]
pub struct Condition {
    /// `components.1.o0` has the path `components.1`.
    pub path: String,
    pub variable: String,
    pub operator: &'static str,
    pub targets: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Text(String),
    Number(f64),
    Bool(bool),
}

fn observation() -> impl Strategy<Value = Observation> {
    (
        prop_oneof![8 => Just(1_i64), 1 => Just(2)],
        0..5_usize,
        subsequence(KEYS.to_vec(), 1..=4),
    )
        .prop_map(|(product, name, keys)| Observation {
            product,
            name: format!("o{name}"),
            keys,
        })
}

fn condition() -> impl Strategy<Value = Node> {
    let name = prop_oneof![
        10 => (0..5_usize).prop_map(|name| ("components.1".to_owned(), format!("o{name}"))),
        1 => (0..5_usize).prop_map(|name| ("components.2".to_owned(), format!("o{name}"))),
        4 => (0..5_usize).prop_map(|name| (String::new(), format!("o{name}"))),
        2 => Just((String::new(), "unknown".to_owned())),
    ];
    let operator = prop_oneof![
        5 => Just("="), 2 => Just("!="), 1 => Just(">"), 1 => Just("<"),
    ];
    let target = prop_oneof![
        8 => proptest::sample::select(KEYS.to_vec()).prop_map(|key| Value::Text(key.to_owned())),
        1 => Just(Value::Text("zz".to_owned())),
        2 => proptest::sample::select(vec![1.0, 1.5, 2.0]).prop_map(Value::Number),
        1 => any::<bool>().prop_map(Value::Bool),
    ];
    (name, operator, vec(target, 1..3)).prop_map(|((path, variable), operator, targets)| {
        Node::Condition(Condition {
            path,
            variable,
            operator,
            targets,
        })
    })
}

fn group() -> impl Strategy<Value = Group> {
    let node = condition().prop_recursive(2, 6, 3, |node| {
        (any::<bool>(), vec(node, 1..4)).prop_map(|(and, nodes)| Node::Group(Group { and, nodes }))
    });
    (any::<bool>(), vec(node, 1..4)).prop_map(|(and, nodes)| Group { and, nodes })
}

fn step() -> impl Strategy<Value = GuideStep> {
    let kind = prop_oneof![
        2 => Just(Kind::Information),
        6 => observation().prop_map(Kind::Observation),
        2 => Just(Kind::Solution),
        1 => Just(Kind::Idp),
        2 => Just(Kind::End),
        2 => (0..3_usize).prop_map(Kind::Subtask),
    ];
    (
        kind,
        prop::bool::weighted(0.9),
        prop::option::weighted(0.6, group()),
    )
        .prop_map(|(kind, published, dependencies)| GuideStep {
            kind,
            published,
            dependencies,
        })
}

fn task(
    steps: std::ops::Range<usize>,
    dependencies_probability: f64,
) -> impl Strategy<Value = GuideTask> {
    (
        prop_oneof![
            3 => Just(LEVELS.to_vec()),
            1 => subsequence(LEVELS.to_vec(), 1..=2),
        ],
        prop::bool::weighted(0.9),
        prop::option::weighted(dependencies_probability, group()),
        vec(step(), steps),
    )
        .prop_map(|(roles, published, dependencies, steps)| GuideTask {
            roles,
            published,
            dependencies,
            steps,
        })
}

/// Guides of at most 6 observations.
pub fn guides() -> impl Strategy<Value = Guide> {
    (
        task(1..10, 0.2),
        vec(task(0..5, 0.4), 2..=2),
        vec(observation(), 0..2),
    )
        .prop_map(|(root, others, outside)| {
            let mut tasks = vec![root];
            tasks.extend(others);
            let mut observations = 0;
            for step in tasks.iter_mut().flat_map(|task| &mut task.steps) {
                if let Kind::Observation(_) = step.kind {
                    observations += 1;
                    if observations > 6 {
                        step.kind = Kind::Information;
                    }
                }
            }
            Guide { tasks, outside }
        })
}

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

type Variables = BTreeMap<(Option<usize>, String), Value>;

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
    fn variable(&self, task: usize, name: &str) -> (Option<usize>, String) {
        let own = self.observations(task).any(|one| one.name == name);
        (own.then_some(task), name.to_owned())
    }

    fn set_by(task: usize, observation: &Observation) -> [(Option<usize>, String); 2] {
        let Observation { product, name, .. } = observation;
        [
            (None, format!("components.{product}.{name}")),
            (Some(task), name.clone()),
        ]
    }

    /// The values of each variable at the start.
    fn start_values(&self) -> BTreeMap<(Option<usize>, String), Vec<Value>> {
        let mut keys: BTreeMap<(Option<usize>, String), BTreeSet<&str>> = BTreeMap::new();
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
                    let keys = keys.iter().map(|key| Value::Text((*key).to_owned()));
                    keys.chain([Value::None]).collect()
                }
                Some(_) => vec![Value::None],
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
        set: &BTreeSet<(Option<usize>, String)>,
        into: &mut BTreeSet<(Option<usize>, String)>,
    ) {
        fn each(group: &Group, visit: &mut impl FnMut(&Condition)) {
            for node in &group.nodes {
                match node {
                    Node::Condition(condition) => visit(condition),
                    Node::Group(group) => each(group, visit),
                }
            }
        }
        let group = match step {
            None => &self.tasks[task].dependencies,
            Some(step) => &self.tasks[task].steps[step].dependencies,
        };
        if let Some(group) = group {
            each(group, &mut |condition| {
                let variable = self.variable(task, &condition.name());
                if !set.contains(&variable) {
                    into.insert(variable);
                }
            });
        }
    }

    fn follow(
        &self,
        entered: &mut Vec<usize>,
        set: &mut BTreeSet<(Option<usize>, String)>,
        read_first: &mut BTreeSet<(Option<usize>, String)>,
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
            let unanswered = start.keys().map(|name| (name.clone(), Value::None));
            walker.begin(unanswered.collect());
        }
        walker.shown.gave_up = walker.work > MAX_WORK;
        walker.shown
    }

    fn holds(&self, task: usize, group: Option<&Group>, variables: &Variables) -> bool {
        let Some(group) = group else { return true };
        let node = |node: &Node| match node {
            Node::Group(group) => self.holds(task, Some(group), variables),
            Node::Condition(condition) => {
                let variable = self.variable(task, &condition.name());
                condition.holds(variables.get(&variable).unwrap_or(&Value::None))
            }
        };
        if group.and {
            group.nodes.iter().all(node)
        } else {
            group.nodes.iter().any(node)
        }
    }
}

fn anything() -> Vec<Value> {
    let texts = [
        "a", "b", "1", "2", "zz", "other", "true", "false", "1.0", "1.50", "2.0", "0", "9",
    ];
    let texts = texts.map(|text| Value::Text(text.to_owned()));
    let numbers = [0.0, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0].map(Value::Number);
    let others = [Value::None, Value::Bool(true), Value::Bool(false)];
    texts.into_iter().chain(numbers).chain(others).collect()
}

fn numeric(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Text(text) => match text.as_str() {
            "1" | "1.0" => Some(1.0),
            "1.50" => Some(1.5),
            "2" | "2.0" => Some(2.0),
            "0" => Some(0.0),
            "9" => Some(9.0),
            _ => None,
        },
        Value::None | Value::Bool(_) => None,
    }
}

fn equal(value: &Value, target: &Value) -> bool {
    match (value, target) {
        (Value::None, _) | (_, Value::None) => false,
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Bool(one), Value::Text(text)) | (Value::Text(text), Value::Bool(one)) => {
            one.to_string() == *text
        }
        (Value::Bool(_), Value::Number(_)) | (Value::Number(_), Value::Bool(_)) => false,
        (one, other) => numeric(one).is_some() && numeric(one) == numeric(other),
    }
}

impl Condition {
    pub fn name(&self) -> String {
        if self.path.is_empty() {
            self.variable.clone()
        } else {
            format!("{}.{}", self.path, self.variable)
        }
    }

    pub fn holds(&self, value: &Value) -> bool {
        let equals = self.targets.iter().any(|target| equal(value, target));
        let compares = |holds: fn(f64, f64) -> bool| {
            self.targets.iter().any(|target| {
                let pair = numeric(value).zip(numeric(target));
                pair.is_some_and(|(value, target)| holds(value, target))
            })
        };
        match self.operator {
            "=" => equals,
            "!=" => !equals,
            ">" => compares(|value, target| value > target),
            "<" => compares(|value, target| value < target),
            other => unreachable!("{other}"),
        }
    }
}

/// A variable, by its task if it is of one, and its possible values at the start.
type PossibleStart<'a> = (&'a (Option<usize>, String), &'a Vec<Value>);

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
                            variables.insert(name, Value::Text((*key).to_owned()));
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
                        variables.insert(name, Value::Text(key.clone()));
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
            group = match &group.nodes[*index] {
                Node::Group(group) => group,
                Node::Condition(_) => panic!("{path} leads into a condition"),
            };
        }
        match &group.nodes[*last] {
            Node::Condition(condition) => (task, condition.clone()),
            Node::Group(_) => panic!("{path} is a group"),
        }
    }

    /// Whether possible values meet all of the conditions.
    pub fn can_hold_together(&self, conditions: &[(usize, Condition)]) -> bool {
        let mut possible: BTreeMap<(Option<usize>, String), BTreeSet<&str>> = BTreeMap::new();
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
            .map(|(task, condition)| self.variable(*task, &condition.name()))
            .collect();
        variables.iter().all(|variable| {
            let values = match possible.get(variable) {
                None => anything(),
                Some(keys) => {
                    let keys = keys.iter().map(|key| Value::Text((*key).to_owned()));
                    keys.chain([Value::None]).collect()
                }
            };
            values.iter().any(|value| {
                let of_variable = conditions
                    .iter()
                    .filter(|(task, one)| self.variable(*task, &one.name()) == *variable);
                of_variable.map(|(_, one)| one).all(|one| one.holds(value))
            })
        })
    }
}
