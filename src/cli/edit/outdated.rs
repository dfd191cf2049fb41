//! The translations that an edit outdates.

use crate::{
    cli::{
        changes::{Change, ChangeKind},
        document,
        merge::find_step,
        out::sanitize,
    },
    messages::managed_documents::all_managed,
    proto::v1::{Task, TaskDocument},
};

/// A line for each task or step whose source texts change while translations do not.
pub(super) fn outdated_translations(changes: &[Change], planned: &TaskDocument) -> Vec<String> {
    let is_field = |change: &&Change| change.kind == ChangeKind::Changed;
    let fields: Vec<&Change> = changes.iter().filter(is_field).collect();
    let subjects = fields.chunk_by(|one, next| (&one.task, &one.step) == (&next.task, &next.step));
    let lines = subjects.filter_map(|fields| {
        let first = fields.first()?;
        let resource = match first.step.as_str() {
            "" => document::json("Task", find_task(planned, &first.task)?),
            step => document::json("Step", find_step(planned, step)?),
        };
        let translations = resource.get("translations")?.as_object()?.iter();
        let outdated = translations.filter(|(language, texts)| {
            let mut texts = texts.as_object().into_iter().flatten();
            let is_of_changed = texts.any(|(text, _)| fields.iter().any(|it| it.path == *text));
            // A translation that is also edited is up to date.
            let own = format!("translations[\"{language}\"].");
            let is_edited =
                |it: &&Change| it.path.starts_with(&own) && !it.path.ends_with(".locked");
            is_of_changed && !fields.iter().any(is_edited)
        });
        let languages: Vec<&str> = outdated.map(|(language, _)| language.as_str()).collect();
        let subject = match first.place {
            0 => "task".to_owned(),
            place => format!("step {place}"),
        };
        let (title, languages) = (sanitize(&first.title), languages.join(", "));
        let line = format!("outdates the translations of {subject} \"{title}\": {languages}");
        (!languages.is_empty()).then_some(line)
    });
    lines.collect()
}

/// The task with this id, which may be a managed one.
fn find_task<'d>(guide: &'d TaskDocument, guid: &str) -> Option<&'d Task> {
    let managed = all_managed(&guide.steps).into_iter();
    let managed = managed.filter_map(|(_, it)| it.task.as_ref());
    let mut tasks = guide.task.iter().chain(managed);
    tasks.find(|task| task.guid == guid)
}
