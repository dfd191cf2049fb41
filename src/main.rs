//! The command line: settings in, exit code out.

use std::{
    fmt::Display,
    io::{self, IsTerminal},
    process::ExitCode,
};

use anyhow::Context;
use expertise::{
    auth::{self, SignError},
    cli::{self, CliError},
    config::{AuthMode, Command, Config, ConfigError, DatabaseConfig, Format, TableLayout},
    domain::ids::AccountId,
    server::{self, Server, StartError},
    store::{self, OpenError, SchemaChange, WholeDatabaseError},
    telemetry, version,
};
use rustix::process::Signal;
use tokio::{
    runtime::Runtime,
    signal::unix::{self, SignalKind},
};

/// Exit code when nothing was started because settings are wrong.
const WRONG_SETTINGS: u8 = 2;

/// Returns memory to the system after large bodies. The system's own allocator still
/// held 400 MB after 64 bodies of 16 MB at once, this one 90.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match Command::from_process(version::text()) {
        Ok(command) => command,
        Err(ConfigError::Usage(error)) => error.exit(),
        Err(ConfigError::Settings(faults)) => return wrong_settings(faults),
    };
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            cli::print_message(format!("{error:#}"));
            match is_wrong_setting(&error) {
                true => ExitCode::from(WRONG_SETTINGS),
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn wrong_settings(wrong: impl IntoIterator<Item = impl Display>) -> ExitCode {
    wrong.into_iter().for_each(cli::print_message);
    ExitCode::from(WRONG_SETTINGS)
}

/// Whether a setting must change, such as one that names a file with the wrong content.
fn is_wrong_setting(error: &anyhow::Error) -> bool {
    let start = error.downcast_ref::<StartError>();
    let open = error.downcast_ref::<OpenError>();
    let command = error.downcast_ref::<CliError>();
    let whole = error.downcast_ref::<WholeDatabaseError>();
    let sign = error.downcast_ref::<SignError>();
    start.is_some_and(StartError::is_wrong_setting)
        || open.is_some_and(OpenError::is_wrong_setting)
        || command.is_some_and(CliError::is_wrong_setting)
        || whole.is_some_and(WholeDatabaseError::is_wrong_setting)
        || sign.is_some_and(SignError::is_wrong_setting)
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let command_line = || expertise::config::command_line(version::text());
    match &command {
        Command::Config {
            check: false,
            effective,
            ..
        } => cli::print(effective)?,
        Command::Token { signing, grant } => {
            cli::print(&format!("{}\n", auth::sign(signing, grant)?))?;
        }
        Command::New(args) => cli::new_guide(args)?,
        Command::Completions { shell } => cli::completions(command_line(), *shell)?,
        Command::Man { command } => cli::man(command_line(), command.as_deref())?,
        // Only these commands write a log, so only they start it.
        Command::Serve(config) | Command::Config { config, .. } => telemetry::start(&config.log),
        Command::Accounts { config, .. }
        | Command::Copy { config, .. }
        | Command::Migrate { config, .. } => telemetry::start(&config.log),
        Command::Translate {
            list: false,
            config,
            ..
        } => telemetry::start(&config.log),
        Command::Translate { .. } | Command::Client(_) | Command::Health { .. } => {}
    }
    let runtime = Runtime::new().context("cannot start the runtime")?;
    let outcome = runtime.block_on(run_async(command));
    // The shutdown grace is over: background tasks are not waited for.
    runtime.shutdown_background();
    outcome
}

async fn run_async(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(config) => serve(*config.0).await?,
        Command::Config {
            check: true,
            config,
            ..
        } => return check(&config).await,
        Command::Migrate { config, distribute } => {
            let layout = match distribute {
                true => TableLayout::Distributed,
                false => TableLayout::Plain,
            };
            migrate(&config.database, layout).await?;
        }
        Command::Accounts {
            id: Some(account),
            force,
            output,
            config,
            ..
        } => return delete_account(&config.database, &account, force, output.format).await,
        Command::Accounts { output, config, .. } => {
            let accounts = store::accounts(&config.database.url).await?;
            cli::print_accounts(&accounts, output.format)?;
        }
        Command::Copy { config, from } => {
            let DatabaseConfig { url, migrate, .. } = &config.database;
            let tables = store::copy(&from, url, *migrate).await?;
            cli::print_copied(tables.iter().map(|table| (table.name, table.rows)))?;
        }
        Command::Translate {
            list: true,
            format,
            config,
        } => cli::list_translation_work(&config, format).await?,
        Command::Translate { config, .. } => return Ok(cli::translate(&config).await?),
        Command::Client(command) => return Ok(cli::run(&command).await?),
        Command::Health { output, config } => cli::health(&config, output.format).await?,
        Command::Config { .. }
        | Command::Token { .. }
        | Command::New(_)
        | Command::Completions { .. }
        | Command::Man { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what a server would do to the schema, or each reason why it would not serve.
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

/// Brings the schema up to date, or creates it in this layout, and says what was done.
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

/// Deletes an account, after a question unless that is not wanted. Fails if it has no rows.
async fn delete_account(
    database: &DatabaseConfig,
    account: &AccountId,
    force: bool,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let accounts = store::accounts(&database.url).await?;
    let found = accounts.iter().find(|it| it.account == account.as_str());
    let rows = match found {
        Some(found) if !force && !cli::agrees_to_delete_account(found)? => {
            return Ok(ExitCode::FAILURE);
        }
        Some(_) => store::delete_account(&database.url, account).await?,
        None => {
            let database = database.url.address();
            cli::print_message(format!("{database} has nothing of account {account}"));
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
