//! Findings of guides: the rules, their options, and lists of findings.

mod conditions;
mod guides;
mod laws;
mod linked_tasks;
mod list_findings;
mod model;
mod observations;
mod options;
mod pages;
mod subtasks;
mod texts;
mod walkthroughs;

use crate::kit::prelude::*;

/// An observation whose answer sets `components.7.NAME`. Its title and answers differ in text.
fn asks(name: &str, keys: &[&str]) -> Step {
    let values = keys
        .iter()
        .map(|key| answer(key, &format!("Text of {key}")));
    let question = question(name, &[]).with_values(values.collect());
    observation_asking(question).titled(format!("Ask {name}"))
}

/// A step of this type with a body.
fn shown(kind: StepType, title: &str) -> Step {
    document_step(kind, title).with_body("text")
}

/// A task of an answer to the observation `it` that is shown after this answer alone.
fn shown_after(key: &str, steps: Vec<Step>) -> TaskDocument {
    let task = Task {
        dependencies: Some(all_of(vec![reads("it", "=", &[key])])),
        ..Task::default()
    };
    document_with(task, steps)
}

/// The step with dependencies of which all must hold.
fn needing(step: Step, nodes: Vec<DependencyNode>) -> Step {
    Step {
        dependencies: Some(all_of(nodes)),
        ..step
    }
}

/// `components.7.NAME operator targets` as a node.
fn reads(name: &str, operator: &str, targets: &[&str]) -> DependencyNode {
    let targets = targets.iter().map(|target| text(target));
    reads_values(name, operator, targets.collect())
}

fn reads_values(name: &str, operator: &str, targets: Vec<prost_types::Value>) -> DependencyNode {
    comparison(Condition {
        path: format!("components.{PRODUCT}"),
        variable: name.to_owned(),
        operator: operator.to_owned(),
        targets,
    })
}

/// A guide without findings: two answers, a solution for each, and an end.
pub fn clean() -> Vec<Step> {
    vec![
        asks("light", &["on", "off"]),
        needing(
            shown(StepType::Solution, "Switch it off"),
            vec![reads("light", "=", &["on"])],
        ),
        needing(
            shown(StepType::Solution, "Switch it on"),
            vec![reads("light", "=", &["off"])],
        ),
        shown(StepType::End, "Done"),
    ]
}

/// The request with these options.
fn with_options(request: ValidateTaskRequest, options: ValidationOptions) -> ValidateTaskRequest {
    ValidateTaskRequest {
        options: Some(options),
        ..request
    }
}

/// The findings of these steps as a document that is not stored.
async fn findings(client: &Client, steps: Vec<Step>) -> Vec<Finding> {
    let request = validation_of_document(document("Guide", steps));
    client.validated(request).await.findings
}

/// Asserts that the steps have one finding, which is of this rule and step and at this
/// path of it.
async fn only_finding(
    client: &Client,
    steps: Vec<Step>,
    rule: &str,
    step: usize,
    path: &str,
) -> Finding {
    let found = findings(client, steps).await;
    let [finding] = found.as_slice() else {
        panic!("not one finding: {found:#?}");
    };
    let below = if path.is_empty() { "" } else { "." };
    let path = format!("document.steps[{step}]{below}{path}");
    assert_eq!(
        (finding.rule.as_str(), finding.path.as_str()),
        (rule, &*path)
    );
    assert!(!finding.message.is_empty() && !finding.hint.is_empty());
    assert_eq!(finding.id.len(), 32);
    finding.clone()
}

/// The findings of a rule.
fn of_rule<'f>(findings: &'f [Finding], rule: &str) -> Vec<&'f Finding> {
    findings.iter().filter(|one| one.rule == rule).collect()
}

/// The rules and paths of findings, sorted.
fn places(findings: &[Finding]) -> Vec<(&str, &str)> {
    let mut places: Vec<_> = findings
        .iter()
        .map(|finding| (finding.rule.as_str(), finding.path.as_str()))
        .collect();
    places.sort_unstable();
    places
}

/// A fact as JSON.
fn fact(finding: &Finding, name: &str) -> serde_json::Value {
    let facts = finding.facts.as_ref().expect("facts");
    facts.fields.get(name).map_or(serde_json::Value::Null, json)
}

fn json(value: &prost_types::Value) -> serde_json::Value {
    use prost_types::value::Kind;
    match value.kind.as_ref().expect("a value") {
        Kind::NullValue(_) => serde_json::Value::Null,
        Kind::NumberValue(number) => serde_json::json!(number),
        Kind::StringValue(text) => serde_json::json!(text),
        Kind::BoolValue(bool) => serde_json::json!(bool),
        Kind::ListValue(list) => list.values.iter().map(json).collect(),
        Kind::StructValue(members) => members
            .fields
            .iter()
            .map(|(name, value)| (name.clone(), json(value)))
            .collect(),
    }
}
