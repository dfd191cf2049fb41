//! `expertise keep` and `expertise alias`: revisions that somebody asks for, and their names.

use uuid::Uuid;

use super::{CliError, document, out, revisions, tasks};
use crate::{
    client::Client,
    config::{AliasArgs, Format, KeepArgs},
    proto::v1::{CreateRevisionRequest, GetRevisionRequest, SetRevisionAliasRequest, TaskRevision},
};

/// Keeps a guide as it is now.
pub(super) async fn keep(client: &Client, args: &KeepArgs, format: Format) -> Result<(), CliError> {
    let KeepArgs { task, note, alias } = args;
    let message = CreateRevisionRequest {
        task: tasks::find(client, task).await?.to_string(),
        note: note.clone().unwrap_or_default(),
        alias: alias.clone().unwrap_or_default(),
        guide_etag: String::new(),
        request_id: Uuid::now_v7().to_string(),
    };
    let answer = client.call(message).await?;
    if format == Format::Json {
        return out::print_json(&document::json("CreateRevisionResponse", &answer)?);
    }
    let revision = answer.revision.unwrap_or_default();
    let described = revisions::description(&revision);
    out::print(&match note {
        _ if !answer.unchanged => format!("kept {described}\n"),
        Some(note) if *note != revision.note => format!(
            "nothing has changed since {described}; the note {note:?} is not stored, as a revision \
             keeps the note that it was requested with\n"
        ),
        _ => format!("nothing has changed since {described}\n"),
    })
}

/// Has an alias name a revision, or removes it.
pub(super) async fn alias(
    client: &Client,
    args: &AliasArgs,
    format: Format,
) -> Result<(), CliError> {
    let AliasArgs {
        task,
        alias,
        revision,
    } = args;
    let task = tasks::find_with_history(client, task).await?;
    let former = match revision {
        None => named(client, task.to_string(), alias).await,
        Some(_) => None,
    };
    let message = SetRevisionAliasRequest {
        task: task.to_string(),
        alias: alias.clone(),
        revision: revision.clone().unwrap_or_default(),
    };
    let answer = client.call(message).await?;
    if format == Format::Json {
        return out::print_json(&document::json("SetRevisionAliasResponse", &answer)?);
    }
    out::print(&match answer.revision {
        Some(revision) => format!("{alias} is {}\n", revisions::description(&revision)),
        None => match former {
            Some(former) => format!(
                "{alias} no longer names {}\n",
                revisions::description(&former)
            ),
            None => format!("{alias} names no revision of {task}\n"),
        },
    })
}

/// The revision that an alias names, if that is known.
async fn named(client: &Client, task: String, alias: &str) -> Option<TaskRevision> {
    let message = GetRevisionRequest {
        task,
        revision: alias.to_owned(),
        without_document: true,
    };
    client.call(message).await.ok()?.revision
}
