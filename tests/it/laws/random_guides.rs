//! Random guides with nested groups, subtasks, ENDs, forward reads and cycles, and an evaluator of
//! conditions, written only from the documentation of the API.

use expertise::proto::v1::dependency_node::Node;
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};
use prost_types::{Value, value::Kind as Json};

use crate::{kit::sample, prelude::*};

/// The value of a variable; `None` if it is not answered.
pub type Known = Option<Json>;

/// The levels that tasks are for.
pub const LEVELS: [AccessLevel; 3] = [AccessLevel::User, AccessLevel::Tech, AccessLevel::Expert];
/// The names of observations, each with its product.
pub const NAMES: [(&str, i64); 5] = [
    ("one", 7),
    ("two", 7),
    ("three", 7),
    ("1.four", 7),
    ("five", 8),
];
/// The keys of answers; two are numeric.
pub const KEYS: [&str; 4] = ["a", "b", "1", "2"];

#[derive(Clone, Debug)]
pub struct Guide {
    /// The first is the root.
    pub tasks: Vec<GuideTask>,
    /// Observations of a task that is not part of the guide.
    pub outside: Vec<Observation>,
}

#[derive(Clone, Debug)]
pub struct GuideTask {
    pub roles: Vec<i32>,
    pub published: bool,
    pub dependencies: Option<DependencyGroup>,
    pub steps: Vec<GuideStep>,
}

#[derive(Clone, Debug)]
pub struct GuideStep {
    pub kind: Kind,
    pub published: bool,
    pub dependencies: Option<DependencyGroup>,
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
    pub name: &'static str,
    pub keys: Vec<&'static str>,
}

/// The other one of the two products.
fn other(product: i64) -> i64 {
    15 - product
}

/// `stray` is how often an observation is of another product than its name.
fn observation(stray: f64) -> impl Strategy<Value = Observation> {
    let keys = subsequence(KEYS.to_vec(), 1..=KEYS.len());
    (select(&NAMES[..]), prop::bool::weighted(stray), keys).prop_map(
        |((name, product), stray, keys)| Observation {
            product: if stray { other(product) } else { product },
            name,
            keys,
        },
    )
}

/// The names that conditions read, as path and variable: names of tasks, names of the account, and
/// names that only stray observations or none set.
pub fn names() -> [Vec<(String, String)>; 3] {
    let wide = |product: i64, name: &str| (format!("components.{product}"), name.to_owned());
    let own = |name: &str| (String::new(), name.to_owned());
    let mut ghosts = NAMES
        .map(|(name, product)| wide(other(product), name))
        .to_vec();
    ghosts.push(own("ghost"));
    [
        NAMES.map(|(name, _)| own(name)).to_vec(),
        NAMES.map(|(name, product)| wide(product, name)).to_vec(),
        ghosts,
    ]
}

fn condition() -> impl Strategy<Value = DependencyNode> {
    let [own, wide, ghosts] = names();
    let name = prop_oneof![4 => select(own), 9 => select(wide), 3 => select(ghosts)];
    let operator = prop_oneof![5 => Just("="), 2 => Just("!="), 1 => Just(">"), 1 => Just("<")];
    let target = prop_oneof![
        8 => select(&KEYS[..]).prop_map(text),
        1 => select(&["zz", "1.0", "true"][..]).prop_map(text),
        2 => select(&[1.0, 1.5, 2.0][..]).prop_map(number),
        1 => any::<bool>().prop_map(|target| sample::value(target.into())),
    ];
    (name, operator, vec(target, 1..3)).prop_map(|((path, variable), operator, targets)| {
        comparison(Condition {
            path,
            variable,
            operator: operator.to_owned(),
            targets,
        })
    })
}

fn group() -> impl Strategy<Value = DependencyGroup> {
    let group = |nodes: BoxedStrategy<DependencyNode>| {
        (any::<bool>(), vec(nodes, 1..4)).prop_map(|(all, nodes)| match all {
            true => all_of(nodes),
            false => any_of(nodes),
        })
    };
    let node = condition().prop_recursive(2, 6, 3, move |node| group(node).prop_map(nested));
    group(node.boxed())
}

fn step(stray: f64) -> impl Strategy<Value = GuideStep> {
    let kind = prop_oneof![
        2 => Just(Kind::Information),
        6 => observation(stray).prop_map(Kind::Observation),
        2 => Just(Kind::Solution),
        1 => Just(Kind::Idp),
        2 => Just(Kind::End),
        2 => (0..3_usize).prop_map(Kind::Subtask),
    ];
    let parts = (
        kind,
        prop::bool::weighted(0.9),
        option::weighted(0.6, group()),
    );
    parts.prop_map(|(kind, published, dependencies)| GuideStep {
        kind,
        published,
        dependencies,
    })
}

fn task(
    steps: std::ops::Range<usize>,
    dependent: f64,
    stray: f64,
) -> impl Strategy<Value = GuideTask> {
    let levels = LEVELS.map(i32::from).to_vec();
    let roles = prop_oneof![3 => Just(levels.clone()), 1 => subsequence(levels, 1..=2)];
    let published = prop::bool::weighted(0.9);
    let dependencies = option::weighted(dependent, group());
    (roles, published, dependencies, vec(step(stray), steps)).prop_map(
        |(roles, published, dependencies, steps)| GuideTask {
            roles,
            published,
            dependencies,
            steps,
        },
    )
}

/// Guides of at most 6 observations, each of the product of its name.
pub fn guides() -> impl Strategy<Value = Guide> {
    guides_with_strays(0.0)
}

/// The same, with a probability that the product of an observation differs from its name.
pub fn guides_with_strays(stray: f64) -> impl Strategy<Value = Guide> {
    (
        task(1..10, 0.2, stray),
        vec(task(0..5, 0.4, stray), 2..=2),
        vec(observation(stray), 0..2),
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

impl Observation {
    fn message(&self) -> Step {
        observation_asking(question(self.name, &self.keys)).with_product(self.product)
    }
}

impl GuideStep {
    /// The step in a document. `tasks` are the tasks of the guide.
    pub fn message(&self, tasks: &[Task]) -> Step {
        let shown = |kind, title| document_step(kind, title).with_body("text");
        let made = match &self.kind {
            Kind::Information => shown(StepType::Information, "Information"),
            Kind::Observation(observation) => observation.message(),
            Kind::Solution => shown(StepType::Solution, "Solution"),
            Kind::Idp => shown(StepType::Idp, "Idp"),
            Kind::End => shown(StepType::End, "End"),
            Kind::Subtask(index) => subtask(&Task::default(), &tasks[*index]),
        };
        made.with_published(self.published.into())
            .with(|it| it.dependencies = self.dependencies.clone())
    }
}

impl Guide {
    /// Stores the tasks of the guide, their steps, and the observations outside.
    pub async fn stored(&self, client: &Client) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (index, random) in self.tasks.iter().enumerate() {
            let task = Task {
                dependencies: random.dependencies.clone(),
                ..sample::task(&format!("Task {index}"))
                    .with_roles(random.roles.clone())
                    .with_published(random.published.into())
            };
            tasks.push(client.given_task(task).await);
        }
        let mut stored = Vec::new();
        for (task, random) in tasks.iter().zip(&self.tasks) {
            let steps = random.steps.iter().map(|step| step.message(&tasks));
            stored.push(
                client
                    .imported(document_of(&task.guid, steps.collect()))
                    .await,
            );
        }
        if !self.outside.is_empty() {
            let steps = self.outside.iter().map(Observation::message).collect();
            client.imported(document("Outside", steps)).await;
        }
        stored
    }
}

/// The name that a condition reads.
pub fn full_name(condition: &Condition) -> String {
    match condition.path.as_str() {
        "" => condition.variable.clone(),
        path => format!("{path}.{}", condition.variable),
    }
}

/// Whether a group holds with these values of names.
pub fn group_holds(group: &DependencyGroup, value: &mut dyn FnMut(&str) -> Known) -> bool {
    let mut nodes = group.nodes.iter();
    let holds = |node: &DependencyNode| match node.node.as_ref().expect("a node") {
        Node::Group(group) => group_holds(group, value),
        Node::Condition(condition) => condition_holds(
            &value(&full_name(condition)),
            &condition.operator,
            &condition.targets,
        ),
    };
    match group.operator() {
        LogicalOperator::And => nodes.all(holds),
        _ => nodes.any(holds),
    }
}

/// Whether a condition holds for a value.
pub fn condition_holds(value: &Known, operator: &str, targets: &[Value]) -> bool {
    let mut kinds = targets
        .iter()
        .map(|target| target.kind.as_ref().expect("a target"));
    match operator {
        "=" => kinds.any(|target| equal(value, target)),
        "!=" => !kinds.any(|target| equal(value, target)),
        _ => kinds.any(|target| {
            let value = value.as_ref().and_then(double);
            value.zip(double(target)).is_some_and(|(value, target)| {
                if operator == ">" {
                    value > target
                } else {
                    value < target
                }
            })
        }),
    }
}

fn equal(value: &Known, target: &Json) -> bool {
    let text = |kind: &Json| match kind {
        Json::StringValue(text) => Some(text.clone()),
        Json::BoolValue(bool) => Some(bool.to_string()),
        _ => None,
    };
    let is_number = |kind: &Json| matches!(kind, Json::NumberValue(_));
    let Some(value) = value else { return false };
    if is_number(value) || is_number(target) {
        double(value).is_some() && double(value) == double(target)
    } else {
        text(value) == text(target)
    }
}

/// The double of a number or a numeric text.
fn double(kind: &Json) -> Option<f64> {
    match kind {
        Json::NumberValue(number) => Some(*number),
        Json::StringValue(text) => {
            let json: serde_json::Value = serde_json::from_str(text).ok()?;
            json.as_f64().filter(|_| text.trim() == text)
        }
        _ => None,
    }
}
