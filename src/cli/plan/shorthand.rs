//! The conditions of a document, sent as `dependencies`, as `dependency_shorthand` or as both.

use super::{managed_documents, steps_by_guid};
use crate::{
    domain::{shorthand, violation::Violations},
    messages::{
        decode::{self, Field},
        encode,
    },
    proto::v1::{DependencyGroup, TaskDocument},
};

/// The conditions that are sent. A shorthand that cannot be read, or contradicts the group,
/// stays beside them: the server refuses it.
pub(super) fn conditions(
    group: Option<DependencyGroup>,
    shorthand: Option<String>,
) -> (Option<DependencyGroup>, Option<String>) {
    let Some(shorthand) = shorthand else {
        return (group, None);
    };
    if group.is_some() {
        let refused = is_refused(&group, &shorthand).then_some(shorthand);
        return (group, refused);
    }
    match shorthand::parse(&shorthand) {
        Ok(parsed) => (Some(encode::json::dependency_group(parsed)), None),
        Err(_) => (None, Some(shorthand)),
    }
}

fn is_refused(group: &Option<DependencyGroup>, shorthand: &str) -> bool {
    let decoded = decode::all(|violations: &mut Violations| {
        let mut field = Field::root("document", violations);
        let shorthand = Some(shorthand.to_owned());
        decode::dependencies::with_shorthand(group.clone(), shorthand, &mut field);
        Some(())
    });
    decoded.is_err()
}

/// Whether the server refuses a shorthand of this guide.
pub(in crate::cli) fn has_refused_shorthand(guide: &TaskDocument) -> bool {
    let has_refused = |group: &Option<DependencyGroup>, shorthand: &Option<String>| {
        conditions(group.clone(), shorthand.clone()).1.is_some()
    };
    let mut task = guide.task.iter();
    let mut steps = guide.steps.iter();
    task.any(|task| has_refused(&task.dependencies, &task.dependency_shorthand))
        || steps.any(|step| {
            has_refused(&step.dependencies, &step.dependency_shorthand)
                || managed_documents(step).any(|(_, managed)| has_refused_shorthand(managed))
        })
}

/// Where one of the two forms was edited in an exported document, removes the other, which
/// still says what the stored guide has. The document has the ids of the stored guide.
pub(in crate::cli) fn keep_edited_conditions(document: &mut TaskDocument, stored: &TaskDocument) {
    if let (Some(sent), Some(stored)) = (&mut document.task, &stored.task) {
        keep_edited(
            (&mut sent.dependencies, &mut sent.dependency_shorthand),
            (&stored.dependencies, &stored.dependency_shorthand),
        );
    }
    let stored_steps = steps_by_guid(stored);
    for sent in &mut document.steps {
        let Some(stored) = stored_steps.get(sent.guid.as_str()) else {
            continue;
        };
        keep_edited(
            (&mut sent.dependencies, &mut sent.dependency_shorthand),
            (&stored.dependencies, &stored.dependency_shorthand),
        );
        let configs = sent.feedback_config.iter_mut();
        for value in configs.flat_map(|config| &mut config.values) {
            let mut managed = managed_documents(stored);
            let managed = managed.find(|(stored, _)| stored.key == value.key);
            if let (Some(sent), Some((_, stored))) = (&mut value.task_json, managed) {
                keep_edited_conditions(sent, stored);
            }
        }
    }
}

fn keep_edited(
    sent: (&mut Option<DependencyGroup>, &mut Option<String>),
    stored: (&Option<DependencyGroup>, &Option<String>),
) {
    let (group, shorthand) = sent;
    if group.is_none() || shorthand.is_none() {
        return;
    }
    match (*group == *stored.0, *shorthand == *stored.1) {
        (true, false) => *group = None,
        (false, true) => *shorthand = None,
        (true, true) | (false, false) => {}
    }
}
