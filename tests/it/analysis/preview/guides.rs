//! Random guides: nested groups, subtasks, ENDs, forward reads and cycles.

use proptest::{collection::vec, option, prelude::*};

use crate::kit::prelude::*;

/// The names of observations, each with the product that it is always of, so that a name
/// stands for one variable.
pub const NAMES: [(&str, i64); 4] = [("one", 7), ("two", 7), ("three", 8), ("1.four", 8)];
/// The keys of answers; two are numeric.
pub const KEYS: [&str; 4] = ["a", "b", "1", "2.5"];
/// What conditions compare with, as JSON.
const TARGETS: [&str; 9] = [
    "\"a\"", "\"b\"", "\"1\"", "\"1.0\"", "1", "2.5", "2", "true", "\"true\"",
];

/// A guide: the first task, and tasks that subtask steps refer to.
#[derive(Clone, Debug)]
pub struct RandomGuide {
    tasks: Vec<RandomTask>,
}

#[derive(Clone, Debug)]
struct RandomTask {
    published: bool,
    techs_only: bool,
    dependencies: Option<RandomGroup>,
    steps: Vec<RandomStep>,
}

#[derive(Clone, Debug)]
struct RandomStep {
    published: bool,
    kind: RandomKind,
    dependencies: Option<RandomGroup>,
}

#[derive(Clone, Debug)]
enum RandomKind {
    Information,
    End,
    Observation { name: usize, keys: usize },
    Subtask(usize),
}

#[derive(Clone, Debug)]
struct RandomGroup {
    all: bool,
    nodes: Vec<RandomNode>,
}

#[derive(Clone, Debug)]
enum RandomNode {
    Condition {
        name: usize,
        operator: &'static str,
        targets: Vec<usize>,
    },
    Group(RandomGroup),
}

/// Guides of up to three tasks.
pub fn guides() -> impl Strategy<Value = RandomGuide> {
    vec(tasks(), 1..=3).prop_map(|tasks| RandomGuide { tasks })
}

fn tasks() -> impl Strategy<Value = RandomTask> {
    let published = prop::bool::weighted(0.9);
    let techs_only = prop::bool::weighted(0.2);
    let dependencies = option::weighted(0.3, groups());
    (published, techs_only, dependencies, vec(steps(), 1..=5)).prop_map(
        |(published, techs_only, dependencies, steps)| RandomTask {
            published,
            techs_only,
            dependencies,
            steps,
        },
    )
}

fn steps() -> impl Strategy<Value = RandomStep> {
    let kind = prop_oneof![
        2 => Just(RandomKind::Information),
        1 => Just(RandomKind::End),
        4 => (0..NAMES.len(), prop_oneof![2 => Just(1), 1 => Just(2), 1 => Just(KEYS.len())])
            .prop_map(|(name, keys)| RandomKind::Observation { name, keys }),
        2 => (0..3_usize).prop_map(RandomKind::Subtask),
    ];
    let dependencies = option::weighted(0.6, groups());
    (prop::bool::weighted(0.9), kind, dependencies).prop_map(|(published, kind, dependencies)| {
        RandomStep {
            published,
            kind,
            dependencies,
        }
    })
}

fn groups() -> impl Strategy<Value = RandomGroup> {
    let condition = (
        0..names().len(),
        prop_oneof![Just("="), Just("!="), Just(">"), Just("<")],
        vec(0..TARGETS.len(), 1..=2),
    );
    let condition = condition.prop_map(|(name, operator, targets)| RandomNode::Condition {
        name,
        operator,
        targets,
    });
    let node = condition.prop_recursive(2, 6, 3, |inner| {
        (any::<bool>(), vec(inner, 1..=3))
            .prop_map(|(all, nodes)| RandomNode::Group(RandomGroup { all, nodes }))
    });
    (any::<bool>(), vec(node, 1..=2)).prop_map(|(all, nodes)| RandomGroup { all, nodes })
}

/// The names that conditions read: path and variable. The last two are never set.
pub fn names() -> Vec<(String, String)> {
    let own = NAMES.map(|(name, _)| (String::new(), name.to_owned()));
    let wide = NAMES.map(|(name, product)| (format!("components.{product}"), name.to_owned()));
    let ghosts = [("components.9", "one"), ("", "ghost")];
    let ghosts = ghosts.map(|(path, name)| (path.to_owned(), name.to_owned()));
    own.into_iter().chain(wide).chain(ghosts).collect()
}

impl RandomGuide {
    /// Stores the guide, and returns the id of its first task.
    pub async fn stored(&self, client: &Client) -> String {
        let mut stored = Vec::new();
        for (index, random) in self.tasks.iter().enumerate() {
            let mut task = task(&format!("Task {index}")).with_published(random.published.into());
            task.dependencies = random.dependencies.as_ref().map(RandomGroup::message);
            if random.techs_only {
                task.roles = vec![AccessLevel::Tech.into()];
            }
            stored.push(client.given_task(task).await);
        }
        for (random, task) in self.tasks.iter().zip(&stored) {
            let steps = random.steps.iter().enumerate();
            let steps = steps.map(|(index, step)| step.message(index, &stored));
            client
                .imported(document_of(&task.guid, steps.collect()))
                .await;
        }
        stored.swap_remove(0).guid
    }
}

impl RandomStep {
    fn message(&self, index: usize, tasks: &[Task]) -> Step {
        let title = format!("Step {index}");
        let step = match &self.kind {
            RandomKind::Information => document_step(StepType::Information, &title),
            RandomKind::End => document_step(StepType::End, &title),
            RandomKind::Observation { name, keys } => {
                let (name, product) = NAMES[*name];
                document_step(StepType::Observation, &title)
                    .with_question(question(name, &KEYS[..*keys]))
                    .with_product(product)
            }
            RandomKind::Subtask(task) => {
                let task = &tasks[task % tasks.len()];
                subtask(&Task::default(), task)
            }
        };
        Step {
            published: Some(self.published.into()),
            dependencies: self.dependencies.as_ref().map(RandomGroup::message),
            ..step
        }
    }
}

impl RandomGroup {
    fn message(&self) -> DependencyGroup {
        let nodes = self.nodes.iter().map(|node| match node {
            RandomNode::Group(group) => nested(group.message()),
            RandomNode::Condition {
                name,
                operator,
                targets,
            } => {
                let (path, variable) = names().swap_remove(*name);
                let targets = targets
                    .iter()
                    .map(|target| value(serde_json::from_str(TARGETS[*target]).expect("JSON")));
                comparison(Condition {
                    variable,
                    operator: (*operator).to_owned(),
                    targets: targets.collect(),
                    path,
                })
            }
        });
        let nodes = nodes.collect();
        if self.all {
            all_of(nodes)
        } else {
            any_of(nodes)
        }
    }
}
