//! The rule about tasks that answers manage, unpublished ones included.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{CompiledGroup, GuideStep, VariableId},
    dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
    shorthand,
    text::{Label, Tag},
};

use super::{report::Report, rules::Rule};

/// Reports managed tasks whose dependencies and wiring steps do not read the answer.
pub fn check(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let own_steps = report.own_steps();
    let wiring = own_steps.iter().filter_map(|(own, step)| {
        let link = step.source.step.link?;
        Some(((own.index, link), *step))
    });
    let wiring: HashMap<_, &GuideStep> = wiring.collect();
    for (own, step) in &own_steps {
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
            let reads = |group: &Option<CompiledGroup>| reads(group.as_ref(), &step.sets);
            if is_beyond_limit
                || reads(&wiring.dependencies)
                || reads(&managed.dependencies)
                || report.skips(Rule::AlwaysShown)
            {
                continue;
            }
            let (name, key) = (feedback.name.as_str(), value.key.as_str());
            let mut finding = own.finding(
                Rule::AlwaysShown,
                &format!("feedback_config[0].values[{index}]"),
                [("key", json!(key)), ("name", json!(name))],
                format!(
                    "The task of the answer `{key}` is shown whatever the answer to `{name}` is."
                ),
            );
            if let Some(condition) = own_condition(step, &feedback.name, key) {
                finding.hint = format!(
                    "Add the condition `{condition}` to the task of the answer, as its `dependency_shorthand` or in its `dependencies`."
                );
            }
            report.add(finding);
        }
    }
}

fn reads(group: Option<&CompiledGroup>, variables: &[VariableId]) -> bool {
    let conditions = group.map_or_else(Vec::new, CompiledGroup::conditions);
    conditions.iter().any(|it| variables.contains(&it.variable))
}

/// The shorthand that holds for one answer of an observation; `None` if the name has no shorthand.
fn own_condition(step: &GuideStep, name: &Label, key: &str) -> Option<String> {
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
