//! The references that a scan of all exports finds.

use expertise::proto::v1::dependency_node::Node;
use prost_types::value::Kind;

use crate::prelude::*;

/// Every task of an account with its own steps, as exported.
pub async fn exports(client: &Client) -> Vec<(Task, Vec<Step>)> {
    let mut all = Vec::new();
    for task in client.all_tasks().await {
        let TaskDocument { task, steps } = client.exported(&task.guid).await;
        all.push((task.expect("the task"), steps));
    }
    all
}

/// What the service should list, in order.
pub fn scan(exports: &[(Task, Vec<Step>)], request: &ListReferencesRequest) -> Vec<Reference> {
    let mut found = Vec::new();
    for (task, steps) in exports {
        if request.variable.is_empty() {
            for step in steps {
                to_task(task, step, &request.task, &mut found);
            }
        } else if request.task.is_empty() || request.task == task.guid {
            to_variable(task, steps, request, &mut found);
        }
    }
    found.sort_by_key(|reference| {
        let place = reference.place.clone().expect("a place");
        let id = if place.step.is_empty() {
            place.task
        } else {
            place.step
        };
        (reference.kind, id, place.path)
    });
    found
}

fn reference(kind: ReferenceKind, task: &Task, step: Option<&Step>, path: String) -> Reference {
    Reference {
        kind: kind.into(),
        place: Some(Place {
            task: task.guid.clone(),
            step: step.map(|step| step.guid.clone()).unwrap_or_default(),
            path,
            title: step.map_or(&task.name, |step| &step.title).clone(),
        }),
        operator: String::new(),
        targets: Vec::new(),
    }
}

fn to_task(task: &Task, step: &Step, used: &str, found: &mut Vec<Reference>) {
    if step.subtask_id == used {
        let (kind, path) = if step.link.is_empty() {
            (ReferenceKind::Subtask, "subtask_id")
        } else {
            (ReferenceKind::Wiring, "link")
        };
        found.push(reference(kind, task, Some(step), path.to_owned()));
    }
    for (index, value) in answers_of(step).iter().enumerate() {
        if value.link == used {
            let path = format!("feedback_config[0].values[{index}]");
            found.push(reference(ReferenceKind::Manages, task, Some(step), path));
        }
    }
}

/// The account-wide name and the own name that a step sets.
fn names_set(step: &Step) -> Option<(String, &str)> {
    let config = step.feedback_config.first()?;
    let observes = step.r#type() == StepType::Observation;
    observes.then(|| {
        let product = step.product_id.expect("a product");
        (
            format!("components.{product}.{}", config.name),
            config.name.as_str(),
        )
    })
}

fn to_variable(
    task: &Task,
    steps: &[Step],
    request: &ListReferencesRequest,
    found: &mut Vec<Reference>,
) {
    let ListReferencesRequest {
        variable, answer, ..
    } = request;
    let within = !request.task.is_empty();
    let mut is_own = false;
    for step in steps {
        let Some((wide, own)) = names_set(step) else {
            continue;
        };
        is_own |= own == variable;
        let sets = wide == *variable || (within && own == variable);
        let offers = answers_of(step).iter().any(|value| value.key == *answer);
        if sets && (answer.is_empty() || offers) {
            let path = "feedback_config[0]".to_owned();
            found.push(reference(ReferenceKind::Sets, task, Some(step), path));
        }
    }
    // Conditions of this task read the task's own name. A request for the account lists them
    // only if the name is account-wide too.
    if is_own && !within && !variable.starts_with("components.7.") {
        return;
    }
    let of_task = std::iter::once((None, &task.dependencies));
    let of_steps = steps.iter().map(|step| (Some(step), &step.dependencies));
    for (step, group) in of_task.chain(of_steps) {
        let Some(group) = group else { continue };
        for (path, condition) in conditions(group, "dependencies") {
            let name = match condition.path.as_str() {
                "" => condition.variable.clone(),
                path => format!("{path}.{}", condition.variable),
            };
            if name == *variable && (answer.is_empty() || concerns(&condition, answer)) {
                found.push(Reference {
                    operator: condition.operator,
                    targets: condition.targets,
                    ..reference(ReferenceKind::Reads, task, step, path)
                });
            }
        }
    }
}

fn conditions(group: &DependencyGroup, path: &str) -> Vec<(String, Condition)> {
    let mut found = Vec::new();
    for (index, node) in group.nodes.iter().enumerate() {
        let path = format!("{path}.nodes[{index}]");
        match node.node.as_ref().expect("a node") {
            Node::Condition(condition) => {
                found.push((format!("{path}.condition"), condition.clone()));
            }
            Node::Group(group) => found.extend(conditions(group, &format!("{path}.group"))),
        }
    }
    found
}

/// Whether the condition may depend on the answer.
fn concerns(condition: &Condition, answer: &str) -> bool {
    let equal = |target: &prost_types::Value| match target.kind.as_ref().expect("a value") {
        Kind::StringValue(text) => text == answer,
        Kind::NumberValue(number) => answer.parse() == Ok(*number),
        Kind::BoolValue(value) => answer == value.to_string(),
        other => panic!("no target: {other:?}"),
    };
    matches!(condition.operator.as_str(), ">" | "<") || condition.targets.iter().any(equal)
}
