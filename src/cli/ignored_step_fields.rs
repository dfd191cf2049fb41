//! Fields of steps that an import ignores: types that differ, and titles of subtask steps.

use std::collections::BTreeMap;

use super::{out::sanitize, wording};
use crate::{
    messages::managed_documents::{managed_document, managed_documents},
    proto::v1::{Step, StepType, TaskDocument},
};

/// The ends of the paths of an ignored type and title.
const TYPE: &str = ".steps.type";
const TITLE: &str = ".steps.title";

/// Whether a line can say more about one of the ignored fields than its path does.
pub(super) fn need_explanation(ignored_paths: &[String]) -> bool {
    let mut paths = ignored_paths.iter();
    paths.any(|path| path.ends_with(TYPE) || path.ends_with(TITLE))
}

/// What an import ignores: its paths, or in their place a line for each step that names it and
/// the reason. `after` is the guide after the import.
pub(super) fn ignored_lines(
    ignored_paths: &[String],
    document: &TaskDocument,
    after: &TaskDocument,
) -> Vec<String> {
    let mut lines = IgnoredFields::default();
    lines.add(document, after, "");
    let IgnoredFields { types, titles } = lines;
    let is_explained = |path: &str| {
        !types.is_empty() && path.ends_with(TYPE) || !titles.is_empty() && path.ends_with(TITLE)
    };
    let paths = ignored_paths.iter().filter(|path| !is_explained(path));
    let paths = paths.map(|path| sanitize(path));
    paths.chain(types.iter().chain(&titles).cloned()).collect()
}

#[derive(Default)]
struct IgnoredFields {
    types: Vec<String>,
    titles: Vec<String>,
}

impl IgnoredFields {
    fn add(&mut self, document: &TaskDocument, after: &TaskDocument, of: &str) {
        for (index, (sent, stored)) in pairs(document, after).enumerate() {
            let Some(stored) = stored else { continue };
            if sent.r#type() != StepType::Unspecified && sent.r#type != stored.r#type {
                let remedy = match (sent.guid.is_empty(), sent.external_id().is_empty()) {
                    (_, true) => "remove the step's guid",
                    (true, false) => "give the step another external id",
                    (false, false) => "remove the step's guid and change its external id",
                };
                let [kept, sent] = [stored, sent].map(|step| wording::kind(step.r#type()));
                let title = sanitize(&stored.title);
                self.types.push(format!(
                    "step {} \"{title}\"{of}: keeps its type {kept}, as a type never changes; to \
                     get {sent}, {remedy}",
                    index + 1
                ));
            }
            let is_subtask = stored.r#type() == StepType::Subtask;
            if is_subtask && !sent.title.is_empty() && sent.title != stored.title {
                let title = sanitize(&sent.title);
                self.titles.push(format!(
                    "step {} \"{title}\"{of}: its title is not stored, as a subtask step has the \
                     name of its task",
                    index + 1
                ));
            }
            for (value, sent) in managed_documents(sent) {
                if let Some(stored) = managed_document(stored, &value.key) {
                    let of = format!(" of task \"{}\"", sanitize(&value.value));
                    self.add(sent, stored, &of);
                }
            }
        }
    }
}

/// The steps of a document, each with what it has become. New steps have got other ids and are in
/// the same order, among wiring steps that the document may not list.
pub(super) fn pairs<'a>(
    document: &'a TaskDocument,
    after: &'a TaskDocument,
) -> impl Iterator<Item = (&'a Step, Option<&'a Step>)> {
    let by_guid = after.steps.iter().map(|step| (step.guid.as_str(), step));
    let mut by_guid: BTreeMap<&str, &Step> = by_guid.collect();
    let known = document.steps.iter().map(|sent| {
        let guid = sent.guid.to_ascii_lowercase();
        by_guid.remove(guid.as_str())
    });
    let known: Vec<Option<&Step>> = known.collect();
    let mut new_steps = after.steps.iter();
    let mut next_new = move |sent: &Step| {
        new_steps.find(|step| {
            by_guid.contains_key(step.guid.as_str())
                && step.r#type == sent.r#type
                && step.link.is_empty() == sent.link.is_empty()
        })
    };
    let steps = document.steps.iter().zip(known);
    steps.map(move |(sent, known)| (sent, known.or_else(|| next_new(sent))))
}
