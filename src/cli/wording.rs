//! Describes parts of a guide, each on one line.

use std::fmt::Display;

use clap::ValueEnum;
use console::style;
use prost_types::{Timestamp, value::Kind};

use crate::{
    cli::out,
    proto::v1::{
        AccessLevel, Condition, DependencyGroup, LogicalOperator, StepType, Task,
        dependency_node::Node,
    },
};

/// The name of an enum value in words, without its prefix.
pub(super) fn name(name: &str, prefix: &str) -> String {
    let name = name.strip_prefix(prefix).unwrap_or(name);
    name.to_ascii_lowercase().replace('_', " ")
}

/// A time in UTC, to the second.
pub(super) fn time(time: Option<Timestamp>) -> String {
    let seconds = time.map(|time| Timestamp { nanos: 0, ..time });
    seconds.map_or_else(String::new, |time| time.to_string())
}

pub(super) fn kind(kind: StepType) -> String {
    match kind {
        StepType::Idp => "identified problem".to_owned(),
        kind => name(kind.as_str_name(), "STEP_TYPE_"),
    }
}

/// The type of a step and its cost, such as `solution, cost 5`.
pub(super) fn step_kind(step_type: StepType, cost: i32) -> impl Display {
    let cost = match cost {
        0 => String::new(),
        cost => format!(", cost {cost}"),
    };
    style(kind(step_type) + &cost).cyan()
}

/// Whether a task or step is published, which is the default.
pub(super) fn published(published: Option<i32>) -> String {
    match published {
        Some(0) => "hidden".to_owned(),
        Some(1) | None => "published".to_owned(),
        Some(other) => format!("state {other}"),
    }
}

/// The first `max` names, and the number of others.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>, max: usize) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let (shown, others) = names.split_at(max.min(names.len()));
    match others.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether a task is published and which levels may see it, such as `published, for user, tech`.
pub(super) fn audience(task: &Task) -> String {
    let levels = task.roles();
    let levels = levels.map(|level| name(level.as_str_name(), "ACCESS_LEVEL_"));
    let levels: Vec<String> = levels.collect();
    let all = AccessLevel::value_variants().len();
    let levels = match levels.is_empty() || levels.len() == all {
        true => "everybody".to_owned(),
        false => levels.join(", "),
    };
    format!("{}, for {levels}", published(task.published))
}

/// Conditions, such as `a is "on" and (b is "off" or c is greater than 3)`.
pub(super) fn group(group: &DependencyGroup) -> String {
    let join = match group.operator() {
        LogicalOperator::And => " and ",
        LogicalOperator::Or => " or ",
        LogicalOperator::Unspecified => ", ",
    };
    let nodes = group.nodes.iter().filter_map(|node| node.node.as_ref());
    let nodes = nodes.map(|node| match node {
        Node::Condition(it) => condition(it),
        Node::Group(inner) if inner.nodes.len() > 1 => format!("({})", self::group(inner)),
        Node::Group(inner) => self::group(inner),
    });
    nodes.collect::<Vec<_>>().join(join)
}

/// Conditions, one per line. The conditions of a group are indented below `all of:` or `any of:`.
pub(super) fn group_in_lines(group: &DependencyGroup) -> String {
    let operator = match group.operator() {
        LogicalOperator::And => "all of:",
        LogicalOperator::Or => "any of:",
        LogicalOperator::Unspecified => "group:",
    };
    let nodes = group.nodes.iter().filter_map(|node| node.node.as_ref());
    let below = nodes.map(|node| match node {
        Node::Condition(it) => condition(it) + "\n",
        Node::Group(inner) => group_in_lines(inner),
    });
    let below: String = below.collect();
    match below.is_empty() {
        true => below,
        false => format!("{operator}\n{}", textwrap::indent(&below, "  ")),
    }
}

pub(super) fn condition(condition: &Condition) -> String {
    let comparison = comparison(&condition.operator, &condition.targets);
    format!("{} {comparison}", out::sanitize(&variable(condition)))
}

/// The full name of the variable that a condition reads.
pub(super) fn variable(Condition { path, variable, .. }: &Condition) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{variable}")
}

/// A comparison, such as `is one of "on", "off"`.
pub(super) fn comparison(operator: &str, targets: &[prost_types::Value]) -> String {
    let one = targets.len() == 1;
    let targets: Vec<String> = targets.iter().map(target).collect();
    let relation = match operator {
        "=" if one => "is",
        "=" => "is one of",
        "!=" if one => "is not",
        "!=" => "is none of",
        ">" => "is greater than",
        "<" => "is less than",
        other => other,
    };
    format!("{relation} {}", targets.join(", "))
}

/// A value that a variable is compared with. Texts are quoted to show where they begin and end.
pub(super) fn target(value: &prost_types::Value) -> String {
    match &value.kind {
        Some(Kind::StringValue(text)) => format!("{text:?}"),
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::BoolValue(value)) => value.to_string(),
        Some(Kind::NullValue(_) | Kind::StructValue(_) | Kind::ListValue(_)) | None => {
            "an unknown value".to_owned()
        }
    }
}

/// The number of instructions, if any.
pub(super) fn instruction_count(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 instruction".to_owned()),
        count => Some(format!("{count} instructions")),
    }
}
