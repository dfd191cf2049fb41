//! A changed value in lines for people.

use std::{collections::BTreeSet, time::Duration};

use console::style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::{
    cli::{
        document::{from_json, value_text},
        out::sanitize,
        wording,
    },
    proto::v1::DependencyGroup,
};

/// Limits the search for the smallest difference. After it a larger one is shown.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);
/// A longer value is cut, as a body may have megabytes.
const MAX_VALUE_CHARS: usize = 200;
/// The field whose values are conditions.
const DEPENDENCIES: &str = "dependencies";
/// The field that has the question of an observation.
const FEEDBACK_CONFIG: &str = "feedback_config";
/// The member of a `feedback_config` that has the answers.
const ANSWERS: &str = "values";

/// The lines of a field that changes. What stands below its path is indented.
pub(super) fn field_lines(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) -> Vec<String> {
    let path = &sanitize(path);
    let field = path.rsplit('.').next().unwrap_or(path);
    let below = match field {
        FEEDBACK_CONFIG => question_lines(before, after),
        DEPENDENCIES => condition_lines(before, after),
        _ => match (before, after) {
            (Some(Value::String(before)), Some(Value::String(after)))
                if before.contains('\n') || after.contains('\n') =>
            {
                changed_lines(before, after)
            }
            (Some(Value::Array(before)), Some(Value::Array(after)))
                if is_long(before) || is_long(after) =>
            {
                changed_lines(&elements(before), &elements(after))
            }
            _ => Vec::new(),
        },
    };
    if below.is_empty() {
        let shown = |value: Option<&Value>| match value {
            Some(value) => shortened(&in_words(field, value)),
            None => "nothing".to_owned(),
        };
        return vec![changed(path, &shown(before), &shown(after))];
    }
    let lines = below.into_iter().map(|line| format!("  {line}"));
    std::iter::once(format!("{path}:")).chain(lines).collect()
}

fn changed(name: &str, before: &str, after: &str) -> String {
    format!(
        "{name}: {} -> {}",
        style(before).red(),
        style(after).green()
    )
}

fn added(text: &str) -> String {
    style(format!("+ {text}")).green().to_string()
}

fn removed(text: &str) -> String {
    style(format!("- {text}")).red().to_string()
}

/// The lines of an observation's question: each member of it that changes, answer by answer.
fn question_lines(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    // There is one element at most.
    let members = |value: Option<&Value>| {
        let question = value.and_then(|list| list.get(0)?.as_object());
        question.cloned().unwrap_or_default()
    };
    let (before, after) = (members(before), members(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let (before, after) = (before.get(name), after.get(name));
        if before == after {
            continue;
        }
        match name.as_str() {
            ANSWERS => lines.extend(answer_lines(&answers(before), &answers(after))),
            _ => lines.extend(field_lines(name, before, after)),
        }
    }
    lines
}

/// Key and text of each answer.
fn answers(values: Option<&Value>) -> Vec<(String, String)> {
    let values = values.and_then(Value::as_array).into_iter().flatten();
    let answer = |answer: &Value| {
        let key = answer.get("key").and_then(Value::as_str);
        let text = answer.get("value").map_or_else(String::new, value_text);
        (sanitize(key.unwrap_or_default()), text)
    };
    values.map(answer).collect()
}

fn answer_lines(before: &[(String, String)], after: &[(String, String)]) -> Vec<String> {
    let text = |answers: &[(String, String)], key: &str| {
        let found = answers.iter().find(|(other, _)| other == key);
        found.map(|(_, text)| text.clone())
    };
    let gone = before.iter().filter(|(key, _)| text(after, key).is_none());
    let gone = gone.map(|(key, text)| removed(&format!("answer {key}: {}", shortened(text))));
    let mut lines: Vec<String> = gone.collect();
    for (key, new) in after {
        match text(before, key) {
            None => lines.push(added(&format!("answer {key}: {}", shortened(new)))),
            Some(old) if old != *new => {
                let (old, new) = (shortened(&old), shortened(new));
                lines.push(changed(&format!("~ answer {key}"), &old, &new));
            }
            Some(_) => {}
        }
    }
    let order = |answers: &[(String, String)], others: &[(String, String)]| {
        let kept = answers
            .iter()
            .filter(|(key, _)| text(others, key).is_some());
        let keys: Vec<&str> = kept.map(|(key, _)| key.as_str()).collect();
        keys.join(", ")
    };
    let (old, new) = (order(before, after), order(after, before));
    if old != new {
        lines.push(changed("order of the answers", &old, &new));
    }
    lines
}

/// The conditions that change, each on a line of its own. Empty if one line with the old
/// and the new ones shows the change.
fn condition_lines(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let group = |value: Option<&Value>| match value {
        Some(value) => from_json::<DependencyGroup>("DependencyGroup", value).ok(),
        None => Some(DependencyGroup::default()),
    };
    let (Some(before), Some(after)) = (group(before), group(after)) else {
        return Vec::new();
    };
    let words = [wording::group(&before), wording::group(&after)];
    let is_short = |words: &String| words.chars().count() <= MAX_VALUE_CHARS;
    if words[0] != words[1] && words.iter().all(is_short) {
        return Vec::new();
    }
    changed_lines(
        &wording::group_in_lines(&before),
        &wording::group_in_lines(&after),
    )
}

/// A value on one line: conditions in words, others as JSON.
fn in_words(field: &str, value: &Value) -> String {
    let group = match field {
        DEPENDENCIES => from_json::<DependencyGroup>("DependencyGroup", value).ok(),
        _ => None,
    };
    group.map_or_else(|| value_text(value), |group| wording::group(&group))
}

fn is_long(list: &[Value]) -> bool {
    let texts = list
        .iter()
        .map(|element| value_text(element).chars().count());
    texts.sum::<usize>() > MAX_VALUE_CHARS
}

/// The elements of a list, each on a line.
fn elements(list: &[Value]) -> String {
    list.iter().map(|it| value_text(it) + "\n").collect()
}

/// The lines of a text that change.
fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(before, after);
    let lines = diff.iter_all_changes().filter_map(|line| {
        let text = shortened(line.value().trim_end_matches('\n'));
        match line.tag() {
            ChangeTag::Equal => None,
            ChangeTag::Delete => Some(removed(&text)),
            ChangeTag::Insert => Some(added(&text)),
        }
    });
    lines.collect()
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_VALUE_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    sanitize(&shown)
}
