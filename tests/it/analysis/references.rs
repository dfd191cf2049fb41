//! ListReferences: where a task or a variable is used.

mod histories;
mod oracle;
mod pages;
mod tasks;
mod variables;

use crate::kit::prelude::*;

/// A request for the references of a task.
fn of_task(task: &Task) -> ListReferencesRequest {
    ListReferencesRequest {
        task: task.guid.clone(),
        ..ListReferencesRequest::default()
    }
}

/// A request for the references of a variable.
fn of_variable(name: &str) -> ListReferencesRequest {
    ListReferencesRequest {
        variable: name.to_owned(),
        ..ListReferencesRequest::default()
    }
}

/// The references, each with its kind, its step or task, and its path.
async fn places(
    client: &Client,
    request: ListReferencesRequest,
) -> Vec<(ReferenceKind, String, String)> {
    let references = client.references(request).await;
    references.iter().map(place).collect()
}

fn place(reference: &Reference) -> (ReferenceKind, String, String) {
    let place = reference.place.as_ref().expect("a place");
    let id = match place.step.as_str() {
        "" => place.task.clone(),
        step => step.to_owned(),
    };
    (reference.kind(), id, place.path.clone())
}

/// A step that depends on conditions.
fn depending(step: Step, nodes: Vec<DependencyNode>) -> Step {
    Step {
        dependencies: Some(all_of(nodes)),
        ..step
    }
}

/// An observation with a feedback name.
fn observation(task: &Task, name: &str, keys: &[&str]) -> Step {
    let step = step(task, StepType::Observation, &format!("Look at {name}"));
    step.with_question(question(name, keys))
}

/// A comparison of a variable below a path.
fn below(path: &str, variable: &str, operator: &str, target: prost_types::Value) -> DependencyNode {
    comparison(Condition {
        variable: variable.to_owned(),
        operator: operator.to_owned(),
        targets: vec![target],
        path: path.to_owned(),
    })
}
