//! Where a field of a document stands: its line in the text, and its step.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::place::{DOCUMENT, GuidePlace};
use crate::{client::CallError, proto::v1::TaskDocument};

const STEPS: &str = "steps";

/// A document that is sent, and the text that it was read from.
#[derive(Clone, Copy)]
pub(super) struct SentText<'a> {
    pub text: &'a str,
    pub document: &'a TaskDocument,
}

impl SentText<'_> {
    /// The line of a field and its step, such as `line 12, step 4 "Descale"`; empty if neither
    /// is known.
    pub fn place_of(&self, path: &str) -> String {
        let line = FieldLines::new(self.text)
            .line(path)
            .map(|line| format!("line {line}"));
        let full = match path.starts_with(DOCUMENT) {
            true => path.to_owned(),
            false => format!("{DOCUMENT}.{path}"),
        };
        let place = GuidePlace::find(self.document, &full, ("", ""));
        let label = place.and_then(|place| place.step_label());
        let parts: Vec<String> = line.into_iter().chain(label).collect();
        parts.join(", ")
    }

    /// A path after the place of its field, such as `line 12: task.name`.
    pub fn with_place(&self, path: String) -> String {
        match self.place_of(&path).as_str() {
            "" => path,
            place => format!("{place}: {path}"),
        }
    }

    /// Adds the places of the fields that a server refuses.
    pub fn with_places(&self, mut error: CallError) -> CallError {
        for violation in &mut error.violations {
            violation.place = self.place_of(&violation.field);
        }
        let place = error.field.as_ref().map(|field| self.place_of(field));
        if let Some(place) = place.filter(|place| !place.is_empty()) {
            error.message = format!("{place}: {}", error.message);
        }
        error
    }
}

/// The lines of the fields of a text. The list of steps is read once.
pub(super) struct FieldLines<'a> {
    text: &'a str,
    root: Option<&'a RawValue>,
    steps: Vec<&'a RawValue>,
}

impl<'a> FieldLines<'a> {
    pub fn new(text: &'a str) -> Self {
        // Some editors begin a file with a byte-order mark.
        let text = text.trim_start_matches('\u{feff}');
        let root: Option<&RawValue> = serde_json::from_str(text).ok();
        let steps = root.and_then(|root| member(root, STEPS));
        let steps = steps.and_then(|steps| serde_json::from_str(steps.get()).ok());
        Self {
            text,
            root,
            steps: steps.unwrap_or_default(),
        }
    }

    /// The line of the deepest part of a path that the text has, counted from 1. `None` if it
    /// has not even the first.
    pub fn line(&self, path: &str) -> Option<usize> {
        let path = match path.strip_prefix(DOCUMENT) {
            Some(below) => below.trim_start_matches('.'),
            None => path,
        };
        let parts = parts(path);
        let (first, below) = match parts.as_slice() {
            [PathPart::Name(STEPS), PathPart::Index(index), below @ ..]
                if *index < self.steps.len() =>
            {
                (self.steps.get(*index).copied(), below)
            }
            [PathPart::Name(name), below @ ..] => {
                (self.root.and_then(|root| member(root, name)), below)
            }
            [PathPart::Index(_), ..] | [] => (None, &[][..]),
        };
        let mut value = first?;
        for part in below {
            let found = match part {
                PathPart::Name(name) => member(value, name),
                PathPart::Index(index) => element(value, *index),
            };
            let Some(found) = found else { break };
            value = found;
        }
        // A value borrows from the text, so the difference of the addresses is its offset.
        let start = (value.get().as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        Some(self.text.get(..start)?.matches('\n').count() + 1)
    }

    /// A path after its line, if that is known, such as `line 12: task.name`.
    pub fn with_line(&self, path: &str) -> String {
        match self.line(path) {
            Some(line) => format!("line {line}: {path}"),
            None => path.to_owned(),
        }
    }
}

fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
    let value = members.remove(name);
    value.or_else(|| members.remove(&lower_camel_case(name)))
}

/// The other name that a field has in JSON.
fn lower_camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn element(list: &RawValue, index: usize) -> Option<&RawValue> {
    let elements: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    elements.get(index).copied()
}

enum PathPart<'a> {
    Name(&'a str),
    Index(usize),
}

/// The parts of a path such as `steps[0].translations["de"].title`.
fn parts(path: &str) -> Vec<PathPart<'_>> {
    let parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    let parts = parts.map(|part| match part.strip_suffix(']') {
        Some(index) => match index.parse() {
            Ok(index) => PathPart::Index(index),
            Err(_) => PathPart::Name(index.trim_matches('"')),
        },
        None => PathPart::Name(part),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "task": {"name": "Guide", "productId": 7},
  "steps": [
    {"title": "one"},
    {
      "title": "two",
      "translations": {
        "de": {
          "title": "zwei"
        }
      }
    }
  ]
}"#;

    #[test]
    fn a_path_is_found_as_deep_as_the_text_has_it() {
        for (path, line) in [
            ("document.task.name", Some(2)),
            ("task.name", Some(2)),
            ("task.product_id", Some(2)),
            ("document.steps[0].cost", Some(4)),
            ("document.steps[1].title", Some(6)),
            (r#"document.steps[1].translations["de"].title"#, Some(9)),
            ("document.steps[7].title", Some(3)),
            ("etag", None),
        ] {
            assert_eq!(FieldLines::new(TEXT).line(path), line, "{path}");
        }
        let marked = format!("\u{feff}{TEXT}");
        assert_eq!(
            FieldLines::new(&marked).line("task"),
            FieldLines::new(TEXT).line("task")
        );
        assert_eq!(FieldLines::new("{").line("task"), None);
    }
}
