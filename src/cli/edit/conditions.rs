//! The conditions of an edited document, which has them as `dependencies` and as
//! `dependency_shorthand`.

use std::collections::BTreeMap;

use crate::{
    messages::managed_documents::managed_document,
    proto::v1::{DependencyGroup, Step, TaskDocument},
};

/// Where one of the two forms was edited in an exported document, removes the other, which
/// still says what the stored guide has. To remove the shorthand removes the condition. To remove
/// only `dependencies` changes nothing, as the shorthand says the same. The document has the ids
/// of the stored guide.
pub(super) fn keep_edited_conditions(document: &mut TaskDocument, stored: &TaskDocument) {
    if let (Some(sent), Some(stored)) = (&mut document.task, &stored.task) {
        keep_edited(
            (&mut sent.dependencies, &mut sent.dependency_shorthand),
            (&stored.dependencies, &stored.dependency_shorthand),
        );
    }
    let stored = stored.steps.iter();
    let stored: BTreeMap<&str, &Step> = stored.map(|step| (step.guid.as_str(), step)).collect();
    for sent in &mut document.steps {
        let Some(stored) = stored.get(sent.guid.as_str()) else {
            continue;
        };
        keep_edited(
            (&mut sent.dependencies, &mut sent.dependency_shorthand),
            (&stored.dependencies, &stored.dependency_shorthand),
        );
        let configs = sent.feedback_config.iter_mut();
        for value in configs.flat_map(|config| &mut config.values) {
            let managed = managed_document(stored, &value.key);
            if let (Some(sent), Some(stored)) = (&mut value.task_json, managed) {
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
    if group.is_none() {
        return;
    }
    match (*group == *stored.0, *shorthand == *stored.1) {
        // Without its shorthand, the condition is gone.
        (true, false) => *group = None,
        (false, true) => *shorthand = None,
        (true, true) | (false, false) => {}
    }
}
