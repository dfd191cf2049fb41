//! Conditions under which a resource is visible.

use prost_types::{Value, value::Kind};

use super::{REQUIRED, line, required, text};
use crate::{
    domain::{
        dependency::{
            CONDITIONS_MAX, Comparison, Condition, GROUPS_MAX, Group, LogicalOperator, Node, Target,
        },
        shorthand,
        text::check,
        violation::{Path, Reason, Violations},
    },
    proto::v1::{self, dependency_node},
};

/// Dependencies of a new resource, which may come in short form.
pub fn with_shorthand(
    dependencies: Option<v1::DependencyGroup>,
    short: Option<String>,
    resource: &Path<'_>,
    faults: &mut Violations,
) -> Option<Group> {
    let before = faults.total();
    let written =
        dependencies.and_then(|message| group(message, &resource.field("dependencies"), faults));
    let path = resource.field("dependency_shorthand");
    let read = short.and_then(|short| {
        shorthand::parse(&short)
            .map_err(|fault| faults.add(&path, Reason::ShorthandInvalid, fault.to_string()))
            .ok()
    });
    if faults.total() == before
        && let (Some(written), Some(read)) = (&written, &read)
        && written != read
    {
        faults.add(
            &path,
            Reason::ShorthandConflict,
            "does not say the same as `dependencies`",
        );
    }
    written.or(read)
}

/// Dependencies as they are written out.
pub fn group(
    message: v1::DependencyGroup,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Group> {
    let mut conditions = 0;
    let group = inner(message, 1, &mut conditions, path, faults);
    if conditions > CONDITIONS_MAX {
        let description = format!("has more than {CONDITIONS_MAX} conditions");
        faults.add(path, Reason::TooManyElements, description);
    }
    group
}

/// A group at a level, counted from 1. Conditions past the limit are counted
/// and not read.
fn inner(
    message: v1::DependencyGroup,
    level: usize,
    conditions: &mut usize,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Group> {
    let v1::DependencyGroup { operator, nodes } = message;
    if level > GROUPS_MAX {
        let description = format!("is nested more than {GROUPS_MAX} groups deep");
        faults.add(path, Reason::NestingTooDeep, description);
        return None;
    }
    let operator = logical_operator(operator, &path.field("operator"), faults);
    let list = path.field("nodes");
    if nodes.is_empty() {
        faults.add(&list, Reason::FieldRequired, "needs at least one node");
    }
    let nodes = nodes.into_iter().enumerate();
    let node = |(index, message)| node(message, level, conditions, &list.index(index), faults);
    let nodes = nodes.filter_map(node).collect();
    Some(Group {
        operator: operator?,
        nodes,
    })
}

fn node(
    message: v1::DependencyNode,
    level: usize,
    conditions: &mut usize,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Node> {
    let v1::DependencyNode { node } = message;
    match required(node, path, faults)? {
        dependency_node::Node::Group(message) => {
            let path = path.field("group");
            inner(message, level + 1, conditions, &path, faults).map(Node::Group)
        }
        dependency_node::Node::Condition(message) => {
            *conditions += 1;
            if *conditions > CONDITIONS_MAX {
                return None;
            }
            condition(message, &path.field("condition"), faults).map(Node::Condition)
        }
    }
}

fn logical_operator(
    number: i32,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<LogicalOperator> {
    match v1::LogicalOperator::try_from(number) {
        Ok(v1::LogicalOperator::And) => Some(LogicalOperator::And),
        Ok(v1::LogicalOperator::Or) => Some(LogicalOperator::Or),
        Ok(v1::LogicalOperator::Unspecified) => {
            faults.add(path, Reason::FieldRequired, REQUIRED);
            None
        }
        Err(_) => {
            faults.add(path, Reason::FieldInvalid, "is not a logical operator");
            None
        }
    }
}

fn condition(
    message: v1::Condition,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Condition> {
    let v1::Condition {
        variable,
        operator,
        targets,
        path: place,
    } = message;
    let variable = line(variable, &path.field("variable"), faults);
    let operator = comparison(&operator, &path.field("operator"), faults);
    let list = path.field("targets");
    if targets.is_empty() {
        faults.add(&list, Reason::FieldRequired, "needs at least one target");
    }
    let targets = targets.into_iter().enumerate();
    let target = |(index, message)| target(message, &list.index(index), faults);
    let targets = targets.filter_map(target).collect();
    let place = text(place, &path.field("path"), faults);
    Some(Condition {
        variable: variable?,
        operator: operator?,
        targets,
        path: place?,
    })
}

fn comparison(symbol: &str, path: &Path<'_>, faults: &mut Violations) -> Option<Comparison> {
    let comparison = Comparison::parse(symbol);
    if comparison.is_none() {
        if symbol.is_empty() {
            faults.add(path, Reason::FieldRequired, REQUIRED);
        } else {
            let description = "is not one of `=`, `!=`, `>` and `<`";
            faults.add(path, Reason::FieldInvalid, description);
        }
    }
    comparison
}

fn target(message: Value, path: &Path<'_>, faults: &mut Violations) -> Option<Target> {
    let Value { kind } = message;
    match kind {
        Some(Kind::StringValue(text)) if check(&text, usize::MAX).is_ok() => {
            return Some(Target::Text(text));
        }
        Some(Kind::NumberValue(number)) if number.is_finite() => {
            return Some(Target::Number(number));
        }
        Some(Kind::BoolValue(value)) => return Some(Target::Bool(value)),
        Some(
            Kind::StringValue(_)
            | Kind::NumberValue(_)
            | Kind::NullValue(_)
            | Kind::StructValue(_)
            | Kind::ListValue(_),
        )
        | None => {}
    }
    let description = "is not a string without U+0000, a finite number or a boolean";
    faults.add(path, Reason::FieldInvalid, description);
    None
}
