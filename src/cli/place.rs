//! The place in a guide that a finding is about.

use super::{out::sanitize, wording};
use crate::{
    client::CallError,
    messages::managed_documents::managed_documents,
    proto::v1::{DependencyGroup, FeedbackValue, Step, TaskDocument, dependency_node::Node},
};

/// The beginning of the path of a finding in a document. Paths in a stored guide begin at the task
/// or step.
pub(super) const DOCUMENT: &str = "document";

/// The innermost task and step of a place.
#[derive(Clone, Copy)]
pub(super) struct GuidePlace<'a> {
    document: &'a TaskDocument,
    /// The step and its number, counted from 1.
    step: Option<(usize, &'a Step)>,
    /// The answer that manages and names the task; `None` for an unmanaged task.
    value: Option<&'a FeedbackValue>,
}

impl<'a> GuidePlace<'a> {
    /// The place of a path in a document, or else the task or step with this id.
    pub fn find(
        document: &'a TaskDocument,
        path: &str,
        (task, step): (&str, &str),
    ) -> Option<Self> {
        let root = Self {
            document,
            step: None,
            value: None,
        };
        match path.starts_with(DOCUMENT) {
            true => Some(root.at(path)),
            false => root.with_id(task, step),
        }
    }

    fn at(self, path: &str) -> Self {
        let mut place = self;
        let mut nested = None;
        for part in path.split('.') {
            match (indexed(part), place.step) {
                (("steps", Some(index)), None) => {
                    place.step = place.document.steps.get(index).map(|it| (index + 1, it));
                }
                (("values", Some(index)), Some((_, observation))) => {
                    let config = observation.feedback_config.first();
                    let value = config.and_then(|config| config.values.get(index));
                    nested = value.and_then(|value| Some((value, value.task_json.as_ref()?)));
                }
                (("task_json", None), Some(_)) => {
                    if let Some((value, document)) = nested.take() {
                        place = place.managed(value, document);
                    }
                }
                _ => {}
            }
        }
        place
    }

    fn managed(self, value: &'a FeedbackValue, document: &'a TaskDocument) -> Self {
        Self {
            document,
            step: None,
            value: Some(value),
        }
    }

    fn with_id(self, task: &str, step: &str) -> Option<Self> {
        let own = self.document.task.as_ref();
        if step.is_empty() && own.is_some_and(|own| own.guid == task) {
            return Some(self);
        }
        for (index, known) in self.document.steps.iter().enumerate() {
            if !step.is_empty() && known.guid == step {
                return Some(Self {
                    step: Some((index + 1, known)),
                    ..self
                });
            }
            let found = managed_documents(known)
                .find_map(|(value, document)| self.managed(value, document).with_id(task, step));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The number and title of the step; `None` for a task.
    pub fn step_label(&self) -> Option<String> {
        self.step.and_then(|_| self.label())
    }

    /// The number and title of the step, or the name of the task.
    pub fn label(&self) -> Option<String> {
        let quoted = |text: &str| (!text.is_empty()).then(|| format!("\"{}\"", sanitize(text)));
        let task = self.document.task.as_ref();
        let name = match self.value {
            Some(value) => quoted(&value.value),
            None => task.and_then(|task| quoted(&task.name)),
        };
        let Some((number, step)) = self.step else {
            return name;
        };
        let mut label = format!("step {number}");
        if let Some(title) = quoted(&step.title) {
            label.push_str(&format!(" {title}"));
        }
        if let Some(name) = name.filter(|_| self.value.is_some()) {
            label.push_str(&format!(" of task {name}"));
        }
        Some(label)
    }

    /// The conditions of the step or task, in both forms.
    fn conditions(&self) -> (Option<&'a DependencyGroup>, Option<&'a str>) {
        match (self.step, &self.document.task) {
            (Some((_, step)), _) => (
                step.dependencies.as_ref(),
                step.dependency_shorthand.as_deref(),
            ),
            (None, Some(task)) => (
                task.dependencies.as_ref(),
                task.dependency_shorthand.as_deref(),
            ),
            (None, None) => (None, None),
        }
    }

    /// The path in the spelling of the document, whose conditions may be a shorthand.
    pub fn path_as_written(&self, path: &str) -> String {
        let (group, shorthand) = self.conditions();
        match path.rsplit_once(".dependencies") {
            Some((above, _)) if group.is_none() && shorthand.is_some() => {
                format!("{above}.dependency_shorthand")
            }
            Some(_) | None => path.to_owned(),
        }
    }

    /// The condition that the path leads to.
    pub fn condition(&self, path: &str) -> Option<String> {
        let nodes = match path.strip_prefix("dependencies.") {
            Some(nodes) => nodes,
            None => path.split_once(".dependencies.")?.1,
        };
        let (group, shorthand) = self.conditions();
        let Some(mut group) = group else {
            return shorthand.map(str::to_owned);
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

/// Adds the titles of steps to violations that name them by ids.
pub(super) fn name_steps(error: &mut CallError, document: &TaskDocument) {
    for violation in &mut error.violations {
        let place = GuidePlace::find(document, "", ("", &violation.field));
        violation.place = place.and_then(|it| it.label()).unwrap_or_default();
    }
}
