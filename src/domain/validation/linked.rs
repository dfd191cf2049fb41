//! The rule about tasks that answers manage, unpublished ones included.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{CompiledCondition, GuideStep},
    dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
    shorthand,
    text::{Label, Tag},
};

use super::{report::Report, rules::Rule};

/// Reports managed tasks whose dependencies and wiring steps do not read the answer.
pub fn check(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let own_steps = report.own_steps();
    let wiring: HashMap<_, &GuideStep> = own_steps
        .iter()
        .filter_map(|(own, _, step)| Some(((own.index, step.source.step.link?), *step)))
        .collect();
    for (own, _, step) in &own_steps {
        let Some(feedback) = step.source.step.kind.observation_feedback() else {
            continue;
        };
        if report.is_stopped() {
            return;
        }
        for (index, value) in feedback.values.iter().enumerate() {
            let wiring = value.link.and_then(|task| wiring.get(&(own.index, task)));
            let managed = wiring.and_then(|wiring| guide.subtask(wiring));
            let Some((wiring, managed)) = wiring.zip(managed) else {
                continue;
            };
            // The dependencies of a task beyond a limit are not known.
            let is_beyond_limit = guide.limit.is_some() && managed.steps.is_none();
            let reads = |it: &CompiledCondition| step.sets.contains(&it.variable);
            if is_beyond_limit
                || wiring.conditions.iter().any(reads)
                || managed.conditions.iter().any(reads)
                || report.skips(Rule::AlwaysShown)
            {
                continue;
            }
            let (name, key) = (feedback.name.as_str(), value.key.as_str());
            let path = format!("feedback_config[0].values[{index}]");
            let facts = [("key", json!(key)), ("name", json!(name))];
            let message = format!(
                "The task of the answer `{key}` is shown whatever the answer to `{name}` is."
            );
            let mut finding = own.finding(Rule::AlwaysShown, &path, facts, message);
            if let Some(condition) = condition_on(step, &feedback.name, key) {
                finding.hint = format!(
                    "Add the condition `{condition}` to the task of the answer, as its \
                     `dependency_shorthand` or in its `dependencies`."
                );
            }
            report.add(finding);
        }
    }
}

/// The shorthand that holds for one answer of an observation; `None` if the name has no shorthand.
fn condition_on(step: &GuideStep, name: &Label, key: &str) -> Option<String> {
    let condition = Condition {
        variable: name.clone(),
        operator: Comparison::Equal,
        targets: vec![ConditionTarget::Text(key.to_owned())],
        path: Tag::parse(format!("components.{}", step.source.step.product.get())).ok()?,
    };
    shorthand::render(&Group {
        operator: LogicalOperator::And,
        nodes: vec![Node::Condition(condition)],
    })
}
