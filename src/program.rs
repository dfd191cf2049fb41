//! The program: a command line in, an exit code out.
//!
//! All of it is in the library. A future is compiled in the crate that waits for it, so the binary
//! would otherwise compile most commands and the server a second time.

use std::{
    fmt::Display,
    io::{self, IsTerminal},
    process::ExitCode,
};

use anyhow::Context;
use rustix::process::Signal;
use tokio::{
    runtime::Runtime,
    signal::unix::{self, SignalKind},
};

use crate::{
    auth::{self, KeyError},
    cli::{self, CliError, Command, Format},
    config::{
        AuthMode, Config, ConfigError, DatabaseCommandConfig, DatabaseConfig, DatabaseUrl,
        ServerSettings, TableLayout,
    },
    domain::ids::AccountId,
    server::{self, Server, StartError},
    store::{self, OpenError, SchemaChange, WholeDatabaseError},
    telemetry, version,
};

/// Exit code when nothing was started because settings are wrong.
const WRONG_SETTINGS: u8 = 2;

/// Runs the command of this process.
pub fn run() -> ExitCode {
    let command = Command::from_process(version::text()).map_err(anyhow::Error::from);
    let error = match command.and_then(run_command) {
        Ok(code) => return code,
        Err(error) => error,
    };
    match error.downcast::<ConfigError>() {
        Ok(ConfigError::Usage(error)) => error.exit(),
        Ok(ConfigError::Settings(faults)) => wrong_settings(faults),
        Err(error) => {
            cli::print_message(format!("{error:#}"));
            if is_wrong_setting(&error) {
                ExitCode::from(WRONG_SETTINGS)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn wrong_settings(wrong: impl IntoIterator<Item = impl Display>) -> ExitCode {
    wrong.into_iter().for_each(cli::print_message);
    ExitCode::from(WRONG_SETTINGS)
}

/// Whether a setting must change, for example because it names a file with the wrong content.
fn is_wrong_setting(error: &anyhow::Error) -> bool {
    let is_wrong = [
        error.downcast_ref().map(StartError::is_wrong_setting),
        error.downcast_ref().map(OpenError::is_wrong_setting),
        error.downcast_ref().map(CliError::is_wrong_setting),
        error
            .downcast_ref()
            .map(WholeDatabaseError::is_wrong_setting),
        error.downcast_ref().map(KeyError::is_wrong_setting),
    ];
    is_wrong.contains(&Some(true))
}

fn run_command(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(settings) => wait(serve(server_config(*settings)?))?,
        Command::Migrate {
            distribute,
            settings,
        } => {
            let layout = if distribute {
                TableLayout::Distributed
            } else {
                TableLayout::Plain
            };
            wait(migrate(&database_config(*settings)?, layout))?;
        }
        Command::Accounts {
            id,
            force,
            output,
            settings,
            ..
        } => {
            let DatabaseConfig { url, .. } = database_config(*settings)?;
            match id {
                Some(id) => return wait(delete_account(&url, &id, force, output.format)),
                None => cli::print_accounts(&wait(store::accounts(&url))?, output.format)?,
            }
        }
        Command::Copy { from, settings } => {
            let DatabaseConfig { url, migrate, .. } = database_config(*settings)?;
            if matches!(url, DatabaseUrl::SqliteMemory) {
                let reason = "--database-url names a database in memory, which is lost when this \
                    command ends: copy to a file or to PostgreSQL";
                return Err(CliError::Argument(reason.to_owned()).into());
            }
            let copy = store::copy(&from, &url, migrate);
            let tables = wait(cli::with_spinner("copying", copy))?;
            cli::print_copied(tables.iter().map(|table| (table.name, table.rows)))?;
        }
        Command::Config {
            check: true,
            settings,
            ..
        } => return wait(check(&server_config(*settings)?)),
        Command::Config {
            settings,
            effective,
            ..
        } => {
            settings.check()?;
            cli::print(&effective)?;
        }
        Command::Token { grant, settings } => {
            let signing = settings.check()?;
            cli::print(&format!("{}\n", auth::sign(&signing, &grant)?))?;
        }
        Command::Translate {
            list,
            format,
            settings,
        } => {
            let log = settings.log.clone();
            let config = settings.check()?;
            if !list {
                telemetry::start(&log);
                return wait(cli::translate(&config));
            }
            wait(cli::list_translation_work(&config, format))?;
        }
        Command::Client(command) => {
            let connection = command.connection()?;
            return wait(cli::run(&command, connection.as_ref()));
        }
        Command::New(args) => cli::new_guide(&args)?,
        Command::Health { output, settings } => {
            let config = settings.check()?;
            wait(cli::health(&config, output.format))?;
        }
        Command::Completions { shell } => {
            cli::completions(cli::command_line(version::text()), shell)?;
        }
        Command::Man { command } => {
            cli::man(cli::command_line(version::text()), command.as_deref())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks the settings of a server, or of a check of a server, and starts the log.
fn server_config(settings: ServerSettings) -> Result<Config, ConfigError> {
    let config = settings.check()?;
    telemetry::start(&config.log);
    Ok(config)
}

/// Checks the settings of a command on the database, and starts the log.
fn database_config(settings: DatabaseCommandConfig) -> Result<DatabaseConfig, ConfigError> {
    let DatabaseCommandConfig { database, log, .. } = settings.check()?;
    telemetry::start(&log);
    Ok(database)
}

/// Runs a future to its end.
fn wait<T, E>(future: impl Future<Output = Result<T, E>>) -> anyhow::Result<T>
where
    anyhow::Error: From<E>,
{
    let runtime = Runtime::new().context("cannot start the runtime")?;
    let outcome = runtime.block_on(future);
    // The shutdown grace period is over, so do not wait for background tasks.
    runtime.shutdown_background();
    Ok(outcome?)
}

/// Prints what a server would do to the schema, or each reason why it would not start.
async fn check(config: &Config) -> anyhow::Result<ExitCode> {
    let change = match server::check(config).await {
        Ok(change) => change,
        Err(errors) => return Ok(wrong_settings(errors)),
    };
    let schema = match change {
        SchemaChange::Created => "creates the schema",
        SchemaChange::Migrated => "brings the schema up to date",
        SchemaChange::Current => "finds the schema up to date",
    };
    let (newest, database) = (store::schema(), config.database.url.address());
    cli::print(&format!(
        "`expertise serve` can start: it {schema} ({newest}) in {database}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Brings the schema up to date, or creates it in this layout, and prints what was done.
async fn migrate(database: &DatabaseConfig, layout: TableLayout) -> anyhow::Result<()> {
    let change = store::migrate(&database.url, layout).await?;
    let done = match change {
        SchemaChange::Created => "created the schema",
        SchemaChange::Migrated => "brought the schema up to date",
        SchemaChange::Current => "the schema is up to date",
    };
    let done = match layout {
        TableLayout::Plain => done.to_owned(),
        TableLayout::Distributed => format!("{done}, with distributed tables"),
    };
    let (schema, database) = (store::schema(), database.url.address());
    cli::print(&format!("{done} ({schema}) in {database}\n"))?;
    Ok(())
}

/// Deletes an account, after confirmation unless the options skip it. Fails if it has no rows.
async fn delete_account(
    url: &DatabaseUrl,
    account: &AccountId,
    force: bool,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let accounts = store::accounts(url).await?;
    let found = accounts.iter().find(|it| it.account == account.as_str());
    let rows = match found {
        Some(found) if !force && !cli::agrees_to_delete_account(found)? => {
            return Ok(ExitCode::FAILURE);
        }
        Some(_) => store::delete_account(url, account).await?,
        None => {
            let database = url.address();
            cli::print_message(format!("{database} has no data of account {account}"));
            return Ok(ExitCode::FAILURE);
        }
    };
    cli::print_deleted_account(account.as_str(), rows, format)?;
    Ok(ExitCode::SUCCESS)
}

/// Serves until SIGTERM or SIGINT.
async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = listen_for(SignalKind::terminate(), "SIGTERM")?;
    let mut interrupt = listen_for(SignalKind::interrupt(), "SIGINT")?;
    // Without a listener the signal kills the process when SQLite reaches the limit for
    // file sizes. With one, the write fails as it does on a full disk.
    let _limit = listen_for(SignalKind::from_raw(Signal::XFSZ.as_raw()), "SIGXFSZ")?;
    let mut stop = Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    });
    let plain = config.auth == AuthMode::Header && config.tls.is_none();
    let explains_first_call = io::stdout().is_terminal() && config.reflection && plain;
    let server = tokio::select! {
        server = Server::bind(config) => server?,
        () = &mut stop => return Ok(()),
    };
    let mut start_message = format!("{}\n", server.start_line());
    if explains_first_call {
        start_message.push_str(&server.first_call());
    }
    // A closed standard output does not stop the server.
    let started = || drop(cli::print(&start_message));
    server.serve(started, stop).await?;
    Ok(())
}

fn listen_for(kind: SignalKind, name: &str) -> anyhow::Result<unix::Signal> {
    unix::signal(kind).with_context(|| format!("cannot listen for {name}"))
}
