//! The translations that an edit outdates.

use crate::{
    cli::{
        changes::{Change, ChangeKind},
        merge::find_step,
        out::sanitize,
    },
    messages::managed_documents::all_managed,
    proto::v1::{StepTranslation, Task, TaskDocument},
};

/// A line for each task or step whose source texts change while translations stay as they are.
pub(super) fn outdated_translations(changes: &[Change], planned: &TaskDocument) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for first in changes.iter().filter(|it| it.kind == ChangeKind::Changed) {
        let of_same: Vec<&str> = changes
            .iter()
            .filter(|it| it.task == first.task && it.step == first.step)
            .map(|it| it.path.as_str())
            .collect();
        let is_changed = |path: &str| of_same.contains(&path);
        let of_step = |it: &StepTranslation| {
            it.title.is_some() && is_changed("title")
                || it.body.is_some() && is_changed("body")
                || !it.instructions.is_empty() && is_changed("instructions")
                || !it.feedback_config.is_empty() && is_changed("feedback_config")
        };
        let languages: Vec<&String> = match first.step.as_str() {
            "" => {
                let translations = find_task(planned, &first.task).map(|it| &it.translations);
                let translations = translations.into_iter().flatten();
                let outdated =
                    translations.filter(|(_, it)| it.name.is_some() && is_changed("name"));
                outdated.map(|(language, _)| language).collect()
            }
            step => {
                let translations = find_step(planned, step).map(|it| &it.translations);
                let outdated = translations
                    .into_iter()
                    .flatten()
                    .filter(|(_, it)| of_step(it));
                outdated.map(|(language, _)| language).collect()
            }
        };
        // One that is edited, too, is new.
        let is_edited = |language: &str| {
            let texts = format!("translations[\"{language}\"].");
            let mut paths = of_same.iter();
            paths.any(|path| path.starts_with(&texts) && !path.ends_with(".locked"))
        };
        let languages = languages.into_iter().filter(|it| !is_edited(it));
        let languages: Vec<&str> = languages.map(String::as_str).collect();
        let subject = match first.place {
            0 => "task".to_owned(),
            place => format!("step {place}"),
        };
        let (title, languages) = (sanitize(&first.title), languages.join(", "));
        let line = format!("outdates the translations of {subject} \"{title}\": {languages}");
        if !languages.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The task with this id, managed ones included.
fn find_task<'d>(guide: &'d TaskDocument, guid: &str) -> Option<&'d Task> {
    let managed = all_managed(&guide.steps).into_iter();
    let mut tasks = guide
        .task
        .iter()
        .chain(managed.filter_map(|(_, it)| it.task.as_ref()));
    tasks.find(|task| task.guid == guid)
}
