//! Why the task of a subtask step is not visible. The response says why its conditions do not
//! hold. Here the task is read, for its levels and for whether it is published.

use std::collections::BTreeMap;

use crate::{
    cli::{guides, wording},
    client::Client,
    config::PreviewArgs,
    messages::managed_documents::{all_managed, managed_documents},
    proto::v1::{
        GetStepRequest, PreviewTaskResponse, PreviewedStep, Step, Task, TaskDocument,
        VisibilityReason,
    },
};

/// Tasks with another value of `published` are hidden.
const PUBLISHED: i32 = 1;

/// Lines for subtask steps, by the index of the step in the response.
#[derive(Default)]
pub struct SubtaskReasons(BTreeMap<usize, Vec<String>>);

impl SubtaskReasons {
    /// Reads the tasks that are not visible, each once. `document` is the previewed file. A step
    /// has no lines if its task cannot be read.
    pub async fn read(
        client: &Client,
        args: &PreviewArgs,
        document: Option<&TaskDocument>,
        preview: &PreviewTaskResponse,
    ) -> Self {
        let mut stored: BTreeMap<String, Option<Task>> = BTreeMap::new();
        let mut reasons = BTreeMap::new();
        for (index, step) in preview.steps.iter().enumerate() {
            if !step
                .reasons()
                .any(|it| it == VisibilityReason::SubtaskHidden)
            {
                continue;
            }
            // The steps of a subtask, if they are listed, follow its step.
            let below = preview.steps.get(index + 1);
            let below = below.filter(|below| below.via.len() > step.via.len());
            let guid = below.map(|below| below.task.clone()).unwrap_or_default();
            if let Some(task) = document.and_then(|it| managed_task(it, &guid, step)) {
                reasons.insert(index, lines(task, args));
                continue;
            }
            let guid = match guid.is_empty() {
                true => subtask_id(client, document, &step.guid).await,
                false => Some(guid),
            };
            let Some(guid) = guid else { continue };
            if !stored.contains_key(&guid) {
                let task = guides::get_task(client, &guid).await;
                stored.insert(guid.clone(), task.ok());
            }
            if let Some(Some(task)) = stored.get(&guid) {
                reasons.insert(index, lines(task, args));
            }
        }
        Self(reasons)
    }

    /// The lines of a step.
    pub fn of(&self, index: usize) -> &[String] {
        self.0.get(&index).map_or(&[], Vec::as_slice)
    }
}

/// The task of a document that an answer manages: the one with this id, or else the one whose
/// name is the title of the step.
fn managed_task<'a>(
    document: &'a TaskDocument,
    guid: &str,
    step: &PreviewedStep,
) -> Option<&'a Task> {
    let managed = || document.steps.iter().flat_map(managed_documents);
    let is_meant = |task: &&Task, name: &str| match guid.is_empty() && task.guid.is_empty() {
        true => step.title.as_ref().is_some_and(|title| title.text == name),
        false => task.guid == guid,
    };
    let found = managed().find_map(|(value, inner)| {
        let task = inner.task.as_ref();
        task.filter(|task| is_meant(task, &value.value))
    });
    found.or_else(|| managed().find_map(|(_, inner)| managed_task(inner, guid, step)))
}

/// The id of the task of a subtask step; `None` if it is not known. The document is searched
/// first, as a step of it may not be stored.
async fn subtask_id(
    client: &Client,
    document: Option<&TaskDocument>,
    guid: &str,
) -> Option<String> {
    if guid.is_empty() {
        return None;
    }
    let in_document = document.and_then(|document| step_with_id(document, guid));
    if let Some(step) = in_document
        && !step.subtask_id.is_empty()
    {
        return Some(step.subtask_id.clone());
    }
    let message = GetStepRequest {
        guid: guid.to_owned(),
    };
    let answer = client.call(message).await.ok()?;
    Some(answer.step?.subtask_id)
}

/// The step with this id, of the task of a document or of one that it manages.
fn step_with_id<'a>(document: &'a TaskDocument, guid: &str) -> Option<&'a Step> {
    let managed = all_managed(&document.steps).into_iter();
    let below = managed.flat_map(|(_, inner)| &inner.steps);
    let mut steps = document.steps.iter().chain(below);
    steps.find(|step| step.guid.eq_ignore_ascii_case(guid))
}

fn lines(task: &Task, args: &PreviewArgs) -> Vec<String> {
    let mut lines = Vec::new();
    if task
        .published
        .is_some_and(|published| published != PUBLISHED)
        && !args.include_unpublished
    {
        lines.push("its task is not published".to_owned());
    }
    // A document without roles makes a task for every level.
    if let Some(level) = args.level
        && !task.roles.is_empty()
        && !task.roles().any(|role| role == level)
    {
        lines.push(format!(
            "its task is {}, not for {}",
            wording::levels(task),
            wording::level(level)
        ));
    }
    lines
}
