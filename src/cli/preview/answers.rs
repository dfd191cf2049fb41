//! Answers of the command line that the guide cannot use.

use std::collections::BTreeSet;

use crate::{
    cli::{out::sanitize, wording},
    proto::v1::{PreviewQuestion, PreviewTaskResponse, StepType},
};

/// The most names or keys that a warning lists.
const MAX_LISTED: usize = 20;

/// A line for each answer whose name or key the guide does not have.
pub fn warnings(answers: &[(String, String)], preview: &PreviewTaskResponse) -> Vec<String> {
    let questions = || {
        let steps = preview.steps.iter();
        let observations = steps.filter(|step| step.r#type() == StepType::Observation);
        observations.filter_map(|step| step.question.as_ref())
    };
    let names: BTreeSet<&str> = questions().map(|it| it.name.as_str()).collect();
    let unused = preview.unused_answers.iter().map(|name| {
        let asked = match names.is_empty() {
            true => "the preview has no observations".to_owned(),
            false => {
                let names = wording::list(names.iter().copied(), MAX_LISTED);
                format!("the observations of the preview are {names}")
            }
        };
        format!("unused answer: nothing in the guide reads or sets {name:?}; {asked}")
    });
    let unknown = answers.iter().filter_map(|(name, key)| {
        let asking: Vec<_> = questions().filter(|it| sets(it, name)).collect();
        let keys = || asking.iter().flat_map(|it| &it.answers).map(|it| &it.key);
        // Without a key the variable is known to be unanswered.
        let is_known = key.is_empty() || asking.is_empty() || keys().any(|known| known == key);
        (!is_known).then(|| {
            let keys = wording::list(keys().map(String::as_str), MAX_LISTED);
            format!("unknown answer: {name:?} has no answer {key:?}; its answers are {keys}")
        })
    });
    unused.chain(unknown).map(|line| sanitize(&line)).collect()
}

/// Whether the question may set the variable: its own name, or a full name that ends in it. The
/// product in a full name is not compared, as a preview does not say it.
pub fn sets(question: &PreviewQuestion, variable: &str) -> bool {
    let full = variable.strip_prefix("components.");
    let name = full.and_then(|full| full.split_once('.'));
    variable == question.name || name.is_some_and(|(_, name)| name == question.name)
}
