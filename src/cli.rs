//! The subcommands: each reads its arguments, calls a server, and prints.
//!
//! Results go to standard output, everything else to standard error.

mod accounts;
mod apply;
mod automatic;
mod change_feed;
mod changes;
mod command_line;
mod confirm;
mod delete;
mod diff;
mod document;
mod edit;
mod enum_arguments;
mod examples;
mod export;
mod file_records;
mod findings;
mod graph;
mod guide_file;
mod guide_ref;
mod guides;
mod health;
mod history;
mod import;
mod imported;
mod layout;
mod lint;
mod list;
mod manual;
mod merge;
mod new;
mod out;
mod pairing;
mod place;
mod preview;
mod references;
mod restore;
mod show;
mod signals;
mod translate;
mod wording;

use std::{io, process::ExitCode};

pub use self::{
    accounts::{agrees_to_delete_account, print_accounts, print_copied, print_deleted_account},
    command_line::{ClientCommand, ClientCommandConfig, Command, command_line},
    health::health,
    manual::{completions, man},
    new::new_guide,
    out::{Format, print},
    translate::{list_translation_work, translate},
};
pub use crate::terminal::{print_message, with_spinner};
use crate::{
    client::{CallError, Client, ConnectError},
    config::ConnectionConfig,
    domain::{caller::Scope, page::PageSize},
};

/// The maximum page size of the API.
const PAGE_SIZE: i32 = PageSize::MAX.cast_signed();

/// Why a command failed. The text is one line that says what to do, and one additional line per
/// violation of a request.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Service(#[from] ConnectError),
    #[error(transparent)]
    Refused(#[from] CallError),
    #[error("{0}")]
    Argument(String),
    #[error("{0}")]
    NoSuchTask(String),
    #[error("{0}")]
    Failed(String),
}

impl CliError {
    /// Whether the command needs another setting or argument to succeed.
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Service(error) => error.is_wrong_setting(),
            Self::Argument(_) => true,
            Self::Refused(_) | Self::NoSuchTask(_) | Self::Failed(_) => false,
        }
    }

    fn cannot_write(place: &str, reason: io::Error) -> Self {
        Self::Failed(format!("cannot write {place}: {reason}"))
    }

    fn cannot_listen(reason: io::Error) -> Self {
        Self::Failed(format!("cannot listen for signals: {reason}"))
    }

    /// The guide has changed since it was read.
    fn changed_since(guid: &str) -> Self {
        Self::Failed(format!(
            "task {guid} has changed since it was read: start again from its current state"
        ))
    }
}

/// Runs a command on guides, which calls a server if it has a connection.
pub async fn run(
    config: &ClientCommandConfig,
    connection: Option<&ConnectionConfig>,
) -> Result<ExitCode, CliError> {
    match (run_command(config, connection).await, &config.command) {
        // The other exit codes of `diff` say whether there are differences.
        (Err(error), ClientCommand::Diff(_)) => {
            print_message(error);
            Ok(ExitCode::from(diff::EXIT_FAILED))
        }
        (outcome, _) => outcome,
    }
}

async fn run_command(
    config: &ClientCommandConfig,
    connection: Option<&ConnectionConfig>,
) -> Result<ExitCode, CliError> {
    let (command, format) = (&config.command, config.format);
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
    let server = || client.as_ref().ok_or_else(lint::needs_server);
    match command {
        ClientCommand::Lint(args) => return lint::lint(client.as_ref(), args, format).await,
        ClientCommand::Graph(args) => graph::graph(client.as_ref(), args).await?,
        ClientCommand::Import(args) => return import::import(server()?, args, format).await,
        ClientCommand::Edit(args) => return edit::edit(server()?, args, format).await,
        ClientCommand::Diff(args) => return diff::diff(server()?, args, format).await,
        ClientCommand::Apply(args) => return apply::apply(server()?, args, format).await,
        ClientCommand::Delete(args) => return delete::delete(server()?, args, format).await,
        ClientCommand::Export(args) => return export::export(server()?, args, format).await,
        ClientCommand::Restore(args) => return restore::restore(server()?, args, format).await,
        ClientCommand::Show(args) => show::show(server()?, args, format).await?,
        ClientCommand::List(filters) => list::list(server()?, filters, format).await?,
        ClientCommand::Preview(args) => preview::preview(server()?, args, format).await?,
        ClientCommand::References(args) => references::references(server()?, args, format).await?,
        ClientCommand::History(args) => history::history(server()?, args, format).await?,
        ClientCommand::Keep(args) => history::keep(server()?, args, format).await?,
        ClientCommand::Alias(args) => history::alias(server()?, args, format).await?,
        ClientCommand::Changes(args) => change_feed::changes(server()?, args, format).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The scopes that a command needs.
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
        // An existing file is compared by a dry run of its import.
        ClientCommand::Export(args) if args.out.is_some() => &[Scope::Read, Scope::Write],
        _ => &[Scope::Read],
    }
}
