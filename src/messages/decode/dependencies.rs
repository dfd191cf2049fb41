//! Dependencies: the conditions under which a task or step is visible.

use prost_types::{Value, value::Kind};

use super::field::{Field, non_blank_text, text};
use crate::{
    domain::{
        dependency::{
            Comparison, Condition, ConditionTarget, Group, LogicalOperator, MAX_CONDITIONS,
            MAX_NESTED_GROUPS, MAX_TARGET_BYTES, MAX_TARGETS, Node, target_json_bytes,
        },
        shorthand::{self, ShorthandError},
        text::check,
        violation::Reason,
    },
    proto::v1::{self, dependency_node},
};

/// The dependencies of a task or step, sent as a message, as a shorthand or as both.
pub fn with_shorthand(
    message: Option<v1::DependencyGroup>,
    shorthand: Option<String>,
    resource: &mut Field<'_>,
) -> Option<Group> {
    let before = resource.violation_count();
    let decoded = message.and_then(|message| group(message, resource.field("dependencies")));
    let mut field = resource.field("dependency_shorthand");
    let parsed = shorthand.and_then(|shorthand| {
        let refuse = |error: ShorthandError| {
            field.refuse(Reason::ShorthandInvalid, error.to_string());
        };
        shorthand::parse(&shorthand).map_err(refuse).ok()
    });
    for node in parsed.iter().flat_map(|group| &group.nodes) {
        if let Node::Condition(Condition { targets, .. }) = node {
            limit_targets(targets.len(), targets, &mut field);
        }
    }
    if field.violation_count() == before
        && let (Some(decoded), Some(parsed)) = (&decoded, &parsed)
        && decoded != parsed
    {
        let description = "differs from `dependencies`: leave out `dependencies` to keep the \
            shorthand, or the shorthand to keep `dependencies`";
        field.refuse(Reason::ShorthandConflict, description);
    }
    decoded.or(parsed)
}

/// Dependencies that were sent as a message.
pub fn group(message: v1::DependencyGroup, mut field: Field<'_>) -> Option<Group> {
    let mut conditions = 0;
    let group = nested_group(message, 1, &mut conditions, &mut field);
    if conditions > MAX_CONDITIONS {
        let description = format!("has more than {MAX_CONDITIONS} conditions");
        field.refuse(Reason::TooManyElements, description);
    }
    group
}

/// A group at a depth; the outermost has depth 1. Conditions beyond the limit are counted but not
/// decoded.
fn nested_group(
    message: v1::DependencyGroup,
    depth: usize,
    conditions: &mut usize,
    field: &mut Field<'_>,
) -> Option<Group> {
    if depth > MAX_NESTED_GROUPS {
        let description = format!("is nested more than {MAX_NESTED_GROUPS} groups deep");
        field.refuse(Reason::NestingTooDeep, description);
        return None;
    }
    let operator = field.field("operator").enum_value(
        message.operator,
        "a logical operator",
        "LogicalOperator",
        LogicalOperator::from_repr,
    );
    let mut list = field.field("nodes");
    list.not_empty(&message.nodes, "needs at least one node");
    let nodes = list.elements(message.nodes, usize::MAX, |message, field| {
        node(message, depth, conditions, field)
    });
    Some(Group {
        operator: operator?,
        nodes: nodes?,
    })
}

fn node(
    message: v1::DependencyNode,
    depth: usize,
    conditions: &mut usize,
    mut field: Field<'_>,
) -> Option<Node> {
    let Some(node) = message.node else {
        field.refuse(Reason::FieldRequired, "needs `condition` or `group`");
        return None;
    };
    match node {
        dependency_node::Node::Group(message) => {
            let mut field = field.field("group");
            nested_group(message, depth + 1, conditions, &mut field).map(Node::Group)
        }
        dependency_node::Node::Condition(message) => {
            *conditions += 1;
            if *conditions > MAX_CONDITIONS {
                return None;
            }
            condition(message, field.field("condition")).map(Node::Condition)
        }
    }
}

fn condition(message: v1::Condition, mut field: Field<'_>) -> Option<Condition> {
    let variable = non_blank_text(message.variable, field.field("variable"));
    let operator = comparison(&message.operator, field.field("operator"));
    let mut list = field.field("targets");
    let mut sent = message.targets;
    list.not_empty(&sent, "needs at least one target");
    let count = sent.len();
    sent.truncate(MAX_TARGETS);
    let targets = list.elements(sent, MAX_TARGETS, target).unwrap_or_default();
    limit_targets(count, &targets, &mut list);
    let path = text(message.path, field.field("path"));
    Some(Condition {
        variable: variable?,
        operator: operator?,
        targets,
        path: path?,
    })
}

/// Refuses targets of a condition that are too many or too long. `count` targets were sent.
fn limit_targets(count: usize, targets: &[ConditionTarget], field: &mut Field<'_>) {
    if count > MAX_TARGETS {
        let description = format!("has more than {MAX_TARGETS} targets");
        field.refuse(Reason::TooManyElements, description);
    } else if target_json_bytes(targets) > MAX_TARGET_BYTES {
        let description =
            format!("the targets have more than {MAX_TARGET_BYTES} bytes as a JSON list");
        field.refuse(Reason::FieldTooLong, description);
    }
}

fn comparison(symbol: &str, mut field: Field<'_>) -> Option<Comparison> {
    let otherwise = "is not one of `=`, `!=`, `>` and `<`";
    field.parsed(symbol, Comparison::parse(symbol), otherwise)
}

fn target(message: Value, mut field: Field<'_>) -> Option<ConditionTarget> {
    match message.kind {
        Some(Kind::StringValue(text)) if check(&text, usize::MAX).is_ok() => {
            Some(ConditionTarget::Text(text))
        }
        Some(Kind::NumberValue(number)) if number.is_finite() => {
            Some(ConditionTarget::Number(number))
        }
        Some(Kind::BoolValue(value)) => Some(ConditionTarget::Bool(value)),
        _ => {
            let description = "is not a string without U+0000, a finite number or a boolean";
            field.refuse(Reason::FieldInvalid, description);
            None
        }
    }
}
