//! The guide that a command is about: a stored task, or a document in a file.

use super::{CliError, out::sanitize, tasks};
use crate::{
    client::Client,
    config::{GuideArg, TaskRef},
    domain::ids::TaskId,
};

/// A guide as the command line names it.
pub(super) fn name(guide: &GuideArg) -> String {
    match guide {
        GuideArg::Task(TaskRef::Id(task)) => task.to_string(),
        GuideArg::Task(TaskRef::Name(name)) => name.clone(),
        GuideArg::File(file) => file.display().to_string(),
    }
}

/// Finds the task that an argument names. The argument could also have been a file, so the
/// error says that there is none.
pub(super) async fn find_task(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    let not_found = format!(
        "there is no file {:?}, and no task of this account has this name",
        sanitize(name)
    );
    tasks::find_by_name(client, name, &not_found).await
}
