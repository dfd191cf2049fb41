//! The line of a text on which a field of its document stands.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// What paths of a document begin with in a request.
const DOCUMENT: &str = "document.";

/// The line of the deepest part of a path that the text has, counted from 1. `None` if it has
/// not even the first.
pub(super) fn field_line(text: &str, path: &str) -> Option<usize> {
    let path = path.strip_prefix(DOCUMENT).unwrap_or(path);
    let mut value: &RawValue = serde_json::from_str(text).ok()?;
    let mut has_first_part = false;
    for part in parts(path) {
        let found = match part {
            PathPart::Name(name) => member(value, name),
            PathPart::Index(index) => element(value, index),
        };
        let Some(found) = found else { break };
        value = found;
        has_first_part = true;
    }
    // A value is a part of the text that it was read from.
    let start = (value.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let before = text.get(..start).filter(|_| has_first_part)?;
    Some(before.matches('\n').count() + 1)
}

fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
    members.remove(name)
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
  "task": {"name": "Guide"},
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
            ("document.steps[0].cost", Some(4)),
            ("document.steps[1].title", Some(6)),
            (r#"document.steps[1].translations["de"].title"#, Some(9)),
            ("document.steps[7].title", Some(3)),
            ("etag", None),
        ] {
            assert_eq!(field_line(TEXT, path), line, "{path}");
        }
        assert_eq!(field_line("{", "task"), None);
    }
}
