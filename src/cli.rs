//! The subcommands, and what they print for people and scripts.
//!
//! Results go to standard output, everything else to standard error.

mod accounts;
mod apply;
mod change_feed;
mod changes;
mod confirm;
mod delete;
mod diff;
mod directory;
mod document;
mod edit;
mod export;
mod field_line;
mod findings;
mod graph;
mod health;
mod history;
mod ignored_step_fields;
mod import;
mod imported_guide;
mod keep;
mod layout;
mod lint;
mod list;
mod manual;
mod matching;
mod merge;
mod new;
mod out;
mod place;
mod preview;
mod references;
mod restore;
mod revisions;
mod show;
mod tasks;
mod transfer;
mod translate;
mod wording;

use std::{io, process::ExitCode};

pub use self::{
    accounts::{agrees_to_delete_account, print_accounts, print_copied, print_deleted_account},
    document::DocumentError,
    health::health,
    manual::{completions, man},
    new::new_guide,
    out::print,
    translate::{list_translation_work, translate},
};
pub use crate::terminal::print_message;
use crate::translate::TranslateError;
use crate::{
    client::{CallError, Client, ConnectError},
    config::{ClientCommand, ClientCommandConfig},
    domain::{caller::Scope, page::PageSize},
};

/// The largest page that the contract allows.
const PAGE_SIZE: i32 = PageSize::MAX.cast_signed();

/// Why a command failed. Its text is one line that says what to do, and one more line
/// for each violation of a request.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The server cannot be called.
    #[error(transparent)]
    Service(#[from] ConnectError),
    /// The call failed.
    #[error(transparent)]
    Refused(#[from] CallError),
    /// A document cannot be read or written as JSON.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A document cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The output cannot be written.
    #[error("cannot write {place}: {reason}")]
    Write {
        /// The file or stream.
        place: String,
        /// The error of the system.
        reason: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {place}: {reason}")]
    Read {
        /// The file or directory.
        place: String,
        /// The error of the system.
        reason: io::Error,
    },
    /// A file is no document.
    #[error("{place}: {error}")]
    File {
        /// The file.
        place: String,
        /// What is wrong.
        error: DocumentError,
    },
    /// An argument contradicts another.
    #[error("{0}")]
    Argument(String),
    /// A name is that of no task, or of several.
    #[error("{0}")]
    TaskName(String),
    /// The command would ask, and there is nobody to answer.
    #[error("{0}")]
    NoTerminal(&'static str),
    /// The guide is not what was read before.
    #[error("the task {0} has changed since it was read: start again with what it is now")]
    ChangedSince(String),
    /// The editor failed.
    #[error("the editor `{editor}` failed ({failure}): {outcome}")]
    Editor {
        /// Its command.
        editor: String,
        /// How it ended.
        failure: String,
        /// What became of the text.
        outcome: String,
    },
    /// Signals cannot be listened for.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    /// Ctrl-C ended it.
    #[error("interrupted")]
    Interrupted,
    /// The server is not SERVING.
    #[error("{0}")]
    NotServing(String),
    /// The automatic translation ended early.
    #[error(transparent)]
    Translate(#[from] TranslateError),
}

impl CliError {
    /// Whether the command can succeed only with another setting or argument.
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Service(error) => error.is_wrong_setting(),
            Self::Translate(error) => error.is_wrong_setting(),
            // An argument is missing or wrong.
            Self::NoTerminal(_) | Self::Argument(_) => true,
            Self::Refused(_)
            | Self::Document(_)
            | Self::Invalid(_)
            | Self::Write { .. }
            | Self::Read { .. }
            | Self::File { .. }
            | Self::TaskName(_)
            | Self::ChangedSince(_)
            | Self::Editor { .. }
            | Self::Signals(_)
            | Self::Interrupted
            | Self::NotServing(_) => false,
        }
    }
}

/// Runs a command on guides.
pub async fn run(config: &ClientCommandConfig) -> Result<ExitCode, CliError> {
    match (run_command(config).await, &config.command) {
        // The other exit codes of `diff` say whether there are differences.
        (Err(error), ClientCommand::Diff(_)) => {
            print_message(error);
            Ok(ExitCode::from(diff::EXIT_FAILED))
        }
        (outcome, _) => outcome,
    }
}

async fn run_command(config: &ClientCommandConfig) -> Result<ExitCode, CliError> {
    let ClientCommandConfig {
        connection,
        format,
        command,
    } = config;
    let format = *format;
    match command {
        ClientCommand::Apply(args) => apply::check(args)?,
        ClientCommand::Delete(args) => delete::check(args)?,
        ClientCommand::Import(args) => import::check(args)?,
        ClientCommand::Lint(args) => lint::check(args)?,
        ClientCommand::Preview(args) => preview::check(args)?,
        ClientCommand::Restore(args) => restore::check(args)?,
        _ => {}
    }
    let client = match connection {
        Some(connection) => Some(Client::connect(connection, scopes(command)).await?),
        None => None,
    };
    match command {
        ClientCommand::Lint(args) => return lint::lint(client.as_ref(), args, format).await,
        ClientCommand::Graph(args) => {
            graph::graph(client.as_ref(), args).await?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let client = &client.ok_or_else(lint::needs_server)?;
    match command {
        // They are run above.
        ClientCommand::Lint(_) | ClientCommand::Graph(_) => {}
        ClientCommand::Import(args) => return import::import(client, args, format).await,
        ClientCommand::Edit(args) => return edit::edit(client, args, format).await,
        ClientCommand::Diff(args) => return diff::diff(client, args, format).await,
        ClientCommand::Apply(args) => return apply::apply(client, args, format).await,
        ClientCommand::Delete(args) => return delete::delete(client, args, format).await,
        ClientCommand::Export(args) => return export::export(client, args, format).await,
        ClientCommand::Restore(args) => return restore::restore(client, args, format).await,
        ClientCommand::Show(args) => show::show(client, args, format).await?,
        ClientCommand::List(filters) => list::list(client, filters, format).await?,
        ClientCommand::Preview(args) => preview::preview(client, args, format).await?,
        ClientCommand::References(args) => references::references(client, args, format).await?,
        ClientCommand::History(args) => history::history(client, args, format).await?,
        ClientCommand::Keep(args) => keep::keep(client, args, format).await?,
        ClientCommand::Alias(args) => keep::alias(client, args, format).await?,
        ClientCommand::Changes(args) => change_feed::changes(client, args, format).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a command needs to be allowed to do.
fn scopes(command: &ClientCommand) -> &'static [Scope] {
    match command {
        ClientCommand::Import(_)
        | ClientCommand::Edit(_)
        | ClientCommand::Diff(_)
        | ClientCommand::Apply(_)
        | ClientCommand::Delete(_)
        | ClientCommand::Keep(_)
        | ClientCommand::Restore(_)
        | ClientCommand::Alias(_) => &[Scope::Read, Scope::Write],
        ClientCommand::Export(_)
        | ClientCommand::Show(_)
        | ClientCommand::List(_)
        | ClientCommand::Lint(_)
        | ClientCommand::Preview(_)
        | ClientCommand::References(_)
        | ClientCommand::Graph(_)
        | ClientCommand::History(_)
        | ClientCommand::Changes(_) => &[Scope::Read],
    }
}
