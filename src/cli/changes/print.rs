//! Changes of a guide for people.

use std::time::Duration;

use console::style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::{Change, ChangeKind};
use crate::{
    cli::{
        document::{from_json, value_text},
        out::sanitize,
        wording,
    },
    proto::v1::DependencyGroup,
};

/// After it a difference is shown that need not be the smallest.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);
/// A longer value is cut, as a body may have megabytes.
const MAX_VALUE_CHARS: usize = 200;
/// The field whose values are conditions.
const DEPENDENCIES: &str = "dependencies";

/// The changes in lines that begin with `indent`: those of a task or step below its name.
pub(in crate::cli) fn text(changes: &[Change], indent: &str) -> String {
    let mut text = String::new();
    let mut subject = None;
    for change in changes {
        let next = (&change.task, &change.step, change.place);
        let is_field = change.kind == ChangeKind::Changed;
        if !is_field || subject != Some(next) {
            text.push_str(&format!("{indent}{}\n", head(change)));
        }
        subject = is_field.then_some(next);
        if is_field {
            let lines = field_lines(change);
            text.extend(lines.iter().map(|line| format!("{indent}  {line}\n")));
        }
    }
    text
}

fn head(change: &Change) -> String {
    let title = style(sanitize(&change.title)).bold();
    let subject = match change.place {
        0 => format!("task {title}"),
        place => format!("step {place} {title}"),
    };
    let guid = match change.place {
        0 => &change.task,
        _ => &change.step,
    };
    let guid = match guid.as_str() {
        "" => String::new(),
        guid => format!("  {}", style(guid).dim()),
    };
    match (change.kind, change.place) {
        (ChangeKind::Changed, _) => format!("~ {subject}{guid}"),
        (ChangeKind::Added, _) => style(format!("+ {subject}")).green().to_string(),
        (ChangeKind::Removed, 0) => {
            let line = format!("- {subject} is no longer managed, and stays as a task of its own");
            format!("{}{guid}", style(line).red())
        }
        (ChangeKind::Removed, _) => format!("{}{guid}", style(format!("- {subject}")).red()),
        (ChangeKind::Moved, _) => {
            let place = change.after.as_ref().map(Value::to_string);
            let place = place.unwrap_or_default();
            format!("~ {subject} becomes step {place}{guid}")
        }
    }
}

fn field_lines(change: &Change) -> Vec<String> {
    let Change {
        path,
        before,
        after,
        ..
    } = change;
    let path = sanitize(path);
    if let (Some(Value::String(before)), Some(Value::String(after))) = (before, after)
        && (before.contains('\n') || after.contains('\n'))
    {
        let mut lines = vec![format!("{path}:")];
        lines.extend(changed_lines(before, after));
        return lines;
    }
    let in_words = |value: &Option<Value>| value.as_ref().map(conditions);
    // Different conditions may read the same.
    let are_words = path == DEPENDENCIES && in_words(before) != in_words(after);
    let shown = |value: &Option<Value>| match value {
        Some(value) if are_words => shortened(&conditions(value)),
        Some(value) => shortened(&value_text(value)),
        None => "nothing".to_owned(),
    };
    vec![format!(
        "{path}: {} -> {}",
        style(shown(before)).red(),
        style(shown(after)).green()
    )]
}

/// Conditions in the words of `show`.
fn conditions(value: &Value) -> String {
    match from_json::<DependencyGroup>("DependencyGroup", value) {
        Ok(group) => wording::group(&group),
        Err(_) => value_text(value),
    }
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
            ChangeTag::Delete => Some(style(format!("  - {text}")).red().to_string()),
            ChangeTag::Insert => Some(style(format!("  + {text}")).green().to_string()),
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
