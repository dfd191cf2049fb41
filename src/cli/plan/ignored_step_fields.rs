//! Fields of steps that an import ignores: types that differ, and titles of subtask steps.

use super::{fixed::changes_type, managed_by_key, managed_documents, steps_by_guid};
use crate::{
    cli::{out::sanitize, wording},
    proto::v1::{Step, StepType, TaskDocument},
};

/// The ends of the paths of an ignored type and title.
const TYPE: &str = ".steps.type";
const TITLE: &str = ".steps.title";

/// A line for each ignored field of a step, which names the step and the reason.
#[derive(Debug, Default)]
pub(in crate::cli) struct IgnoredStepFields {
    types: Vec<String>,
    titles: Vec<String>,
}

impl IgnoredStepFields {
    /// The ignored fields of a document that has the ids of the stored guide, if there is one.
    /// `planned` is the guide after the import, its subtask steps with the names of their tasks.
    pub fn between(
        document: &TaskDocument,
        stored: Option<&TaskDocument>,
        planned: &TaskDocument,
    ) -> Self {
        let mut ignored = Self::default();
        if let Some(stored) = stored {
            add_types(document, stored, "", &mut ignored.types);
        }
        add_titles(document, planned, "", &mut ignored.titles);
        ignored
    }

    /// What an import ignores: the lines, in place of the paths that they explain.
    pub fn lines(&self, paths: &[String]) -> Vec<String> {
        let Self { types, titles } = self;
        let is_explained = |path: &str| {
            !types.is_empty() && path.ends_with(TYPE) || !titles.is_empty() && path.ends_with(TITLE)
        };
        let paths = paths.iter().filter(|path| !is_explained(path));
        let paths = paths.map(|path| sanitize(path));
        paths.chain(types.iter().chain(titles).cloned()).collect()
    }
}

fn add_types(document: &TaskDocument, stored: &TaskDocument, of: &str, lines: &mut Vec<String>) {
    let stored_steps = steps_by_guid(stored);
    for (index, sent) in document.steps.iter().enumerate() {
        let Some(stored) = stored_steps.get(sent.guid.as_str()) else {
            continue;
        };
        if changes_type(sent, stored) {
            let (before, after) = (wording::kind(stored.r#type()), wording::kind(sent.r#type()));
            let title = sanitize(&stored.title);
            lines.push(format!(
                "step {} \"{title}\"{of}: keeps its type {before}, as a type never changes; to get \
                 {after}, remove the step's guid",
                index + 1
            ));
        }
        let managed = managed_by_key(stored);
        for (value, sent) in managed_documents(sent) {
            if let Some(stored) = managed.get(value.key.as_str()) {
                add_types(sent, stored, &of_task(&value.value), lines);
            }
        }
    }
}

fn add_titles(document: &TaskDocument, planned: &TaskDocument, of: &str, lines: &mut Vec<String>) {
    let by_guid = steps_by_guid(planned);
    // New steps have no id, and are in the same order in both guides.
    let mut new_steps = planned.steps.iter().filter(|step| step.guid.is_empty());
    for (index, sent) in document.steps.iter().enumerate() {
        let planned: Option<&Step> = match sent.guid.as_str() {
            "" => new_steps.next(),
            guid => by_guid.get(guid).copied(),
        };
        let Some(planned) = planned else { continue };
        let is_subtask = planned.r#type() == StepType::Subtask;
        if is_subtask && !sent.title.is_empty() && sent.title != planned.title {
            lines.push(format!(
                "step {} \"{}\"{of}: its title is not stored, as a subtask step has the name of \
                 its task",
                index + 1,
                sanitize(&sent.title)
            ));
        }
        let managed = managed_by_key(planned);
        for (value, sent) in managed_documents(sent) {
            if let Some(planned) = managed.get(value.key.as_str()) {
                add_titles(sent, planned, &of_task(&value.value), lines);
            }
        }
    }
}

fn of_task(name: &str) -> String {
    format!(" of task \"{}\"", sanitize(name))
}
