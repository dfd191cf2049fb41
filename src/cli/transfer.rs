//! Whole guides that come from a server or a file, or go to a server.

use std::{
    io::{self, Read},
    path::Path,
};

use uuid::Uuid;

use super::CliError;
use crate::{
    client::{CallError, Client},
    config::DEFAULT_MAX_MESSAGE_BYTES,
    files,
    proto::v1::{
        AbsentFields, AbsentSteps, ExportTaskRequest, ImportTaskRequest, ImportTaskResponse,
        TaskDocument,
    },
};

/// The largest document that is read: what a server takes by default.
const MAX_DOCUMENT_BYTES: u64 = DEFAULT_MAX_MESSAGE_BYTES as u64;

/// A guide as it was read.
pub(super) struct StoredGuide {
    pub document: TaskDocument,
    /// A write that is sent with it fails if the guide has changed since.
    pub guide_etag: String,
}

/// Exports a task.
pub(super) async fn export(client: &Client, guid: &str) -> Result<TaskDocument, CallError> {
    Ok(export_with_etag(client, guid).await?.document)
}

/// Exports a task that is written back.
pub(super) async fn export_with_etag(
    client: &Client,
    guid: &str,
) -> Result<StoredGuide, CallError> {
    let message = ExportTaskRequest {
        guid: guid.to_owned(),
    };
    let answer = client.call(message).await?;
    Ok(StoredGuide {
        document: answer.document.unwrap_or_default(),
        guide_etag: answer.guide_etag,
    })
}

/// Sends an import.
pub(super) async fn import(
    client: &Client,
    message: ImportTaskRequest,
) -> Result<ImportTaskResponse, CallError> {
    client.call(message).await
}

/// What `expertise apply` does with a document of a task that the account does not have.
pub(super) struct ApplyAdvice {
    /// The command without the program's name, such as `apply DIR`.
    pub command: &'static str,
    /// What it does, such as `finds the task by its external id or its name`.
    pub effect: &'static str,
}

/// Explains TASK_NOT_FOUND for a document whose task the account does not have.
pub(super) fn with_advice(
    client: &Client,
    error: CallError,
    guid: &str,
    apply: &ApplyAdvice,
) -> CallError {
    let guid = guid.to_ascii_lowercase();
    // An error about the task of a subtask step stays as it is.
    if guid.is_empty() || error.reason != "TASK_NOT_FOUND" || !error.message.contains(&guid) {
        return error;
    }
    let ApplyAdvice { command, effect } = *apply;
    let (import, apply) = (client.command("import --as-new"), client.command(command));
    CallError {
        message: format!(
            "the document is of task {guid}, which this account does not have: `{import}` creates a \
             task from it, `{apply}` {effect}"
        ),
        ..error
    }
}

/// Takes the id out of a document, so that an import creates a task. Its steps still name the id, as
/// some may refer to their own task.
pub(super) fn clear_guid(document: &mut TaskDocument) {
    if let Some(task) = &mut document.task {
        let guid = std::mem::take(&mut task.guid);
        for step in document
            .steps
            .iter_mut()
            .filter(|step| step.task.is_empty())
        {
            step.task.clone_from(&guid);
        }
    }
}

/// Sends a dry run of an import.
pub(super) async fn dry_run(
    client: &Client,
    message: ImportTaskRequest,
) -> Result<ImportTaskResponse, CallError> {
    let message = ImportTaskRequest {
        validate_only: true,
        // The response of an import that was done under it would have no document.
        request_id: String::new(),
        ..message
    };
    import(client, message).await
}

/// An import that makes the guide exactly the document. With an etag, the guide must
/// not have changed since.
pub(super) fn import_of_whole(document: TaskDocument, guide_etag: &str) -> ImportTaskRequest {
    ImportTaskRequest {
        document: Some(document),
        absent_steps: i32::from(AbsentSteps::Delete),
        etag: String::new(),
        // With a request id, a retry imports nothing twice.
        request_id: Uuid::now_v7().to_string(),
        validate_only: false,
        absent_fields: i32::from(AbsentFields::Reset),
        guide_etag: guide_etag.to_owned(),
        match_external_ids: false,
        reset_fields: None,
        keep_locked: false,
    }
}

/// The id of a document's task; empty if it has none.
pub(super) fn guid(document: &TaskDocument) -> &str {
    document.task.as_ref().map_or("", |task| task.guid.as_str())
}

/// The name of a document's task.
pub(super) fn name(document: &TaskDocument) -> &str {
    document.task.as_ref().map_or("", |task| task.name.as_str())
}

/// Reads a file, or standard input as `-`. Reads at most `max_bytes` + 1 bytes, so that
/// the caller sees that a file is too large.
pub(super) fn read_file(file: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let input: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(files::open(file)?),
    };
    let mut text = Vec::new();
    input.take(max_bytes + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// Explains what documents are if the file does not exist. Other errors stay as they are.
pub(super) fn in_plain_words(reason: io::Error) -> io::Error {
    match reason.kind() {
        io::ErrorKind::NotFound => io::Error::other(
            "there is no such file: this command takes documents, as `expertise export` writes them",
        ),
        _ => reason,
    }
}

/// Reads the text in a file, and the document that it is.
pub(super) fn read_text_and_document(file: &Path) -> Result<(String, TaskDocument), CliError> {
    let text = read_file(file, MAX_DOCUMENT_BYTES).map_err(|reason| CliError::Read {
        place: file.display().to_string(),
        reason: match reason.kind() {
            io::ErrorKind::IsADirectory => {
                io::Error::other("it is a directory: this command takes files, such as DIR/*.json")
            }
            _ => in_plain_words(reason),
        },
    })?;
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(CliError::Read {
            place: file.display().to_string(),
            reason: io::Error::other(format!("it is larger than {MAX_DOCUMENT_BYTES} bytes")),
        });
    }
    let document = super::document::parse(&text).map_err(|error| CliError::File {
        place: file.display().to_string(),
        error,
    })?;
    // A document is UTF-8, or it could not be read.
    Ok((String::from_utf8_lossy(&text).into_owned(), document))
}
