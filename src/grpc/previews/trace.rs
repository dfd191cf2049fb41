//! Traces: conditions with the truth of each node.

use std::slice;

use crate::{
    domain::{
        analysis::{
            CompiledCondition, Dependencies, GuideStep, GuideTask, Truth, full_name,
            preview::Preview,
        },
        dependency::{Condition, Group, LogicalOperator, Node},
    },
    messages::encode::json,
    proto::v1::{self, condition_trace},
};

use super::value;

/// The path of the outermost group in its task or step.
const DEPENDENCIES: &str = "dependencies";

/// The trace of a task's dependencies, if it has any.
pub fn for_task(preview: &Preview, task: &GuideTask) -> Option<v1::ConditionTrace> {
    Some(for_dependencies(preview, task.dependencies()?))
}

/// The trace of a step's dependencies, if it has any.
pub fn for_step(preview: &Preview, step: &GuideStep) -> Option<v1::ConditionTrace> {
    Some(for_dependencies(preview, step.dependencies()?))
}

fn for_dependencies(preview: &Preview, dependencies: Dependencies<'_>) -> v1::ConditionTrace {
    let Dependencies { group, conditions } = dependencies;
    for_group(preview, group, &mut conditions.iter(), DEPENDENCIES).1
}

/// `conditions` starts with the conditions of the group.
fn for_group(
    preview: &Preview,
    group: &Group,
    conditions: &mut slice::Iter<'_, CompiledCondition>,
    path: &str,
) -> (Truth, v1::ConditionTrace) {
    let nodes = group.nodes.iter().enumerate();
    let nodes = nodes.filter_map(|(index, node)| match node {
        Node::Group(group) => {
            let path = format!("{path}.nodes[{index}].group");
            Some(for_group(preview, group, conditions, &path))
        }
        Node::Condition(condition) => {
            let path = format!("{path}.nodes[{index}].condition");
            Some(for_condition(preview, condition, conditions.next()?, path))
        }
    });
    let (truths, nodes): (Vec<Truth>, Vec<v1::ConditionTrace>) = nodes.unzip();
    let result = match group.operator {
        LogicalOperator::And => Truth::all(truths),
        LogicalOperator::Or => Truth::any(truths),
    };
    let traced = v1::TracedGroup {
        operator: group.operator as i32,
        nodes,
    };
    let trace = v1::ConditionTrace {
        result: truth(result).into(),
        node: Some(condition_trace::Node::Group(traced)),
    };
    (result, trace)
}

fn for_condition(
    preview: &Preview,
    condition: &Condition,
    compiled: &CompiledCondition,
    path: String,
) -> (Truth, v1::ConditionTrace) {
    let seen = preview.state.value(compiled.variable);
    let result = compiled.truth(seen);
    let targets = condition.targets.iter().cloned();
    let traced = v1::TracedCondition {
        name: full_name(condition).into_owned(),
        operator: condition.operator.symbol().to_owned(),
        targets: targets.map(json::target).collect(),
        value: seen.map(value),
        reason: compiled.trace_reason(seen) as i32,
        path,
    };
    let trace = v1::ConditionTrace {
        result: truth(result).into(),
        node: Some(condition_trace::Node::Condition(traced)),
    };
    (result, trace)
}

fn truth(truth: Truth) -> v1::Truth {
    match truth {
        Truth::True => v1::Truth::True,
        Truth::False => v1::Truth::False,
        Truth::Unknown => v1::Truth::Unknown,
    }
}
