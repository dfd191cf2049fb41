//! Parts of a guide in words, each on one line.

use clap::ValueEnum;
use prost_types::{Timestamp, value::Kind};

use crate::{
    cli::out,
    proto::v1::{
        AccessLevel, Condition, DependencyGroup, LogicalOperator, Severity, Step, StepType, Task,
        dependency_node::Node,
    },
};

/// A name of an enum of the contract in lower case, without its prefix.
pub(super) fn name(name: &str, prefix: &str) -> String {
    let name = name.strip_prefix(prefix).unwrap_or(name);
    name.to_ascii_lowercase()
}

/// A time in UTC, to the second.
pub(super) fn time(time: Option<Timestamp>) -> String {
    let seconds = time.map(|time| Timestamp { nanos: 0, ..time });
    seconds.map_or_else(String::new, |time| time.to_string())
}

pub(super) fn kind(kind: StepType) -> &'static str {
    match kind {
        StepType::Unspecified => "step",
        StepType::Solution => "solution",
        StepType::Observation => "observation",
        StepType::Information => "information",
        StepType::Subtask => "subtask",
        StepType::End => "end",
        StepType::Idp => "identified problem",
    }
}

/// The first `max` names, and how many more there are.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>, max: usize) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let (shown, others) = names.split_at(max.min(names.len()));
    match others.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// An access level, such as `tech`.
pub(super) fn level(level: AccessLevel) -> String {
    name(level.as_str_name(), "ACCESS_LEVEL_")
}

/// The levels that may see a task, such as `for user, tech`.
pub(super) fn levels(task: &Task) -> String {
    let levels: Vec<String> = task.roles().map(level).collect();
    match levels.len() == AccessLevel::value_variants().len() {
        true => "for everybody".to_owned(),
        false => format!("for {}", levels.join(", ")),
    }
}

pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Off | Severity::Unspecified => "info",
    }
}

/// What must hold, such as `a is "on" and (b is "off" or c is greater than 3)`.
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

/// What must hold, with a line for each condition: those of a group are indented below
/// `all of:` or `any of:`.
pub(super) fn group_in_lines(group: &DependencyGroup) -> String {
    let mut text = String::new();
    add_group(group, 0, &mut text);
    text
}

fn add_group(group: &DependencyGroup, indent: usize, text: &mut String) {
    if group.nodes.is_empty() {
        return;
    }
    let operator = match group.operator() {
        LogicalOperator::And => "all of:",
        LogicalOperator::Or => "any of:",
        LogicalOperator::Unspecified => "group:",
    };
    text.push_str(&format!("{:indent$}{operator}\n", ""));
    let indent = indent + 2;
    for node in group.nodes.iter().filter_map(|node| node.node.as_ref()) {
        match node {
            Node::Condition(it) => {
                text.push_str(&format!("{:indent$}{}\n", "", condition(it)));
            }
            Node::Group(inner) => add_group(inner, indent, text),
        }
    }
}

pub(super) fn condition(condition: &Condition) -> String {
    let Condition {
        variable,
        operator,
        targets,
        path,
    } = condition;
    let dot = if path.is_empty() { "" } else { "." };
    let variable = out::sanitize(&format!("{path}{dot}{variable}"));
    format!("{variable} {}", comparison(operator, targets))
}

/// What holds of a variable, such as `is one of "on", "off"`.
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

/// A value that a variable is compared with. A text is quoted, so that it is seen where it
/// begins and ends.
pub(super) fn target(value: &prost_types::Value) -> String {
    match &value.kind {
        Some(Kind::StringValue(_) | Kind::NumberValue(_) | Kind::BoolValue(_)) => json(value),
        Some(Kind::NullValue(_) | Kind::StructValue(_) | Kind::ListValue(_)) | None => {
            "an unknown value".to_owned()
        }
    }
}

/// What a step holds in addition to its title: phrases for texts that are not shown, such as
/// `a text of 120 characters`, and its lists.
pub(super) fn contents(step: &Step, hidden_texts: Vec<String>) -> Option<String> {
    let lists = [
        ("parts", &step.parts),
        ("skills", &step.skills),
        ("tags", &step.tags),
    ];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let lists = lists.map(|(name, list)| format!("{name} {}", out::sanitize(&list.join(", "))));
    let contents: Vec<String> = hidden_texts.into_iter().chain(lists).collect();
    (!contents.is_empty()).then(|| format!("with {}", contents.join("; ")))
}

/// How many instructions there are, if any.
pub(super) fn instruction_count(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 instruction".to_owned()),
        count => Some(format!("{count} instructions")),
    }
}

pub(super) fn looping(step: &Step) -> Option<String> {
    let looping = step.looping.as_ref()?;
    let mut line = "repeats".to_owned();
    if let Some(array) = &looping.array {
        line.push_str(&format!(" over {}", json(array)));
    }
    if !looping.alias.is_empty() {
        line.push_str(&format!(" as {}", out::sanitize(&looping.alias)));
    }
    if let Some(iterations) = &looping.iterations {
        line.push_str(&format!(", rounds {}", json(iterations)));
    }
    Some(line)
}

pub(super) fn json(value: &prost_types::Value) -> String {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => "null".to_owned(),
        Some(Kind::BoolValue(value)) => value.to_string(),
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::StringValue(text)) => format!("{text:?}"),
        Some(Kind::ListValue(list)) => {
            let values: Vec<String> = list.values.iter().map(json).collect();
            format!("[{}]", values.join(", "))
        }
        Some(Kind::StructValue(members)) => {
            let members = members.fields.iter();
            let members = members.map(|(name, value)| format!("{name:?}: {}", json(value)));
            let members: Vec<String> = members.collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}
