//! The subcommands: what each does, and what people and scripts read of it.
//!
//! What is asked for goes to standard output, everything else to standard error.

mod document;
mod export;
mod health;
mod import;
mod list;
mod manual;
mod out;
mod show;
mod translate;

use std::{io, process::ExitCode};

pub use self::{
    document::DocumentFault,
    health::health,
    manual::{completions, man},
    out::{say, write},
    translate::translate,
};
pub use crate::plain::complain;
use crate::{
    client::{Client, Refusal, UnusableService},
    config::{ClientCommand, ClientCommandConfig},
    domain::caller::Scope,
};

/// Why a command failed. A display is one line that says what to do, and one
/// more for each thing that is wrong with a request.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The server cannot be called.
    #[error(transparent)]
    Service(#[from] UnusableService),
    /// The server did not do it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A document cannot be read or written as JSON.
    #[error(transparent)]
    Document(#[from] DocumentFault),
    /// The answer cannot be written.
    #[error("cannot write {place}: {reason}")]
    Write {
        /// Where to.
        place: String,
        /// What the system says.
        reason: io::Error,
    },
    /// The server is not well.
    #[error("{0}")]
    Unwell(String),
}

/// Sends a command to a server.
pub async fn run(config: &ClientCommandConfig) -> Result<ExitCode, CliError> {
    let ClientCommandConfig {
        connection,
        output,
        command,
    } = config;
    let scope = match command {
        ClientCommand::Import(_) => Scope::Write,
        ClientCommand::Export(_) | ClientCommand::Show(_) | ClientCommand::List(_) => Scope::Read,
    };
    let client = Client::reach(connection, scope).await?;
    match command {
        ClientCommand::Import(import) => return import::import(&client, import, *output).await,
        ClientCommand::Export(export) => export::export(&client, export, *output).await?,
        ClientCommand::Show(task) => show::show(&client, *task, *output).await?,
        ClientCommand::List(filters) => list::list(&client, filters, *output).await?,
    }
    Ok(ExitCode::SUCCESS)
}
