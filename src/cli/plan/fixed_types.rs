//! Types of steps that a document changes, which an import ignores.

use super::{fixed::changes_type, managed_by_key, managed_documents, steps_by_guid};
use crate::{
    cli::{out::sanitize, wording},
    proto::v1::TaskDocument,
};

/// The end of the path of an ignored type.
const TYPE: &str = ".steps.type";

/// A line for each step whose type differs. The document has the ids of the stored guide.
pub(in crate::cli) fn fixed_types(document: &TaskDocument, stored: &TaskDocument) -> Vec<String> {
    let mut lines = Vec::new();
    add_lines(document, stored, "", &mut lines);
    lines
}

fn add_lines(document: &TaskDocument, stored: &TaskDocument, of: &str, lines: &mut Vec<String>) {
    let stored_steps = steps_by_guid(stored);
    for (index, sent) in document.steps.iter().enumerate() {
        let Some(stored) = stored_steps.get(sent.guid.as_str()) else {
            continue;
        };
        if changes_type(sent, stored) {
            let (before, after) = (wording::kind(stored.r#type()), wording::kind(sent.r#type()));
            let title = sanitize(&stored.title);
            lines.push(format!(
                "step {} \"{title}\"{of}: keeps its type {before}, as a type never changes; to get \
                 {after}, remove the step's guid",
                index + 1
            ));
        }
        let managed = managed_by_key(stored);
        for (value, sent) in managed_documents(sent) {
            if let Some(stored) = managed.get(value.key.as_str()) {
                let of = format!(" of task \"{}\"", sanitize(&value.value));
                add_lines(sent, stored, &of, lines);
            }
        }
    }
}

/// What an import ignores, in lines: the paths, and the types of steps in their place.
pub(in crate::cli) fn ignored_lines(paths: &[String], types: &[String]) -> Vec<String> {
    let is_listed = |path: &&String| types.is_empty() || !path.ends_with(TYPE);
    let paths = paths.iter().filter(is_listed).map(|path| sanitize(path));
    paths.chain(types.iter().cloned()).collect()
}
