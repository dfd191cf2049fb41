//! What a picture of a guide shows.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    cli::{out::sanitize, wording},
    domain::{
        analysis::{account_name, full_name},
        dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
        feedback::Feedback,
        ids::TaskId,
        import::{Document, DocumentStep},
        step::StepType,
        task::Published,
    },
    messages::encode,
    proto::v1,
};

/// Most answers that a step lists.
const MAX_ANSWERS: usize = 8;
/// Most observations of one variable that an edge comes from. A step that reads one which more of
/// them set has its condition as text.
const MAX_SETTERS: usize = 20;

#[derive(Default)]
pub(super) struct Graph {
    /// Its task and the tasks that it manages, each with its nodes: itself, then its steps.
    pub tasks: Vec<Range<usize>>,
    pub nodes: Vec<GraphNode>,
    /// What shows a step or task: observations with the nodes that their answers show, and
    /// subtask steps with their tasks. The texts are the answers.
    pub edges: BTreeMap<usize, Vec<(usize, String)>>,
}

/// A task or a step. Its texts are sanitized.
pub(super) struct GraphNode {
    /// The type of a step; `None` for a task.
    pub kind: Option<StepType>,
    /// The place of a step in its task, from 1; 0 for a task.
    pub number: usize,
    pub title: String,
    /// Its answers, and its conditions if the edges do not show them.
    pub notes: Vec<String>,
    /// Whether it is not published.
    pub is_hidden: bool,
    /// Whether no answers lead to it.
    pub is_unreachable: bool,
}

impl Graph {
    /// The picture of a document. `unreachable` are the paths of the steps and tasks that nobody
    /// comes to.
    pub fn of(document: &Document, unreachable: &BTreeSet<String>) -> Self {
        let mut builder = GraphBuilder {
            unreachable,
            graph: Self::default(),
            conditions: Vec::new(),
            setters: BTreeMap::new(),
            texts: BTreeMap::new(),
            managed: Vec::new(),
            subtasks: Vec::new(),
            task_nodes: BTreeMap::new(),
        };
        builder.add_task(document, None);
        builder.finish()
    }
}

impl GraphNode {
    /// The lines of its text: what it is, its title, and the notes.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let heading = [self.kind_text(), self.heading()].into_iter();
        heading.chain(self.notes.iter().cloned())
    }

    /// The title, after the number of a step.
    pub fn heading(&self) -> String {
        match self.number {
            0 => self.title.clone(),
            number => format!("{number}. {}", self.title),
        }
    }

    /// What it is, such as `end` or `solution, hidden`.
    pub fn kind_text(&self) -> String {
        let kind = self.kind.map(StepType::number);
        let kind = kind.and_then(|kind| v1::StepType::try_from(kind).ok());
        let kind = kind.map_or("task", wording::kind);
        let hidden = if self.is_hidden { ", hidden" } else { "" };
        let unreachable = match self.is_unreachable {
            true => ", unreachable",
            false => "",
        };
        format!("{kind}{hidden}{unreachable}")
    }
}

struct GraphBuilder<'a> {
    unreachable: &'a BTreeSet<String>,
    graph: Graph,
    /// The nodes that have conditions, each with its task.
    conditions: Vec<(usize, usize, Group)>,
    /// The observations that set a name: for the account, or within a task.
    setters: BTreeMap<(Option<usize>, String), Vec<usize>>,
    /// The texts of the answers of observations by their keys.
    texts: BTreeMap<(usize, String), String>,
    /// Observations with the tasks that they manage, and the texts of these answers.
    managed: Vec<(usize, usize, String)>,
    subtasks: Vec<(usize, TaskId)>,
    task_nodes: BTreeMap<TaskId, usize>,
}

impl<'a> GraphBuilder<'a> {
    /// Adds a task and what it manages; the index of its node. A managed task has the name of its
    /// answer.
    fn add_task(&mut self, document: &Document, answer: Option<&str>) -> usize {
        let Document {
            path, task, steps, ..
        } = document;
        let first = self.graph.nodes.len();
        let index = self.graph.tasks.len();
        let decoded = task.new.as_ref();
        let name = decoded.map(|task| task.name.as_str());
        let content = decoded.map(|task| &task.content);
        self.graph.nodes.push(GraphNode {
            kind: None,
            number: 0,
            title: sanitize(answer.or(name).unwrap_or_default()),
            notes: Vec::new(),
            is_hidden: content.is_some_and(|it| it.published != Published::default()),
            is_unreachable: self.unreachable.contains(&format!("{path}.task")),
        });
        self.task_nodes.extend(task.guid.map(|guid| (guid, first)));
        let dependencies = content.and_then(|content| content.dependencies.clone());
        self.conditions
            .extend(dependencies.map(|group| (first, index, group)));
        let questions: Vec<Option<Feedback>> = steps
            .iter()
            .zip(1..)
            .map(|(step, number)| self.add_step(step, number, index))
            .collect();
        self.graph.tasks.push(first..self.graph.nodes.len());
        for ((step, question), observation) in steps.iter().zip(questions).zip(first + 1..) {
            let question = question.filter(|it| it.linked);
            let values = question.iter().flat_map(|it| &it.values);
            for (value, managed) in values.zip(&step.values) {
                if let Some(document) = managed.document.as_deref() {
                    let node = self.add_task(document, Some(value.value.as_str()));
                    let ids = managed.ids.iter().map(|id| (*id, node));
                    self.task_nodes.extend(ids);
                    let text = sanitize(value.value.as_str());
                    self.managed.push((observation, node, text));
                }
            }
        }
        first
    }

    /// Adds a step, and returns its question.
    fn add_step(&mut self, step: &DocumentStep, number: usize, task: usize) -> Option<Feedback> {
        let kind = step.step_type();
        let node = self.graph.nodes.len();
        let decoded = step.new.clone();
        let title = match kind {
            Some(StepType::Subtask) => step.title.as_deref(),
            _ => decoded.as_ref().map(|step| step.title.as_str()),
        };
        if let (Some(StepType::Subtask), Some(subtask)) = (kind, step.subtask.guid) {
            self.subtasks.push((node, subtask));
        }
        let mut notes = Vec::new();
        if let Some(observation) = &decoded
            && let Some(feedback) = observation.kind.observation_feedback()
        {
            let name = feedback.name.as_str();
            let wide = (None, account_name(observation.product, name));
            for key in [wide, (Some(task), name.to_owned())] {
                self.setters.entry(key).or_default().push(node);
            }
            for value in &feedback.values {
                let key = (node, value.key.as_str().to_owned());
                self.texts.insert(key, value.value.as_str().to_owned());
            }
            let answers = feedback.values.iter().take(MAX_ANSWERS);
            notes.extend(answers.map(|it| format!("{}: {}", it.key.as_str(), it.value.as_str())));
            if feedback.values.len() > MAX_ANSWERS {
                let others = feedback.values.len() - MAX_ANSWERS;
                notes.push(format!("and {others} more answers"));
            }
        }
        let content = decoded.as_ref().map(|step| &step.content);
        self.graph.nodes.push(GraphNode {
            kind,
            number,
            title: sanitize(title.unwrap_or_default()),
            notes: notes.iter().map(|note| sanitize(note)).collect(),
            is_hidden: content.is_some_and(|it| it.published != Published::default()),
            is_unreachable: self.unreachable.contains(&step.path),
        });
        let decoded = decoded?;
        let dependencies = decoded.content.dependencies;
        self.conditions
            .extend(dependencies.map(|group| (node, task, group)));
        decoded.kind.into_feedback()
    }

    fn finish(mut self) -> Graph {
        let mut edges: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        let mut words: BTreeMap<usize, &str> = BTreeMap::new();
        for (node, task, group) in &self.conditions {
            words.insert(
                *node,
                match group.operator {
                    LogicalOperator::And => " AND ",
                    LogicalOperator::Or => " OR ",
                },
            );
            let mut are_all_drawn = true;
            group.for_each_condition(&mut |condition| {
                let name = full_name(condition);
                let own = self.setters.get(&(Some(*task), name.clone()));
                let setters = own.or_else(|| self.setters.get(&(None, name)));
                are_all_drawn &= setters.is_some_and(|setters| setters.len() <= MAX_SETTERS);
                let setters = setters.into_iter().flatten().filter(|it| *it != node);
                for setter in setters.take(MAX_SETTERS) {
                    let labels = edges.entry((*setter, *node)).or_default();
                    let label = answers(condition, &|key| {
                        let text = self.texts.get(&(*setter, key.to_owned()));
                        text.map_or(key, String::as_str).to_owned()
                    });
                    if !labels.contains(&label) {
                        labels.push(label);
                    }
                }
            });
            let is_single = matches!(group.nodes.as_slice(), [Node::Condition(_)]);
            if let Some(node) = self.graph.nodes.get_mut(*node)
                && !(is_single && are_all_drawn)
            {
                let group = encode::json::dependency_group(Group::clone(group));
                node.notes
                    .insert(0, format!("if {}", wording::group(&group)));
            }
        }
        for (observation, task, text) in self.managed {
            edges
                .entry((observation, task))
                .or_insert_with(|| vec![text]);
        }
        for (step, task) in self.subtasks {
            let managed = self.task_nodes.get(&task).copied();
            let name = managed.and_then(|node| self.graph.nodes.get(node));
            let name = name.map_or_else(|| format!("task {task}"), |node| node.title.clone());
            if let Some(node) = self
                .graph
                .nodes
                .get_mut(step)
                .filter(|it| it.title.is_empty())
            {
                node.title = name;
            }
            if let Some(managed) = managed {
                edges
                    .entry((step, managed))
                    .or_insert_with(|| vec![String::new()]);
            }
        }
        for ((from, to), labels) in edges {
            let targets = self.graph.edges.entry(from).or_default();
            let word = words.get(&to).copied().unwrap_or_default();
            targets.push((to, labels.join(word)));
        }
        self.graph
    }
}

/// The texts of the answers that a condition names, such as `Off OR Blinking` or `not Steady AND not Off`.
fn answers(condition: &Condition, text_of: &dyn Fn(&str) -> String) -> String {
    let targets = condition.targets.iter().map(|target| match target {
        ConditionTarget::Text(text) if text.is_empty() => "\"\"".to_owned(),
        ConditionTarget::Text(text) => sanitize(&text_of(text)),
        ConditionTarget::Number(number) => number.to_string(),
        ConditionTarget::Bool(truth) => truth.to_string(),
    });
    let targets: Vec<String> = targets.collect();
    match condition.operator {
        Comparison::Equal => targets.join(" OR "),
        Comparison::NotEqual => {
            let targets = targets.iter().map(|target| format!("not {target}"));
            targets.collect::<Vec<_>>().join(" AND ")
        }
        Comparison::Greater => format!("> {}", targets.concat()),
        Comparison::Less => format!("< {}", targets.concat()),
    }
}
