//! What may be meant by a variable or an answer of which no reference is found.

use std::collections::BTreeSet;

use crate::{
    cli::{managed_documents::managed_documents, tasks, transfer, wording},
    client::Client,
    domain::{analysis::parse_account_name, misspelling::closest},
    proto::v1::{Step, StepType, TaskDocument, TaskType},
};

/// The most guides that are read for their variables.
const MAX_GUIDES: usize = 20;
/// The most names or answers that are listed.
const MAX_LISTED: usize = 10;

/// Names the variables of the account that may be meant; with an answer, the answers that the
/// variable has. Only some guides are read, those of the product in the name before others.
/// `None` if there is nothing to name.
pub(super) async fn of_account(
    client: &Client,
    variable: &str,
    answer: Option<&str>,
) -> Option<String> {
    let full_name = parse_account_name(variable);
    let product = full_name.map(|(product, _)| product.get());
    let mut guides = tasks::list_all(client, Some(TaskType::Standard))
        .await
        .ok()?;
    guides.sort_by_key(|task| Some(task.product_id()) != product);
    let mut names = BTreeSet::new();
    let mut keys = Vec::new();
    for guide in guides.into_iter().take(MAX_GUIDES) {
        if let Ok(document) = transfer::export(client, &guide.guid).await {
            add_names(&document, &mut names);
            if answer.is_some() && full_name.is_some() {
                keys.extend(answers(&document, variable));
            }
        }
    }
    if !keys.is_empty() {
        return Some(listed_answers(keys));
    }
    let own_name = |name: &str| parse_account_name(name).map(|(_, own)| own.to_owned());
    let meant: Vec<&str> = match full_name {
        Some(_) => {
            let others = names.iter().map(String::as_str);
            let others = others.filter(|name| *name != variable);
            closest(variable, others).into_iter().collect()
        }
        None => {
            let own_names: BTreeSet<String> = names.iter().filter_map(|it| own_name(it)).collect();
            let own = closest(variable, own_names.iter().map(String::as_str))?;
            let is_named = |name: &&String| own_name(name).as_deref() == Some(own);
            names.iter().filter(is_named).map(String::as_str).collect()
        }
    };
    match meant.as_slice() {
        [] => None,
        [name] => Some(format!("is {name} meant?")),
        several => {
            let names = wording::list(several.iter().copied(), MAX_LISTED);
            Some(format!("is one of {names} meant?"))
        }
    }
}

/// The answers that a variable has in this guide; `None` if it has none.
pub(super) fn answers_in(document: &TaskDocument, variable: &str) -> Option<String> {
    let keys = answers(document, variable);
    (!keys.is_empty()).then(|| listed_answers(keys))
}

fn listed_answers(keys: Vec<String>) -> String {
    let keys: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    format!("its answers are {}", wording::list(keys, MAX_LISTED))
}

/// The full name of a variable that an observation sets.
fn full_name(step: &Step, own: &str) -> String {
    format!("components.{}.{own}", step.product_id())
}

fn is_observation(step: &&Step) -> bool {
    step.r#type() == StepType::Observation
}

/// Adds the full names of the variables of a guide and of the tasks that it manages.
fn add_names(document: &TaskDocument, names: &mut BTreeSet<String>) {
    for step in document.steps.iter().filter(is_observation) {
        let configs = step.feedback_config.iter();
        names.extend(configs.map(|config| full_name(step, &config.name)));
        for (_, managed) in managed_documents(step) {
            add_names(managed, names);
        }
    }
}

/// The keys of the observations that set a variable, named by its own or full name.
fn answers(document: &TaskDocument, variable: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for step in document.steps.iter().filter(is_observation) {
        for config in &step.feedback_config {
            if config.name == variable || full_name(step, &config.name) == variable {
                keys.extend(config.values.iter().map(|value| value.key.clone()));
            }
        }
        for (_, managed) in managed_documents(step) {
            keys.extend(answers(managed, variable));
        }
    }
    keys
}
