//! The translations that an edit outdates.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::{
    cli::{
        changes::{Change, ChangeKind},
        out::sanitize,
    },
    messages::managed_documents::{all_steps, managed_documents},
    proto::v1::{Step, StepTranslation, Task, TaskDocument},
};

/// The translations of a task or step whose source texts change, while they stay as they are.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct OutdatedTranslations {
    /// The guid of the task.
    task: String,
    /// The guid of the step; empty for the task itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    step: String,
    #[serde(skip)]
    place: usize,
    title: String,
    languages: Vec<String>,
}

impl fmt::Display for OutdatedTranslations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.place {
            0 => "task".to_owned(),
            place => format!("step {place}"),
        };
        write!(
            f,
            "outdates the translations of {subject} \"{}\": {}",
            sanitize(&self.title),
            self.languages.join(", ")
        )
    }
}

/// The translations that changes outdate. `planned` is the guide after them.
pub(super) fn translations(
    changes: &[Change],
    planned: &TaskDocument,
) -> Vec<OutdatedTranslations> {
    let steps = all_steps(&planned.steps).into_iter();
    let steps: BTreeMap<&str, &Step> = steps.map(|step| (step.guid.as_str(), step)).collect();
    // The changes of each task and step, with the place of the first of them.
    let mut fields: BTreeMap<(&str, &str), (usize, Vec<&Change>)> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        if change.kind == ChangeKind::Changed {
            let resource = (change.task.as_str(), change.step.as_str());
            let (_, changes) = fields.entry(resource).or_insert((index, Vec::new()));
            changes.push(change);
        }
    }
    let outdated = fields
        .into_iter()
        .filter_map(|((task, step), (index, changes))| {
            let is_changed = |path: &str| changes.iter().any(|change| change.path == path);
            let languages: Vec<&String> = match step {
                "" => {
                    let translations = &find_task(planned, task)?.translations;
                    let translated = translations.iter().filter(|(_, it)| it.name.is_some());
                    translated
                        .map(|(language, _)| language)
                        .filter(|_| is_changed("name"))
                        .collect()
                }
                step => {
                    let translations = &steps.get(step)?.translations;
                    let is_outdated = |translation: &StepTranslation| {
                        translation.title.is_some() && is_changed("title")
                            || translation.body.is_some() && is_changed("body")
                            || !translation.instructions.is_empty() && is_changed("instructions")
                            || !translation.feedback_config.is_empty()
                                && is_changed("feedback_config")
                    };
                    let outdated = translations.iter().filter(|(_, it)| is_outdated(it));
                    outdated.map(|(language, _)| language).collect()
                }
            };
            // One that is edited, too, is new.
            let is_edited = |language: &str| {
                let texts = format!("translations[\"{language}\"].");
                let mut paths = changes.iter().map(|change| change.path.as_str());
                paths.any(|path| path.starts_with(&texts) && !path.ends_with(".locked"))
            };
            let languages = languages.into_iter().filter(|it| !is_edited(it));
            let mut languages: Vec<String> = languages.cloned().collect();
            languages.sort_unstable();
            let first = changes.first().filter(|_| !languages.is_empty())?;
            let outdated = OutdatedTranslations {
                task: task.to_owned(),
                step: step.to_owned(),
                place: first.place,
                title: first.title.clone(),
                languages,
            };
            Some((index, outdated))
        });
    let mut outdated: Vec<(usize, OutdatedTranslations)> = outdated.collect();
    outdated.sort_by_key(|(index, _)| *index);
    outdated.into_iter().map(|(_, outdated)| outdated).collect()
}

/// The task with this id, managed ones included.
fn find_task<'d>(guide: &'d TaskDocument, guid: &str) -> Option<&'d Task> {
    let own = guide.task.as_ref().filter(|task| task.guid == guid);
    own.or_else(|| {
        let mut managed = guide.steps.iter().flat_map(managed_documents);
        managed.find_map(|(_, managed)| find_task(managed, guid))
    })
}
