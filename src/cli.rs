//! The subcommands, and what they print for people and scripts.
//!
//! Results go to standard output, everything else to standard error.

mod document;
mod export;
mod guide;
mod health;
mod import;
mod layout;
mod lint;
mod list;
mod manual;
mod out;
mod preview;
mod references;
mod show;
mod translate;
mod wording;

use std::{io, process::ExitCode};

pub use self::{
    document::DocumentError,
    health::health,
    lint::lint,
    manual::{completions, man},
    out::print,
    translate::translate,
};
pub use crate::terminal::print_error;
use crate::{
    client::{CallError, Client, ConnectError},
    config::{ClientCommand, ClientCommandConfig},
    domain::caller::Scope,
};

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
    /// The answer cannot be written.
    #[error("cannot write {place}: {reason}")]
    Write {
        /// The file or stream.
        place: String,
        /// The error of the system.
        reason: io::Error,
    },
    /// The server is not SERVING.
    #[error("{0}")]
    NotServing(String),
}

/// Sends a command to a server.
pub async fn run(config: &ClientCommandConfig) -> Result<ExitCode, CliError> {
    let ClientCommandConfig {
        connection,
        format,
        command,
    } = config;
    let scope = match command {
        ClientCommand::Import(_) => Scope::Write,
        ClientCommand::Export(_)
        | ClientCommand::Show(_)
        | ClientCommand::List(_)
        | ClientCommand::Preview(_)
        | ClientCommand::References(_) => Scope::Read,
    };
    let client = Client::connect(connection, scope).await?;
    match command {
        ClientCommand::Import(import) => return import::import(&client, import, *format).await,
        ClientCommand::Export(export) => export::export(&client, export, *format).await?,
        ClientCommand::Show(show) => show::show(&client, show, *format).await?,
        ClientCommand::List(filters) => list::list(&client, filters, *format).await?,
        ClientCommand::Preview(preview) => preview::preview(&client, preview, *format).await?,
        ClientCommand::References(references) => {
            references::references(&client, references, *format).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
