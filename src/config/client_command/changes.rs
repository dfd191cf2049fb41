//! The command that lists and follows the changes of an account.

use clap::Args;

use super::TaskRef;
use crate::config::value;

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

/// Which changes `changes` prints.
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
