//! `expertise changes`.

use std::{collections::HashMap, future::pending, mem, time::Duration};

use clap::Args;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use super::{CliError, Format, PAGE_SIZE, document, guides, out, wording};
use crate::{
    client::Client,
    config::{TaskRef, value},
    proto::v1::{Change, ChangeKind, ChangeStart, ListChangesRequest, ListChangesResponse},
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ChangesArgs {
    /// Only list changes to this task and its steps, by guid or unique name; the task may be
    /// deleted
    pub task: Option<TaskRef>,
    /// Wait for further changes until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Start after this cursor, or with the oldest change that is kept
    #[arg(long, value_name = "CURSOR|oldest", default_value = OLDEST, value_parser = value::text)]
    pub since: String,
}

/// Means the oldest change that is kept.
const OLDEST: &str = "oldest";
/// How long the server waits for changes. Some proxies end calls that are silent for a minute.
const WAIT: prost_types::Duration = prost_types::Duration {
    seconds: 30,
    nanos: 0,
};
/// How long a list waits once for changes that are still being put in order.
const ORDER_WAIT: prost_types::Duration = prost_types::Duration {
    seconds: 2,
    nanos: 0,
};
/// The pause after all retries of a call have failed.
const RETRY_PAUSE: Duration = Duration::from_secs(3);

pub(super) async fn changes(
    client: &Client,
    args: &ChangesArgs,
    format: Format,
) -> Result<(), CliError> {
    let ChangesArgs {
        task,
        follow,
        since,
    } = args;
    let task = match task {
        Some(task) => guides::find_with_history(client, task).await?.to_string(),
        None => String::new(),
    };
    let (cursor, start) = match since.as_str() {
        OLDEST => (String::new(), ChangeStart::Oldest),
        cursor => (cursor.to_owned(), ChangeStart::Unspecified),
    };
    let mut reader = ChangeReader {
        client,
        format,
        request: ListChangesRequest {
            cursor,
            start: start.into(),
            task,
            page_size: PAGE_SIZE,
            wait: None,
        },
        names: HashMap::new(),
        has_read: false,
    };
    let outcome = reader.read(*follow).await;
    if reader.has_read {
        reader.print_how_to_go_on(*follow);
    }
    outcome.map_err(|error| with_advice(client, error))
}

/// Reads the changes after a cursor, which advances as they are printed.
struct ChangeReader<'a> {
    client: &'a Client,
    format: Format,
    request: ListChangesRequest,
    /// The names of the tasks of a page, or their ids if they no longer exist.
    names: HashMap<String, String>,
    /// Whether a page was read and printed.
    has_read: bool,
}

impl ChangeReader<'_> {
    /// Prints the changes. With `follow`, continues until Ctrl-C or until the reader closes the
    /// output.
    async fn read(&mut self, follow: bool) -> Result<(), CliError> {
        let interrupt = || signal(SignalKind::interrupt()).map_err(CliError::cannot_listen);
        // Without `follow`, Ctrl-C ends the process.
        let mut interrupt = follow.then(interrupt).transpose()?;
        let mut interrupted = async || match &mut interrupt {
            Some(interrupt) => interrupt.recv().await,
            None => pending().await,
        };
        self.request.wait = follow.then_some(WAIT);
        let mut is_outage = false;
        loop {
            let before = self.request.cursor.clone();
            let page = tokio::select! {
                _ = interrupted() => return Ok(()),
                () = out::reader_gone() => return Ok(()),
                page = self.next_page() => page,
            };
            match page {
                Ok(page) => {
                    is_outage = false;
                    let is_end = page.caught_up && !follow;
                    if !self.print(page)? || is_end {
                        return Ok(());
                    }
                    let is_stuck = !follow && self.request.cursor == before;
                    if is_stuck && self.request.wait.replace(ORDER_WAIT).is_some() {
                        out::print_error(
                            "some newer changes are not in order yet, and are not listed",
                        );
                        return Ok(());
                    }
                }
                Err(CliError::Refused(error)) if follow && error.transient && self.has_read => {
                    if !mem::replace(&mut is_outage, true) {
                        out::print_message(error);
                    }
                    tokio::select! {
                        _ = interrupted() => return Ok(()),
                        () = sleep(RETRY_PAUSE) => {}
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a page, and looks up the task names that its lines need.
    async fn next_page(&mut self) -> Result<ListChangesResponse, CliError> {
        let request = self.request.clone();
        let page = self.client.call(request).await?;
        match self.format {
            Format::Text => self.look_up_names(&page.changes).await?,
            Format::Json => {}
        }
        Ok(page)
    }

    /// Reads the current names of the tasks of a page.
    async fn look_up_names(&mut self, changes: &[Change]) -> Result<(), CliError> {
        self.names.clear();
        for change in changes {
            if !self.names.contains_key(&change.task) {
                let name = match guides::get_task(self.client, &change.task).await {
                    Ok(task) => task.name,
                    Err(error) if error.reason == "TASK_NOT_FOUND" => change.task.clone(),
                    Err(error) => return Err(error.into()),
                };
                self.names.insert(change.task.clone(), name);
            }
        }
        Ok(())
    }

    /// Prints the changes of a page, and advances the cursor. Returns whether the output still has
    /// a reader.
    fn print(&mut self, page: ListChangesResponse) -> Result<bool, CliError> {
        let mut lines = String::new();
        for change in &page.changes {
            let line = match self.format {
                Format::Text => self.line(change),
                Format::Json => {
                    out::escape_formatting(&document::json("Change", change).to_string())
                }
            };
            lines = lines + &line + "\n";
        }
        let is_read = out::print_to_reader(&lines)?;
        // Changes that nobody has read are listed again.
        if is_read {
            self.request.cursor = page.next_cursor;
            self.request.start = ChangeStart::Unspecified.into();
            self.has_read = true;
        }
        Ok(is_read)
    }

    /// The time, author, change, guide and fields.
    fn line(&self, change: &Change) -> String {
        let Change { task, step, .. } = change;
        let name = self.names.get(task).unwrap_or(task);
        let steps = out::step_count(usize::try_from(change.step_count).unwrap_or_default());
        let what = match change.kind() {
            ChangeKind::TaskCreated => format!("created task {name}, {steps}"),
            ChangeKind::TaskUpdated => format!("updated task {name}"),
            ChangeKind::TaskDeleted => format!("deleted task {name}, {steps}"),
            ChangeKind::StepCreated => format!("created step {step} of {name}"),
            ChangeKind::StepUpdated => format!("updated step {step} of {name}"),
            ChangeKind::StepDeleted => format!("deleted step {step} of {name}"),
            ChangeKind::Unspecified => format!("changed {name}"),
        };
        let fields = match change.fields.as_slice() {
            [] => String::new(),
            fields => format!(": {}", fields.join(", ")),
        };
        let who = match change.subject.as_str() {
            "" => "-",
            subject => subject,
        };
        let time = wording::time(change.changed_ts);
        out::sanitize(&format!("{time}  {who}  {what}{fields}"))
    }

    fn print_how_to_go_on(&self, follow: bool) {
        let ListChangesRequest { task, cursor, .. } = &self.request;
        let task = match task.as_str() {
            "" => String::new(),
            task => format!(" {task}"),
        };
        let follow = if follow { " --follow" } else { "" };
        let arguments = format!("changes{task}{follow} --since {cursor}");
        let command = self.client.command(&arguments);
        out::print_error(&format!("to continue from here: {command}"));
    }
}

/// Here, a refused cursor is a wrong argument.
fn with_advice(client: &Client, error: CliError) -> CliError {
    let refused = match &error {
        CliError::Refused(refused) => refused.reason.as_str(),
        _ => "",
    };
    let problem = match refused {
        "CURSOR_EXPIRED" => {
            "changes after this cursor are no longer kept, or the database was restored to an \
             earlier state"
        }
        "CURSOR_INVALID" => "the value of --since is not a cursor of this account",
        _ => return error,
    };
    let command = client.command("changes --since oldest");
    CliError::Failed(format!(
        "{problem} ({refused}): `{command}` lists what is kept"
    ))
}
