//! Predicts a stored guide after an import: a document is laid over the guide by the rules
//! of ImportTask. The prediction is only shown to users; the server decides.

mod fixed;
mod ignored_step_fields;
mod matching;
mod merge;
mod required;
mod resets;
mod shorthand;
mod subtasks;

pub(super) use self::{
    fixed::fixed_paths,
    ignored_step_fields::IgnoredStepFields,
    matching::{Matching, TaskIds, match_to_stored},
    merge::new_step,
    required::missing_fields_error,
    resets::Resets,
    shorthand::{has_refused_shorthand, keep_edited_conditions},
    subtasks::name_new_subtask_steps,
};

use std::collections::{BTreeMap, BTreeSet};

use crate::proto::v1::{AbsentSteps, FeedbackValue, Step, TaskDocument};

/// What becomes of a field of a stored task or step that the document leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOutFields {
    /// It stays, as an import leaves it.
    Keep,
    /// It returns to its default, so that the guide becomes what the document says.
    Reset,
}

/// How a document is laid over a stored guide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub fields: LeftOutFields,
    pub steps: AbsentSteps,
}

impl Plan {
    /// The guide after the import. The document has the ids of the stored guide, see
    /// [`match_to_stored`]. Steps without one are new.
    pub fn apply(&self, document: &TaskDocument, stored: &TaskDocument) -> TaskDocument {
        let task = document.task.clone().unwrap_or_default();
        let stored_task = stored.task.clone().unwrap_or_default();
        let stored_steps = steps_by_guid(stored);
        let mut steps: Vec<Step> = document
            .steps
            .iter()
            .map(|step| match stored_steps.get(step.guid.as_str()) {
                Some(stored) => self.step(step.clone(), stored),
                None => new_step(step.clone()),
            })
            .collect();
        add_wiring_steps(&mut steps, stored);
        match self.steps {
            AbsentSteps::Keep => {
                let listed = guids(&steps);
                let absent = stored.steps.iter();
                let absent = absent.filter(|step| !listed.contains(&step.guid));
                steps.extend(absent.cloned());
            }
            AbsentSteps::Delete | AbsentSteps::Unspecified => {}
        }
        TaskDocument {
            task: Some(self.task(task, stored_task)),
            steps,
        }
    }
}

fn steps_by_guid(document: &TaskDocument) -> BTreeMap<&str, &Step> {
    let steps = document.steps.iter();
    steps.map(|step| (step.guid.as_str(), step)).collect()
}

/// The documents of the tasks that a step manages, with their values.
pub(super) fn managed_documents(
    step: &Step,
) -> impl Iterator<Item = (&FeedbackValue, &TaskDocument)> {
    let configs = step.feedback_config.iter();
    let values = configs.flat_map(|config| &config.values);
    values.filter_map(|value| Some((value, value.task_json.as_deref()?)))
}

/// The documents of the tasks that a step manages, to be changed.
pub(super) fn managed_documents_mut(step: &mut Step) -> impl Iterator<Item = &mut TaskDocument> {
    let configs = step.feedback_config.iter_mut();
    let values = configs.flat_map(|config| &mut config.values);
    values.filter_map(|value| value.task_json.as_deref_mut())
}

/// Whether both have equally many steps, and each step as many managed tasks as it was sent
/// with. Then no wiring step was added, and paths of `document` lead to the same fields.
pub(super) fn has_same_paths(planned: &TaskDocument, document: &TaskDocument) -> bool {
    fn managed(step: &Step) -> Vec<&TaskDocument> {
        managed_documents(step)
            .map(|(_, document)| document)
            .collect()
    }
    let mut steps = planned.steps.iter().zip(&document.steps);
    planned.steps.len() == document.steps.len()
        && steps.all(|(planned, sent)| {
            let (planned, sent) = (managed(planned), managed(sent));
            let mut pairs = planned.iter().zip(&sent);
            sent.is_empty()
                || planned.len() == sent.len() && pairs.all(|(one, two)| has_same_paths(one, two))
        })
}

/// The documents of the tasks that a step manages, by the keys of their values.
fn managed_by_key(step: &Step) -> BTreeMap<&str, &TaskDocument> {
    let managed = managed_documents(step);
    managed
        .map(|(value, document)| (value.key.as_str(), document))
        .collect()
}

fn guids(steps: &[Step]) -> BTreeSet<String> {
    let guids = steps.iter().map(|step| step.guid.clone());
    guids.filter(|guid| !guid.is_empty()).collect()
}

/// Adds the wiring steps of managed tasks that the document does not list: each follows
/// its observation.
fn add_wiring_steps(steps: &mut Vec<Step>, stored: &TaskDocument) {
    let listed: BTreeSet<String> = steps.iter().map(|step| step.link.clone()).collect();
    let wiring = |link: &str| {
        let mut wiring = stored.steps.iter();
        wiring.find(|step| !link.is_empty() && step.link == link)
    };
    let mut all = Vec::with_capacity(steps.len());
    for step in steps.drain(..) {
        let values = step.feedback_config.iter().filter(|it| it.linked());
        let links: Vec<String> = values
            .flat_map(|config| &config.values)
            .map(|value| value.link.clone())
            .filter(|link| !listed.contains(link))
            .collect();
        all.push(step);
        all.extend(links.iter().filter_map(|link| wiring(link)).cloned());
    }
    *steps = all;
}
