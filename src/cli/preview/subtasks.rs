//! Why the task of a subtask step is not visible. A response says that it is not, and why its
//! conditions do not hold; its level and whether it is published are read here.

use std::collections::BTreeMap;

use super::CliError;
use crate::{
    cli::{plan::managed_documents, tasks, wording},
    client::Client,
    config::PreviewArgs,
    proto::v1::{
        GetStepRequest, PreviewTaskResponse, PreviewedStep, Task, TaskDocument, VisibilityReason,
    },
};

/// Lines for subtask steps, by the index of the step in the response.
#[derive(Default)]
pub struct SubtaskReasons(BTreeMap<usize, Vec<String>>);

impl SubtaskReasons {
    /// Reads the tasks that are not visible, each once. `document` is the previewed file.
    pub async fn read(
        client: &Client,
        args: &PreviewArgs,
        document: Option<&TaskDocument>,
        preview: &PreviewTaskResponse,
    ) -> Result<Self, CliError> {
        let mut stored: BTreeMap<String, Task> = BTreeMap::new();
        let mut reasons = BTreeMap::new();
        for (index, step) in preview.steps.iter().enumerate() {
            if !step
                .reasons()
                .any(|it| it == VisibilityReason::SubtaskHidden)
            {
                continue;
            }
            let below = preview.steps.get(index + 1);
            let below = below.filter(|below| below.via.len() > step.via.len());
            let guid = below.map(|below| below.task.clone()).unwrap_or_default();
            if let Some(task) = document.and_then(|it| managed_task(it, &guid, step)) {
                reasons.insert(index, lines(task, args));
                continue;
            }
            let guid = match guid.is_empty() {
                true if step.guid.is_empty() => continue,
                true => subtask_id(client, &step.guid).await?,
                false => guid,
            };
            if !stored.contains_key(&guid) {
                stored.insert(guid.clone(), tasks::get(client, guid.clone()).await?);
            }
            let lines = stored.get(&guid).map(|task| lines(task, args));
            reasons.insert(index, lines.unwrap_or_default());
        }
        Ok(Self(reasons))
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

async fn subtask_id(client: &Client, guid: &str) -> Result<String, CliError> {
    let message = GetStepRequest {
        guid: guid.to_owned(),
    };
    let answer = client
        .call_steps(message, |mut steps, request| async move {
            steps.get_step(request).await
        })
        .await?;
    Ok(answer.step.unwrap_or_default().subtask_id)
}

fn lines(task: &Task, args: &PreviewArgs) -> Vec<String> {
    let mut lines = Vec::new();
    if task.published.is_some_and(|published| published != 1) && !args.include_unpublished {
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
