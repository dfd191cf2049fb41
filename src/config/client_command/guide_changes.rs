//! The commands that change stored guides, or say what would be changed.

use std::{env, path::PathBuf};

use clap::{Args, ValueHint};

use super::{GuideRef, TaskRef, guide_ref};
use crate::{
    config::{GuideArg, analysis_command::guide, value},
    proto::v1::AbsentSteps,
};

/// The editor where neither a flag nor the environment names one.
const DEFAULT_EDITOR: &str = "vi";

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct DeleteArgs {
    /// The guids of tasks, or names that only one task has
    #[arg(required = true, value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub tasks: Vec<TaskRef>,
    /// Delete without asking; required where there is no terminal to ask on
    #[arg(long)]
    pub force: bool,
    /// Delete the history of the tasks, too, so that they cannot be restored
    #[arg(long)]
    pub purge_history: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct EditArgs {
    /// The guid of the task, or its name if no other task has it
    #[arg(value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub task: TaskRef,
    /// The editor, a command that gets the name of the file [default: $VISUAL, or else $EDITOR, or else vi]
    #[arg(long, value_name = "COMMAND", value_parser = value::text)]
    pub editor: Option<String>,
    /// Leave translations unlocked whose texts the edit changes
    #[arg(long)]
    pub keep_unlocked: bool,
}

impl EditArgs {
    /// The command that edits a file.
    pub fn editor(&self) -> String {
        let named = ["VISUAL", "EDITOR"]
            .into_iter()
            .filter_map(|name| env::var(name).ok());
        let mut commands = self.editor.clone().into_iter().chain(named);
        commands
            .find(|command| !command.trim().is_empty())
            .unwrap_or_else(|| DEFAULT_EDITOR.to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct DiffArgs {
    /// The document, - for standard input; or a revision of a stored guide, by its guid or name
    #[arg(
        value_name = "FILE|GUIDE@REVISION",
        value_hint = ValueHint::FilePath,
        value_parser = guide
    )]
    pub base: GuideArg,
    /// What the revision is compared with: the guide, or another revision of it [default: the guide as it is now]
    #[arg(value_name = "GUIDE[@REVISION]", value_parser = guide_ref)]
    pub target: Option<GuideRef>,
    /// What would become of steps that the task has and the document leaves out [default: the document would be refused]
    #[arg(long, ignore_case = true)]
    pub absent_steps: Option<AbsentSteps>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ApplyArgs {
    /// Documents, and directories of them: every .json file in it and below it
    #[arg(required = true, value_name = "DIR|FILE")]
    pub paths: Vec<PathBuf>,
    /// Show what would be done, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Overwrite guides that have changed by other means since they were last applied
    #[arg(long, conflicts_with = "merge")]
    pub overwrite: bool,
    /// Merge what has changed by other means since a guide was last applied with its document
    #[arg(long)]
    pub merge: bool,
    /// Delete standard tasks that no document describes; lists them first
    #[arg(long)]
    pub prune: bool,
    /// With --prune: delete without asking; required where there is no terminal to ask on
    #[arg(long, requires = "prune")]
    pub force: bool,
    /// Leave translations unlocked whose texts the documents change
    #[arg(long)]
    pub keep_unlocked: bool,
    /// Print changes, failures and counts only
    #[arg(short, long)]
    pub quiet: bool,
}
