//! `expertise history`, `expertise keep` and `expertise alias`.

use clap::{ArgGroup, Args};
use serde_json::json;
use uuid::Uuid;

use super::{
    CliError, Format, document,
    guides::{self, revision_text},
    out::{self, print_list},
    wording,
};
use crate::{
    client::Client,
    config::{TaskRef, value},
    domain::history::{RevisionAlias, RevisionName},
    proto::v1::{CreateRevisionRequest, DeletedTask, SetRevisionAliasRequest, TaskRevision},
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("listed").required(true).args(["task", "deleted"]))]
pub struct HistoryArgs {
    /// The guid or unique name of a task, which may be deleted
    pub task: Option<TaskRef>,
    /// List the deleted guides that can be restored
    #[arg(long)]
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct KeepArgs {
    /// The guid or unique name of a task
    pub task: TaskRef,
    /// A note about the revision, of at most 1,000 characters
    #[arg(long, value_name = "TEXT", value_parser = value::text)]
    pub note: Option<String>,
    /// An alias for the revision; an alias of another revision of the guide moves
    #[arg(long, value_name = "NAME", value_parser = alias_name)]
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AliasArgs {
    /// The guid or unique name of a task, which may be deleted
    pub task: TaskRef,
    /// The alias
    #[arg(value_name = "ALIAS", value_parser = alias_name)]
    pub alias: String,
    /// The revision to name, by number or another alias [default: show the revision that the alias names]
    #[arg(value_name = "REVISION", value_parser = revision_name, conflicts_with = "remove")]
    pub revision: Option<String>,
    /// Remove the alias
    #[arg(long)]
    pub remove: bool,
}

fn alias_name(text: &str) -> Result<String, &'static str> {
    match RevisionAlias::parse(text) {
        Some(alias) => Ok(alias.as_str().to_owned()),
        None => Err("1 to 64 characters of a-z 0-9 . _ -, the first a letter"),
    }
}

fn revision_name(text: &str) -> Result<String, &'static str> {
    match RevisionName::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("the number of a revision or an alias, such as 3 or live"),
    }
}

pub(super) async fn history(
    client: &Client,
    args: &HistoryArgs,
    format: Format,
) -> Result<(), CliError> {
    let Some(task) = &args.task else {
        let tasks = guides::list_deleted(client).await?;
        if tasks.is_empty() && format == Format::Text {
            out::print_error("this account has no deleted guides that can be restored");
        }
        let columns = ["GUID", "REVISION", "DELETED", "BY", "NAME"];
        return print_list(format, "DeletedTask", &tasks, columns, deleted_row);
    };
    let task = guides::find_with_history(client, task).await?.to_string();
    let revisions = guides::list_revisions(client, &task).await?;
    if revisions.is_empty() && format == Format::Text {
        let keep = client.command(&format!("keep {task}"));
        out::print_error(&format!(
            "task {task} has no revision: `{keep}` creates one"
        ));
    }
    let columns = ["REVISION", "CREATED", "CAUSE", "BY", "ALIASES", "NOTE"];
    print_list(format, "TaskRevision", &revisions, columns, revision_row)
}

fn revision_row(revision: &TaskRevision) -> [String; 6] {
    [
        revision.revision.to_string(),
        wording::time(revision.created_ts),
        wording::name(revision.cause().as_str_name(), "REVISION_CAUSE_"),
        revision.subject.clone(),
        revision.aliases.join(", "),
        revision.note.clone(),
    ]
}

fn deleted_row(deleted: &DeletedTask) -> [String; 5] {
    let latest = deleted.latest.clone().unwrap_or_default();
    [
        latest.task,
        latest.revision.to_string(),
        wording::time(deleted.deleted_ts),
        deleted.subject.clone(),
        latest.task_name,
    ]
}

pub(super) async fn keep(client: &Client, args: &KeepArgs, format: Format) -> Result<(), CliError> {
    let KeepArgs { task, note, alias } = args;
    let message = CreateRevisionRequest {
        task: guides::find(client, task).await?.to_string(),
        note: note.clone().unwrap_or_default(),
        alias: alias.clone().unwrap_or_default(),
        guide_etag: String::new(),
        request_id: Uuid::now_v7().to_string(),
    };
    let answer = client.call(message).await?;
    if format == Format::Json {
        return out::print_json(&document::json("CreateRevisionResponse", &answer));
    }
    let revision = answer.revision.unwrap_or_default();
    let described = revision_text(&revision);
    out::print(&match note {
        _ if !answer.unchanged => format!("kept {described}\n"),
        Some(note) if *note != revision.note => format!(
            "nothing has changed since {described}; the note {note:?} was not stored, because the \
             revision keeps its first note\n"
        ),
        _ => format!("nothing has changed since {described}\n"),
    })
}

/// Sets, shows or removes an alias of a revision.
pub(super) async fn alias(
    client: &Client,
    args: &AliasArgs,
    format: Format,
) -> Result<(), CliError> {
    let AliasArgs {
        task,
        alias,
        revision,
        remove,
    } = args;
    let task = guides::find_with_history(client, task).await?.to_string();
    let former = match revision {
        Some(_) => None,
        None => guides::find_revision(client, &task, alias).await?,
    };
    let named = match revision.is_some() || *remove {
        false => former.clone(),
        true => {
            let message = SetRevisionAliasRequest {
                task: task.clone(),
                alias: alias.clone(),
                revision: revision.clone().unwrap_or_default(),
            };
            client.call(message).await?.revision
        }
    };
    if format == Format::Json {
        let named = named.map(|it| document::json("TaskRevision", &it));
        return out::print_json(&json!({"revision": named}));
    }
    let is_missing = named.is_none() && !remove;
    let text = match (named, former) {
        (Some(revision), _) => format!("is {}", revision_text(&revision)),
        (None, Some(former)) => format!("no longer names {}", revision_text(&former)),
        (None, None) => format!("names no revision of {task}"),
    };
    let text = format!("{alias} {text}");
    match is_missing {
        true => Err(CliError::Failed(text)),
        false => out::print(&(text + "\n")),
    }
}
