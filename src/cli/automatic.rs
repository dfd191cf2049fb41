//! Automatic translations, which are the unlocked ones. They stay in the account although most files
//! lack them, and do not count as changes.

use std::collections::{BTreeMap, BTreeSet};

use super::pairing::KnownSteps;
use crate::{
    messages::managed_documents::{managed_document, managed_documents, values, values_mut},
    proto::v1::{Step, StepTranslation, TaskDocument, TaskTranslation},
};

/// Adds automatic translations to a document: languages that it leaves out, and languages that it has
/// as they are in `base`.
pub(super) fn keep(
    document: &mut TaskDocument,
    stored: &TaskDocument,
    base: Option<&TaskDocument>,
) {
    if let (Some(task), Some(known)) = (&mut document.task, &stored.task) {
        let former = base.and_then(|base| Some(&base.task.as_ref()?.translations));
        let is_locked = TaskTranslation::locked;
        keep_unlocked(
            &mut task.translations,
            &known.translations,
            former,
            is_locked,
        );
    }
    let known = KnownSteps::new(stored);
    let former = base.map(KnownSteps::new);
    for step in &mut document.steps {
        let Some(stored) = known.get(step) else {
            continue;
        };
        let former = former.as_ref().and_then(|known| known.get(stored));
        let translations = former.map(|step| &step.translations);
        let is_locked = StepTranslation::locked;
        keep_unlocked(
            &mut step.translations,
            &stored.translations,
            translations,
            is_locked,
        );
        for value in values_mut(step) {
            let former = former.and_then(|it| managed_document(it, &value.key));
            if let Some(managed) = &mut value.task_json
                && let Some(stored) = managed_document(stored, &value.key)
            {
                keep(managed, stored, former);
            }
        }
    }
}

fn keep_unlocked<T: Clone + PartialEq>(
    said: &mut BTreeMap<String, T>,
    stored: &BTreeMap<String, T>,
    former: Option<&BTreeMap<String, T>>,
    is_locked: impl Fn(&T) -> bool,
) {
    for (language, written) in stored.iter().filter(|(_, it)| !is_locked(it)) {
        let is_former = |said: &T| former.and_then(|it| it.get(language)) == Some(said);
        if said.get(language).is_none_or(is_former) {
            said.insert(language.clone(), written.clone());
        }
    }
}

/// Adds the wiring steps with automatic translations that a document leaves out: an import would
/// return them to their defaults. They are placed where an import would place them.
pub(super) fn add_translated_wiring_steps(document: &mut TaskDocument, stored: &TaskDocument) {
    let known = KnownSteps::new(stored);
    let named = document.steps.iter().flat_map(|step| {
        let known = known.get(step).map(|known| known.link.clone());
        let sent = [&step.link, &step.subtask_id].map(String::clone);
        known.into_iter().chain(sent)
    });
    let listed: BTreeSet<String> = named.collect();
    let unlisted = |link: &str| {
        let mut wiring = stored.steps.iter();
        let wiring = wiring.find(|step| step.link == link && !listed.contains(link))?;
        let translations = wiring.translations.iter().filter(|(_, it)| !it.locked());
        let translations: BTreeMap<_, _> = translations
            .map(|(language, it)| (language.clone(), it.clone()))
            .collect();
        (!translations.is_empty()).then(|| Step {
            guid: wiring.guid.clone(),
            r#type: wiring.r#type,
            link: wiring.link.clone(),
            subtask_id: wiring.subtask_id.clone(),
            translations,
            ..Step::default()
        })
    };
    let mut steps = Vec::with_capacity(document.steps.len());
    for mut step in std::mem::take(&mut document.steps) {
        for value in values_mut(&mut step) {
            let mut known = stored.steps.iter().flat_map(managed_documents);
            let known = known.find(|(known, _)| known.link == value.link);
            if let (Some(managed), Some((_, known))) = (&mut value.task_json, known) {
                add_translated_wiring_steps(managed, known);
            }
        }
        let links: Vec<String> = values(&step).map(|value| value.link.clone()).collect();
        steps.push(step);
        let linked = links.iter().filter(|link| !link.is_empty());
        steps.extend(linked.filter_map(|link| unlisted(link)));
    }
    document.steps = steps;
}

/// The stored guide with the automatic translations of the base, so that they do not count as changes.
pub(super) fn as_in_base(stored: &TaskDocument, base: &TaskDocument) -> TaskDocument {
    let mut guide = stored.clone();
    reset(&mut guide, Some(base));
    guide
}

fn reset(guide: &mut TaskDocument, base: Option<&TaskDocument>) {
    if let Some(task) = &mut guide.task {
        let former = base.and_then(|base| Some(&base.task.as_ref()?.translations));
        reset_unlocked(&mut task.translations, former, TaskTranslation::locked);
    }
    let known = base.map(KnownSteps::new);
    for step in &mut guide.steps {
        let former = known.as_ref().and_then(|known| known.get(step));
        let translations = former.map(|step| &step.translations);
        reset_unlocked(
            &mut step.translations,
            translations,
            StepTranslation::locked,
        );
        for value in values_mut(step) {
            let former = former.and_then(|it| managed_document(it, &value.key));
            if let Some(managed) = &mut value.task_json {
                reset(managed, former);
            }
        }
    }
}

fn reset_unlocked<T: Clone>(
    stored: &mut BTreeMap<String, T>,
    former: Option<&BTreeMap<String, T>>,
    is_locked: impl Fn(&T) -> bool,
) {
    stored.retain(|language, it| {
        let former = former.and_then(|former| former.get(language));
        if let Some(former) = former.filter(|former| !is_locked(it) && !is_locked(former)) {
            it.clone_from(former);
        }
        is_locked(it) || former.is_some()
    });
}
