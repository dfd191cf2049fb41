//! `expertise export`.

use std::{fs, path::Path};

use serde_json::json;

use super::{CliError, document, out};
use crate::{
    client::Client,
    config::{ExportArgs, Format},
    domain::ids::TaskId,
    proto::v1::{ExportTaskRequest, TaskDocument},
};

/// Writes a guide as a document that can be imported unchanged.
pub(super) async fn export(
    client: &Client,
    ExportArgs { task, out: file }: &ExportArgs,
    format: Format,
) -> Result<(), CliError> {
    let document = export_document(client, *task).await?;
    let text = document::text(&document)?;
    let file = file.as_deref().filter(|file| *file != Path::new("-"));
    let Some(file) = file else {
        return out::print(&text);
    };
    fs::write(file, text).map_err(|reason| CliError::Write {
        place: file.display().to_string(),
        reason,
    })?;
    let name = document.task.map(|task| task.name).unwrap_or_default();
    let steps = document.steps.len();
    let file = file.display().to_string();
    out::print(&match format {
        Format::Text => format!(
            "wrote {file}: {}, {}\n",
            out::sanitize(&name),
            out::step_count(steps)
        ),
        Format::Json => {
            let guid = task.to_string();
            let report = json!({"file": file, "guid": guid, "name": name, "steps": steps});
            out::sanitize_json(&format!("{report}\n"))
        }
    })
}

/// Exports a task.
pub(super) async fn export_document(
    client: &Client,
    task: TaskId,
) -> Result<TaskDocument, CliError> {
    let guid = task.to_string();
    let answer = client
        .call(
            ExportTaskRequest { guid },
            |mut tasks, request| async move { tasks.export_task(request).await },
        )
        .await?;
    Ok(answer.document.unwrap_or_default())
}
