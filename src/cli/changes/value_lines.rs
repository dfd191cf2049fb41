//! Describes a changed value.

use std::ops::Range;

use console::{Color, style};
use imara_diff::{Algorithm, Diff, Hunk, InternedInput};
use serde_json::Value;

use crate::{
    cli::{
        document::{from_json, value_text},
        out::sanitize,
        wording,
    },
    messages::fields::DEPENDENCIES,
    proto::v1::DependencyGroup,
};

/// Longer values are cut, because a body may have megabytes.
const MAX_VALUE_CHARS: usize = 200;
/// The field that has the question of an observation.
const FEEDBACK_CONFIG: &str = "feedback_config";

/// The lines of a changed field: its old and new value on one line if both are short, else the
/// lines that differ, indented below its path.
pub(super) fn field_lines(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) -> Vec<String> {
    let path = &sanitize(path);
    let field = path.rsplit('.').next().unwrap_or(path);
    let values = [before, after];
    let [old, new] = values.map(|value| match value {
        Some(value) => on_one_line(field, value),
        None => "nothing".to_owned(),
    });
    let is_short = |value: Option<&Value>| match value {
        Some(Value::String(text)) => !text.contains('\n'),
        Some(value) => on_one_line(field, value).chars().count() <= MAX_VALUE_CHARS,
        None => true,
    };
    let is_one_line = field != FEEDBACK_CONFIG && old != new && values.into_iter().all(is_short);
    let [old_lines, new_lines] = values.map(|value| match value {
        Some(value) if !is_one_line => in_lines(field, value),
        _ => String::new(),
    });
    let below = changed_lines(&old_lines, &new_lines);
    if below.is_empty() {
        let (old, new) = (style(shortened(&old)).red(), style(shortened(&new)).green());
        return vec![format!("{path}: {old} -> {new}")];
    }
    let lines = below.into_iter().map(|line| format!("  {line}"));
    std::iter::once(format!("{path}:")).chain(lines).collect()
}

/// A value on one line: conditions in words, others as JSON.
fn on_one_line(field: &str, value: &Value) -> String {
    match conditions(field, value) {
        Some(group) => wording::group(&group),
        None => value_text(value),
    }
}

/// A value with one line per part: conditions, answers, elements or lines of a text.
fn in_lines(field: &str, value: &Value) -> String {
    let lines = |list: &[Value]| list.iter().map(|it| value_text(it) + "\n").collect();
    match (conditions(field, value), value) {
        (Some(group), _) => wording::group_in_lines(&group),
        // There is at most one element.
        (None, Value::Array(list)) if field == FEEDBACK_CONFIG => {
            let question = list
                .first()
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            question
                .map(|(name, value)| member_lines(name, value))
                .collect()
        }
        (None, Value::Array(list)) => lines(list),
        (None, Value::String(text)) => text.clone(),
        (None, value) => value_text(value),
    }
}

/// The lines of a member of a question: one, or one for each answer.
fn member_lines(name: &str, value: &Value) -> String {
    let answer = |answer: &Value| {
        let key = answer.get("key").and_then(Value::as_str);
        let text = answer.get("value").map_or_else(String::new, value_text);
        format!("answer {}: {text}\n", key.unwrap_or_default())
    };
    match value {
        Value::Array(answers) => answers.iter().map(answer).collect(),
        value => format!("{name}: {}\n", value_text(value)),
    }
}

fn conditions(field: &str, value: &Value) -> Option<DependencyGroup> {
    let is_group = field == DEPENDENCIES;
    is_group.then(|| from_json("DependencyGroup", value))?
}

/// The lines of a text that change.
fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let sides = |hunk: Hunk| {
        let removed = ('-', Color::Red, &input.before, hunk.before);
        let added = ('+', Color::Green, &input.after, hunk.after);
        [removed, added]
    };
    let mut lines = Vec::new();
    for (sign, color, tokens, Range { start, end }) in diff.hunks().flat_map(sides) {
        for token in tokens
            .get(start as usize..end as usize)
            .into_iter()
            .flatten()
        {
            let line: &str = input.interner[*token];
            let text = shortened(line.trim_end_matches('\n'));
            lines.push(style(format!("{sign} {text}")).fg(color).to_string());
        }
    }
    lines
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_VALUE_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    sanitize(&shown)
}
