//! Invariants of the links and titles in an account.

use std::collections::BTreeMap;

use expertise::proto::v1::*;

use super::sample::answers_of;

/// Every task of an account with its steps.
pub type State = Vec<(Task, Vec<Step>)>;

/// Asserts that each answer of a linked question, the task that it manages and its wiring step
/// refer to one another, and that each subtask step has the name of its task as title.
pub fn links_are_consistent(state: &State) {
    let tasks: BTreeMap<&str, &Task> = state
        .iter()
        .map(|(task, _)| (task.guid.as_str(), task))
        .collect();
    let mut managed = Vec::new();
    let mut wired = Vec::new();
    for (task, steps) in state {
        let listed: Vec<&String> = steps.iter().map(|step| &step.guid).collect();
        assert_eq!(listed, task.steps.iter().collect::<Vec<_>>(), "{task:?}");
        for step in steps {
            assert_eq!(step.task, task.guid);
            is_titled_like_its_task(step, &tasks);
            for (idx, link) in links_of(step) {
                let found = tasks.get(link.as_str());
                let found = found.unwrap_or_else(|| panic!("no task {link}: {step:?}"));
                let text = &answers_of(step)[idx].value;
                assert_eq!(found.r#type(), TaskType::Linked, "{found:?}");
                assert_eq!((&found.parent_guid, &found.name), (&task.guid, text));
                assert_eq!(usize::try_from(found.idx).unwrap(), idx, "{found:?}");
                let wiring: Vec<&Step> = steps.iter().filter(|s| s.link == link).collect();
                assert_eq!(wiring.len(), 1, "{link} in {steps:?}");
                wired.push(wiring[0].guid.as_str());
                managed.push(link);
            }
        }
    }
    managed.sort_unstable();
    let all = tasks
        .values()
        .filter(|task| task.r#type() == TaskType::Linked);
    let mut all: Vec<String> = all.map(|task| task.guid.clone()).collect();
    all.sort_unstable();
    assert_eq!(managed, all, "each managed task is one value's");
    for (task, _) in state {
        let plain = task.r#type() == TaskType::Standard;
        assert!(
            !plain || (task.parent_guid.is_empty() && task.idx == 0),
            "{task:?}"
        );
    }
    for step in state.iter().flat_map(|(_, steps)| steps) {
        let is_wiring = wired.contains(&step.guid.as_str());
        assert_eq!(!step.link.is_empty(), is_wiring, "a link is left: {step:?}");
    }
}

/// The links of a step's values, each with its index. Panics when a value of a
/// linked question has none, or another value has one.
fn links_of(step: &Step) -> Vec<(usize, String)> {
    let mut configs = step.feedback_config.iter();
    let linked = configs.any(|config| config.linked == Some(true));
    let translated = step
        .translations
        .values()
        .flat_map(|row| &row.feedback_config);
    for value in translated.flat_map(|config| &config.values) {
        assert_eq!(value.link, "", "{step:?}");
    }
    let values = answers_of(step).iter().enumerate();
    let values = values.map(|(idx, value)| (idx, value.link.clone()));
    let links: Vec<(usize, String)> = values.collect();
    assert!(
        links.iter().all(|(_, link)| link.is_empty() != linked),
        "{step:?}"
    );
    assert!(
        !linked || step.r#type() == StepType::Observation,
        "{step:?}"
    );
    links.into_iter().filter(|_| linked).collect()
}

fn is_titled_like_its_task(step: &Step, tasks: &BTreeMap<&str, &Task>) {
    if step.r#type() != StepType::Subtask {
        assert_eq!((step.subtask_id.as_str(), step.link.as_str()), ("", ""));
        return;
    }
    let found = tasks.get(step.subtask_id.as_str());
    let found = found.unwrap_or_else(|| panic!("refers to nothing: {step:?}"));
    assert_eq!(step.title, found.name, "{step:?}");
    assert_eq!(step.subtask_pid, found.product_id, "{step:?}");
    assert_eq!(step.subtask_external_id, found.external_id, "{step:?}");
    assert!(
        step.link.is_empty() || step.link == step.subtask_id,
        "{step:?}"
    );
}
