//! Conditions of guide cases, and the separation of text outside of quotes and brackets.

use serde_json::{Value, json};

use crate::kit::sample::PRODUCT;

/// `a = 1 & (.b != 2, "3" | c > #4)` as dependencies. `.b` is `b` of the samples' product, and `#`
/// begins a target that is JSON.
pub fn group(text: &str) -> Result<Value, String> {
    let (all, any) = (split(text, " & "), split(text, " | "));
    let (operator, nodes) = match (all.len(), any.len()) {
        (_, 1) => ("AND", all),
        (1, _) => ("OR", any),
        _ => return Err("`&` and `|` need parentheses".to_owned()),
    };
    let node = |text: &str| match text
        .trim()
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'))
    {
        Some(inner) => Ok(json!({"group": group(inner)?})),
        None => Ok(json!({"condition": condition(text.trim())?})),
    };
    let nodes: Result<Vec<Value>, String> = nodes.into_iter().map(node).collect();
    Ok(json!({"operator": format!("LOGICAL_OPERATOR_{operator}"), "nodes": nodes?}))
}

fn condition(text: &str) -> Result<Value, String> {
    let operators = [" != ", " = ", " > ", " < "].into_iter();
    let mut cuts = operators.filter_map(|operator| Some((operator, cut(text, operator)?)));
    let (operator, (name, targets)) = cuts.next().ok_or("expected a condition")?;
    let targets = split(targets, ", ")
        .into_iter()
        .map(|target| match target.strip_prefix('#') {
            Some(json) => literal(json),
            None => json!(quoted(target)),
        });
    let (path, variable) = match (name.strip_prefix('.'), name.split_once('/')) {
        (Some(variable), _) => (format!("components.{PRODUCT}"), variable),
        (None, Some((path, variable))) => (path.to_owned(), variable),
        (None, None) => (String::new(), name),
    };
    let targets: Vec<Value> = targets.collect();
    Ok(json!({"path": path, "variable": variable, "operator": operator.trim(), "targets": targets}))
}

/// The two sides of the first separator that is outside of quotes and brackets.
pub fn cut<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let first = *split(text, separator).first()?;
    Some((first, text.get(first.len() + separator.len()..)?))
}

/// The parts between separators that are outside of quotes and brackets.
pub fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let (mut parts, mut start, mut depth, mut in_quotes, mut escaped) =
        (Vec::new(), 0, 0, false, false);
    for (at, c) in text.char_indices() {
        if at >= start && depth == 0 && !in_quotes && text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_quotes,
            '"' => in_quotes = !in_quotes,
            '(' | '[' | '{' if !in_quotes => depth += 1,
            ')' | ']' | '}' if !in_quotes => depth -= 1,
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// JSON, or else a text.
pub fn literal(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// A text, which may be quoted.
pub fn quoted(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}
