//! The graph of a guide.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use prost_types::value::Kind;

use crate::{
    cli::{out::sanitize, place::DOCUMENT, wording},
    domain::{analysis::account_name, ids::ProductId, shorthand},
    messages::{
        encode,
        managed_documents::{managed_documents, values},
    },
    proto::v1::{
        Condition, DependencyGroup, LogicalOperator, Step, StepType, Task, TaskDocument,
        dependency_node::Node,
    },
};

/// The maximum number of answers that a step lists.
const MAX_ANSWERS: usize = 8;
/// The maximum number of observations of a variable that edges come from. If more observations set
/// the variable, steps show the condition as text.
const MAX_SETTERS: usize = 20;

#[derive(Default)]
pub(super) struct Graph {
    /// The task and its managed tasks. Each has a node for itself, followed by nodes for its steps.
    pub tasks: Vec<Range<usize>>,
    pub nodes: Vec<GraphNode>,
    /// The edges: from observations to the nodes that their answers show, and from subtask steps to
    /// their tasks. The texts are the answers.
    pub edges: BTreeMap<usize, Vec<(usize, String)>>,
}

/// A task or a step. Its texts are sanitized.
pub(super) struct GraphNode {
    /// The type of a step; `None` for a task.
    pub kind: Option<StepType>,
    /// The title, after the number of a step.
    pub heading: String,
    /// Its answers, and its conditions if the edges do not show them.
    pub notes: Vec<String>,
    /// Whether it is not published.
    pub is_hidden: bool,
    pub is_unreachable: bool,
}

impl Graph {
    /// The graph of a valid document. `unreachable` has the paths of unreachable steps and tasks.
    pub fn new(document: &TaskDocument, unreachable: &BTreeSet<String>) -> Self {
        let mut builder = GraphBuilder {
            unreachable,
            graph: Self::default(),
            conditions: Vec::new(),
            setters: BTreeMap::new(),
            managed: Vec::new(),
            subtasks: Vec::new(),
            tasks: BTreeMap::new(),
        };
        builder.add_task(document, DOCUMENT, None);
        builder.finish()
    }
}

impl GraphNode {
    /// The lines of its text: its kind, its heading, and its notes.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let heading = [self.kind_text(), self.heading.clone()].into_iter();
        heading.chain(self.notes.iter().cloned())
    }

    /// Its kind, such as `end` or `solution, hidden`.
    pub fn kind_text(&self) -> String {
        let kind = self.kind.map_or("task".to_owned(), wording::kind);
        let hidden = if self.is_hidden { ", hidden" } else { "" };
        let unreachable = match self.is_unreachable {
            true => ", unreachable",
            false => "",
        };
        kind + hidden + unreachable
    }
}

type Setters<'a> = BTreeMap<(Option<usize>, String), Vec<(usize, &'a Step)>>;

struct GraphBuilder<'a> {
    unreachable: &'a BTreeSet<String>,
    graph: Graph,
    /// The nodes that have conditions, each with its task.
    conditions: Vec<(usize, usize, DependencyGroup)>,
    /// The observations that set a name: for the account, or within a task.
    setters: Setters<'a>,
    /// Observations with the tasks that they manage, and the texts of these answers.
    managed: Vec<(usize, usize, String)>,
    subtasks: Vec<(usize, &'a Step)>,
    /// The nodes of managed tasks by their ids.
    tasks: BTreeMap<&'a str, usize>,
}

impl<'a> GraphBuilder<'a> {
    /// Adds a task and its managed tasks, and returns the index of its node. A managed task has the
    /// name of its answer.
    fn add_task(&mut self, document: &'a TaskDocument, path: &str, answer: Option<&str>) -> usize {
        let (first, index) = (self.graph.nodes.len(), self.graph.tasks.len());
        let task = document.task.as_ref();
        let name = task.map(|task| task.name.as_str());
        self.graph.nodes.push(GraphNode {
            kind: None,
            heading: sanitize(answer.or(name).unwrap_or_default()),
            notes: Vec::new(),
            is_hidden: task.is_some_and(|task| task.published.is_some_and(|it| it != 1)),
            is_unreachable: self.unreachable.contains(&format!("{path}.task")),
        });
        let group =
            task.and_then(|task: &Task| conditions(&task.dependencies, &task.dependency_shorthand));
        self.conditions
            .extend(group.map(|group| (first, index, group)));
        for (step, place) in document.steps.iter().zip(0..) {
            self.add_step(step, place, path, index);
        }
        self.graph.tasks.push(first..self.graph.nodes.len());
        for ((step, place), node) in document.steps.iter().zip(0..).zip(first + 1..) {
            for (value, managed) in managed_documents(step) {
                let position = values(step).position(|it| it.key == value.key);
                let position = position.unwrap_or_default();
                let below = format!(
                    "{path}.steps[{place}].feedback_config[0].values[{position}].task_json"
                );
                let task = self.add_task(managed, &below, Some(value.value.as_str()));
                let guid = managed.task.as_ref().map_or("", |task| task.guid.as_str());
                for id in [guid, value.link.as_str()] {
                    if !id.is_empty() {
                        self.tasks.insert(id, task);
                    }
                }
                self.managed.push((node, task, sanitize(&value.value)));
            }
        }
        first
    }

    fn add_step(&mut self, step: &'a Step, place: usize, path: &str, task: usize) {
        let node = self.graph.nodes.len();
        if step.r#type() == StepType::Subtask {
            self.subtasks.push((node, step));
        }
        let mut notes = Vec::new();
        if step.r#type() == StepType::Observation {
            for config in &step.feedback_config {
                let product = ProductId::new(step.product_id());
                let full = product.map(|product| account_name(product, &config.name));
                let full = (None, full.unwrap_or_default());
                for key in [full, (Some(task), config.name.clone())] {
                    self.setters.entry(key).or_default().push((node, step));
                }
            }
            let answers = values(step).map(|it| format!("{}: {}", it.key, it.value));
            notes.extend(answers.take(MAX_ANSWERS).map(|it| sanitize(&it)));
            match values(step).count().saturating_sub(MAX_ANSWERS) {
                0 => {}
                others => notes.push(format!("and {others} more answers")),
            }
        }
        self.graph.nodes.push(GraphNode {
            kind: Some(step.r#type()),
            heading: format!("{}. {}", place + 1, sanitize(&step.title)),
            notes,
            is_hidden: step.published.is_some_and(|it| it != 1),
            is_unreachable: self.unreachable.contains(&format!("{path}.steps[{place}]")),
        });
        let group = conditions(&step.dependencies, &step.dependency_shorthand);
        self.conditions
            .extend(group.map(|group| (node, task, group)));
    }

    fn finish(mut self) -> Graph {
        let mut edges: BTreeMap<(usize, usize), String> = BTreeMap::new();
        for (node, task, group) in &self.conditions {
            let word = match group.operator() {
                LogicalOperator::Or => " OR ",
                LogicalOperator::And | LogicalOperator::Unspecified => " AND ",
            };
            let mut are_all_drawn = true;
            let mut labels: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            for condition in all_conditions(group) {
                let name = wording::variable(condition);
                let own = self.setters.get(&(Some(*task), name.clone()));
                let setters = own.or_else(|| self.setters.get(&(None, name)));
                are_all_drawn &= setters.is_some_and(|setters| setters.len() <= MAX_SETTERS);
                let setters = setters.into_iter().flatten();
                let setters = setters.filter(|(setter, _)| setter != node);
                for (setter, step) in setters.take(MAX_SETTERS) {
                    let labels = labels.entry(*setter).or_default();
                    let label = answers(condition, step);
                    if !labels.contains(&label) {
                        labels.push(label);
                    }
                }
            }
            let labels = labels.into_iter();
            edges.extend(labels.map(|(setter, labels)| ((setter, *node), labels.join(word))));
            let is_single = match group.nodes.as_slice() {
                [only] => matches!(only.node, Some(Node::Condition(_))),
                _ => false,
            };
            if let Some(node) = self.graph.nodes.get_mut(*node)
                && !(is_single && are_all_drawn)
            {
                node.notes
                    .insert(0, format!("if {}", wording::group(group)));
            }
        }
        for (observation, task, text) in self.managed {
            edges.entry((observation, task)).or_insert(text);
        }
        for (node, step) in self.subtasks {
            let task = self.tasks.get(step.subtask_id.as_str());
            if let Some(task) = task {
                edges.entry((node, *task)).or_default();
            }
            let name = task.and_then(|task| self.graph.nodes.get(*task));
            let name = match (name, step.subtask_external_id()) {
                (Some(task), _) => task.heading.clone(),
                (None, "") => format!("task {}", sanitize(&step.subtask_id)),
                (None, external_id) => format!("task {}", sanitize(external_id)),
            };
            if let Some(node) = self
                .graph
                .nodes
                .get_mut(node)
                .filter(|_| step.title.is_empty())
            {
                node.heading.push_str(&name);
            }
        }
        for ((from, to), label) in edges {
            self.graph.edges.entry(from).or_default().push((to, label));
        }
        self.graph
    }
}

/// The conditions of a task or step, which may be written as a shorthand.
fn conditions(
    group: &Option<DependencyGroup>,
    shorthand: &Option<String>,
) -> Option<DependencyGroup> {
    let parsed = || {
        let group = shorthand::parse(shorthand.as_ref()?).ok()?;
        Some(encode::json::dependency_group(group))
    };
    let group = group.clone().or_else(parsed);
    group.filter(|group| !group.nodes.is_empty())
}

/// The conditions of a group and its subgroups, in order.
fn all_conditions(group: &DependencyGroup) -> Vec<&Condition> {
    let nodes = group.nodes.iter().filter_map(|node| node.node.as_ref());
    let conditions = nodes.flat_map(|node| match node {
        Node::Condition(condition) => vec![condition],
        Node::Group(inner) => all_conditions(inner),
    });
    conditions.collect()
}

/// The texts of the answers that a condition names, such as `Off OR Blinking` or `not Steady AND not Off`.
fn answers(condition: &Condition, observation: &Step) -> String {
    let targets = condition.targets.iter().map(|target| match &target.kind {
        Some(Kind::StringValue(key)) if !key.is_empty() => {
            let value = values(observation).find(|it| it.key == *key);
            sanitize(value.map_or(key, |value| &value.value))
        }
        _ => wording::target(target),
    });
    let targets: Vec<String> = targets.collect();
    match condition.operator.as_str() {
        "=" => targets.join(" OR "),
        "!=" => {
            let targets = targets.iter().map(|target| format!("not {target}"));
            targets.collect::<Vec<_>>().join(" AND ")
        }
        operator => format!("{operator} {}", targets.concat()),
    }
}
