//! Laws, limits, pages and documents. Guides with their expected findings are in `tests/cases`.

mod documents;
mod examples;
mod limits;
mod options;
mod pages;

use crate::{api::cases::guide, kit::snapshot::message, prelude::*};

/// A guide without findings.
const CLEAN: &str = "ask light: on, off
solution Switch it off ? .light = on
solution Switch it on ? .light = off
end Done";

/// A document with a name and steps in the notation.
fn named(name: &str, steps: &str) -> TaskDocument {
    document(name, guide(steps).steps)
}

/// The answer about a guide in the notation that is not stored.
async fn validated(client: &Client, steps: &str) -> ValidateTaskResponse {
    client.validated(validation_of_document(guide(steps))).await
}

/// The findings of a rule.
fn of_rule<'f>(findings: &'f [Finding], rule: &str) -> Vec<&'f Finding> {
    findings.iter().filter(|one| one.rule == rule).collect()
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|one| one.rule.as_str()).collect()
}

/// A fact as JSON.
fn fact(finding: &Finding, name: &str) -> serde_json::Value {
    message("Finding", finding)["facts"][name].clone()
}

/// A request for the references of a task.
pub fn of_task(task: &Task) -> ListReferencesRequest {
    ListReferencesRequest::default().with(|it| it.task = task.guid.clone())
}

/// A request for the references of a variable.
fn of_variable(name: &str) -> ListReferencesRequest {
    ListReferencesRequest::default().with(|it| it.variable = name.to_owned())
}
