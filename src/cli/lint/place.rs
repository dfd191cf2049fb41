//! The place in a document that the path of a finding leads to.

use crate::{
    cli::wording,
    proto::v1::{Step, TaskDocument, dependency_node::Node},
};

/// The innermost task and step on a path.
#[derive(Clone, Copy)]
pub struct DocumentPlace<'a> {
    document: &'a TaskDocument,
    step: Option<&'a Step>,
}

impl<'a> DocumentPlace<'a> {
    pub fn at(document: &'a TaskDocument, path: &str) -> Self {
        let mut place = Self {
            document,
            step: None,
        };
        let mut nested = None;
        for part in path.split('.') {
            match (indexed(part), place.step) {
                (("steps", Some(index)), None) => place.step = place.document.steps.get(index),
                (("values", Some(index)), Some(observation)) => {
                    let config = observation.feedback_config.first();
                    let value = config.and_then(|config| config.values.get(index));
                    nested = value.and_then(|value| value.task_json.as_ref());
                }
                (("task_json", None), Some(_)) => {
                    if let Some(document) = nested.take() {
                        place = Self {
                            document,
                            step: None,
                        };
                    }
                }
                _ => {}
            }
        }
        place
    }

    /// The title of the step, or the name of the task.
    pub fn title(&self) -> Option<&'a str> {
        let task = || self.document.task.as_ref().map(|task| task.name.as_str());
        let title = self.step.map(|step| step.title.as_str()).or_else(task);
        title.filter(|title| !title.is_empty())
    }

    /// The condition that the path leads to.
    pub fn condition(&self, path: &str) -> Option<String> {
        let (_, nodes) = path.split_once(".dependencies.")?;
        let task = self.document.task.as_ref();
        let (group, shorthand) = match self.step {
            Some(step) => (step.dependencies.as_ref(), &step.dependency_shorthand),
            None => (task?.dependencies.as_ref(), &task?.dependency_shorthand),
        };
        let Some(mut group) = group else {
            return shorthand.clone();
        };
        for part in nodes.split('.') {
            let (name, index) = indexed(part);
            if let ("nodes", Some(index)) = (name, index) {
                match group.nodes.get(index)?.node.as_ref()? {
                    Node::Condition(condition) => return Some(wording::condition(condition)),
                    Node::Group(inner) => group = inner,
                }
            }
        }
        Some(wording::group(group))
    }
}

/// The name and index of a part of a path, such as `steps[3]`.
fn indexed(part: &str) -> (&str, Option<usize>) {
    let (name, index) = part.split_once('[').unwrap_or((part, ""));
    (name, index.strip_suffix(']').and_then(|it| it.parse().ok()))
}
