//! The commands for the history of guides and the feed of changes, and how a user names a revision.

use std::fmt;

use clap::{ArgGroup, Args};

use super::TaskRef;
use crate::{
    config::value,
    domain::{history::RevisionName, ids::TaskId},
};

/// A guide as the user of a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideRef {
    /// As it is now.
    Now(TaskRef),
    /// As a revision keeps it.
    Revision(RevisionRef),
}

/// A revision of a guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRef {
    /// The guide, which may be deleted.
    pub task: TaskRef,
    /// Its number or an alias.
    pub revision: String,
}

impl GuideRef {
    /// Whether the guide is named by its id.
    pub fn has_id(&self) -> bool {
        match self {
            Self::Now(task) => matches!(task, TaskRef::Id(_)),
            Self::Revision(revision) => matches!(revision.task, TaskRef::Id(_)),
        }
    }
}

impl fmt::Display for GuideRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(task) => task.fmt(f),
            Self::Revision(RevisionRef { task, revision }) => write!(f, "{task}@{revision}"),
        }
    }
}

/// A guide, or a revision of it behind an `@`.
pub(in crate::config) fn guide_ref(text: &str) -> Result<GuideRef, &'static str> {
    match text.rsplit_once('@') {
        Some((task, revision)) if RevisionName::parse(revision).is_some() => {
            Ok(GuideRef::Revision(RevisionRef {
                task: value::task_ref(task)?,
                revision: revision.to_owned(),
            }))
        }
        Some((task, _)) if TaskId::parse(task).is_some() => {
            Err("a guid with the number or alias of a revision behind the @, such as GUID@3")
        }
        // The name of a task may have an @.
        Some(_) | None => value::task_ref(text).map(GuideRef::Now),
    }
}

fn revision_ref(text: &str) -> Result<RevisionRef, &'static str> {
    match guide_ref(text)? {
        GuideRef::Revision(revision) => Ok(revision),
        GuideRef::Now(_) => Err("a guide and its revision, such as GUID@3 or GUID@live"),
    }
}

fn alias(text: &str) -> Result<String, &'static str> {
    match RevisionName::parse(text) {
        Some(RevisionName::Alias(alias)) => Ok(alias.as_str().to_owned()),
        Some(RevisionName::Number(_)) | None => {
            Err("1 to 64 characters of a-z 0-9 . _ -, the first a letter")
        }
    }
}

fn revision(text: &str) -> Result<String, &'static str> {
    match RevisionName::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("the number of a revision or an alias, such as 3 or live"),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("subject").required(true).args(["task", "deleted"]))]
pub struct HistoryArgs {
    /// The guid of the task, or its name if no other task has it; it may be deleted
    #[arg(value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub task: Option<TaskRef>,
    /// List the deleted guides that can be restored
    #[arg(long)]
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct KeepArgs {
    /// The guid of the task, or its name if no other task has it
    #[arg(value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub task: TaskRef,
    /// A note about the revision, of at most 1,000 characters
    #[arg(long, value_name = "TEXT", value_parser = value::text)]
    pub note: Option<String>,
    /// A name of the revision; one that names another revision of the guide moves
    #[arg(long, value_name = "NAME", value_parser = alias)]
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RestoreArgs {
    /// The guide, by guid or name, and the number or alias of the revision; the guide may be deleted
    #[arg(value_name = "GUIDE@REVISION", value_parser = revision_ref)]
    pub revision: RevisionRef,
    /// Show what would be changed, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Restore without asking; required where there is no terminal to ask on
    #[arg(long)]
    pub force: bool,
    /// Leave out subtask steps that refer to deleted tasks [default: refuse the revision]
    #[arg(long)]
    pub skip_missing_subtasks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AliasArgs {
    /// The guid of the task, or its name if no other task has it; it may be deleted
    #[arg(value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub task: TaskRef,
    /// The alias
    #[arg(value_name = "ALIAS", value_parser = alias)]
    pub alias: String,
    /// The revision that it names from now on: its number or another alias [default: show the one that it names]
    #[arg(value_name = "REVISION", value_parser = revision, conflicts_with = "remove")]
    pub revision: Option<String>,
    /// Remove the alias
    #[arg(long)]
    pub remove: bool,
}

/// Where `changes` starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesStart {
    /// At the oldest change that is kept.
    Oldest,
    /// Behind a cursor.
    After(String),
}

fn changes_start(text: &str) -> Result<ChangesStart, &'static str> {
    match text {
        "" => Err("a cursor that this command printed, or oldest"),
        "oldest" => Ok(ChangesStart::Oldest),
        cursor => Ok(ChangesStart::After(cursor.to_owned())),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ChangesArgs {
    /// Only changes of this task and its steps: its guid, or its name if no other task has it; it may be deleted
    #[arg(value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub task: Option<TaskRef>,
    /// Wait for further changes, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Start behind this cursor, or at the oldest change that is kept
    #[arg(long, value_name = "CURSOR|oldest", default_value = "oldest", value_parser = changes_start)]
    pub since: ChangesStart,
}
