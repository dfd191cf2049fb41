//! Describes the changes of a guide.

use console::style;
use serde_json::Value;

use super::{Change, ChangeKind, value_lines::field_lines};
use crate::cli::out::sanitize;

/// The changes as lines indented by `indent` spaces. Changes of a task or step come below its name.
pub(in crate::cli) fn text(changes: &[Change], indent: usize) -> String {
    let mut text = String::new();
    let mut subject = None;
    for change in changes {
        let next = (&change.task, &change.step, change.place);
        let is_field = change.kind == ChangeKind::Changed;
        if !is_field || subject != Some(next) {
            text.push_str(&format!("{:indent$}{}\n", "", head(change)));
        }
        subject = is_field.then_some(next);
        if is_field {
            let lines = field_lines(&change.path, change.before.as_ref(), change.after.as_ref());
            let lines = lines.iter();
            text.extend(lines.map(|line| format!("{:indent$}  {line}\n", "")));
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
            let mut line = format!("- {subject} is no longer managed, and is now a standard task");
            if let Some(place) = change.subtask_step {
                line.push_str(&format!("; step {place} still leads to it"));
            }
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
