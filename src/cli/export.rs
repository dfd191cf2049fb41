//! `expertise export`.

use std::fs;

use serde_json::json;

use super::{CliError, document, out};
use crate::{
    client::{Client, MESSAGE_MAX},
    config::{ExportArgs, Output},
    domain::ids::TaskId,
    proto::v1::{ExportTaskRequest, TaskDocument, task_service_client::TaskServiceClient},
};

/// Writes a guide as a document that imports as it stands.
pub(super) async fn export(
    client: &Client,
    ExportArgs { task, out: file }: &ExportArgs,
    output: Output,
) -> Result<(), CliError> {
    let document = fetch(client, *task).await?;
    let text = document::text(&document)?;
    let Some(file) = file else {
        return out::write(&text);
    };
    fs::write(file, text).map_err(|reason| CliError::Write {
        place: file.display().to_string(),
        reason,
    })?;
    let name = document.task.map(|task| task.name).unwrap_or_default();
    let steps = document.steps.len();
    let file = file.display().to_string();
    out::write(&match output {
        Output::Text => format!(
            "wrote {file}: {}, {}\n",
            out::plain(&name),
            out::steps(steps)
        ),
        Output::Json => {
            let guid = task.to_string();
            let report = json!({"file": file, "guid": guid, "name": name, "steps": steps});
            out::plain_json(format!("{report}\n"))
        }
    })
}

/// The document of a task.
pub(super) async fn fetch(client: &Client, task: TaskId) -> Result<TaskDocument, CliError> {
    let tasks =
        TaskServiceClient::new(client.channel.clone()).max_decoding_message_size(MESSAGE_MAX);
    let guid = task.to_string();
    let answer = client
        .call(ExportTaskRequest { guid }, |request| {
            let mut tasks = tasks.clone();
            async move { tasks.export_task(request).await }
        })
        .await?;
    Ok(answer.document.unwrap_or_default())
}
