//! Automatic translations, which are the unlocked ones. They stay in the account although most files
//! lack them, and do not count as changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
};

use super::pairing::KnownSteps;
use crate::{
    messages::managed_documents::{managed_document, managed_documents, values, values_mut},
    proto::v1::{Step, StepTranslation, Task, TaskDocument, TaskTranslation},
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

/// Adds the wiring steps and managed tasks that a document leaves out, if they have automatic
/// translations: an import would return them to their defaults. Wiring steps are placed where an import
/// would place them.
pub(super) fn add_left_out(document: &mut TaskDocument, stored: &TaskDocument) {
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
        let translations = unlocked(&wiring.translations, StepTranslation::locked);
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
    for mut step in take(&mut document.steps) {
        for value in values_mut(&mut step) {
            let mut known = stored.steps.iter().flat_map(managed_documents);
            let known = known.find(|(known, _)| known.link == value.link);
            match (&mut value.task_json, known) {
                (Some(managed), Some((_, known))) => add_left_out(managed, known),
                (left_out @ None, Some((_, known))) => {
                    let task = known.task.as_ref().map(|task| Task {
                        guid: task.guid.clone(),
                        translations: unlocked(&task.translations, TaskTranslation::locked),
                        ..Task::default()
                    });
                    let task = task.filter(|task| !task.translations.is_empty());
                    *left_out = task.map(|task| {
                        Box::new(TaskDocument {
                            task: Some(task),
                            steps: Vec::new(),
                        })
                    });
                }
                (_, None) => {}
            }
        }
        let links: Vec<String> = values(&step).map(|value| value.link.clone()).collect();
        steps.push(step);
        let linked = links.iter().filter(|link| !link.is_empty());
        steps.extend(linked.filter_map(|link| unlisted(link)));
    }
    document.steps = steps;
}

fn unlocked<T: Clone>(
    translations: &BTreeMap<String, T>,
    is_locked: impl Fn(&T) -> bool,
) -> BTreeMap<String, T> {
    let unlocked = translations.iter().filter(|(_, it)| !is_locked(it));
    unlocked
        .map(|(language, it)| (language.clone(), it.clone()))
        .collect()
}

/// The guide without automatic translations, so that they do not count as changes. If `known` is not
/// empty, only those that one of these guides also has are left out.
pub(super) fn without(guide: &TaskDocument, known: &[&TaskDocument]) -> TaskDocument {
    let mut guide = guide.clone();
    remove(&mut guide, known, known.is_empty());
    guide
}

fn remove(guide: &mut TaskDocument, known: &[&TaskDocument], all: bool) {
    if let Some(task) = &mut guide.task {
        let tasks = known.iter().filter_map(|known| known.task.as_ref());
        let known: Vec<_> = tasks.map(|task| &task.translations).collect();
        remove_unlocked(&mut task.translations, &known, all, TaskTranslation::locked);
    }
    let steps: Vec<KnownSteps<'_>> = known.iter().map(|it| KnownSteps::new(it)).collect();
    for step in &mut guide.steps {
        let known: Vec<&Step> = steps.iter().filter_map(|known| known.get(step)).collect();
        let texts: Vec<_> = known.iter().map(|step| &step.translations).collect();
        remove_unlocked(&mut step.translations, &texts, all, StepTranslation::locked);
        for value in values_mut(step) {
            let known = known.iter();
            let known = known.filter_map(|step| managed_document(step, &value.key));
            if let Some(managed) = &mut value.task_json {
                remove(managed, &known.collect::<Vec<_>>(), all);
            }
        }
    }
}

fn remove_unlocked<T: PartialEq>(
    translations: &mut BTreeMap<String, T>,
    known: &[&BTreeMap<String, T>],
    all: bool,
    is_locked: impl Fn(&T) -> bool,
) {
    translations.retain(|language, it| {
        let is_known = || known.iter().any(|known| known.get(language) == Some(it));
        is_locked(it) || !all && !is_known()
    });
}
