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
    config::{
        AuthMode, Command, Config, ConfigError, DeletedAccount, Format, Invocation, TableLayout,
    },
    server::{self, Server, StartError},
    store::{self, OpenError, SchemaChange, WholeDatabaseError},
    telemetry, version,
};
use rustix::process::Signal;
use tokio::{
    runtime::Runtime,
    signal::unix::{self, SignalKind},
};
use tracing::{Level, enabled, warn};

/// Exit code when nothing was started because settings are wrong.
const WRONG_SETTINGS: u8 = 2;

/// Returns memory to the system after large bodies. The system's own allocator still
/// held 400 MB after 64 bodies of 16 MB at once, this one 90.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let invocation = match Invocation::of_process(version::text()) {
        Ok(invocation) => invocation,
        Err(ConfigError::Usage(error)) => error.exit(),
        Err(ConfigError::Settings(wrong)) => return wrong_settings(wrong),
    };
    match run(&invocation) {
        Ok(code) => code,
        Err(error) => {
            let message = invocation.with_names_as_given(&format!("{error:#}"));
            cli::print_message(message);
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

fn run(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let command_line = || expertise::config::command_line(version::text());
    if let Command::Config(_) | Command::Token(..) = invocation.command {
        for warning in &invocation.warnings {
            cli::print_message(warning);
        }
    }
    match &invocation.command {
        Command::Config(effective) => cli::print(effective)?,
        Command::Token(signing, grant) => {
            cli::print(&format!("{}\n", auth::sign(signing, grant)?))?;
        }
        Command::New(args) => cli::new_guide(args)?,
        Command::Completions(shell) => cli::completions(command_line(), *shell)?,
        Command::Man(page) => cli::man(command_line(), page.as_deref())?,
        // Only these commands and `translate` write a log, so only they start it.
        Command::Serve(config)
        | Command::CheckConfig(config)
        | Command::Accounts(config, _)
        | Command::DeleteAccount(config, ..)
        | Command::Copy(config, _)
        | Command::Migrate { config, .. } => {
            telemetry::start(&config.log);
            for warning in &invocation.warnings {
                // The filter of the log may leave warnings out.
                match enabled!(Level::WARN) {
                    true => warn!("{warning}"),
                    false => cli::print_message(warning),
                }
            }
            return run_async(invocation);
        }
        Command::Translate(settings) => {
            telemetry::start(&settings.log);
            return run_async(invocation);
        }
        Command::TranslationWork(..) | Command::Client(_) | Command::Health(_) => {
            return run_async(invocation);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_async(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let runtime = Runtime::new().context("cannot start the runtime")?;
    let outcome = runtime.block_on(async {
        match &invocation.command {
            Command::Serve(config) => serve(config).await?,
            Command::CheckConfig(config) => return check(invocation, config).await,
            Command::Migrate { config, layout } => migrate(config, *layout).await?,
            Command::Accounts(config, format) => {
                let accounts = store::accounts(&config.database).await?;
                cli::print_accounts(&accounts, *format)?;
            }
            Command::DeleteAccount(config, account, format) => {
                return delete_account(config, account, *format).await;
            }
            Command::Copy(config, from) => {
                let tables = store::copy(from, &config.database, config.migrate).await?;
                cli::print_copied(tables.iter().map(|table| (table.name, table.rows)))?;
            }
            Command::Translate(settings) => return Ok(cli::translate(settings).await?),
            Command::TranslationWork(settings, format) => {
                cli::list_translation_work(settings, *format).await?;
            }
            Command::Client(command) => return Ok(cli::run(command).await?),
            Command::Health(server) => cli::health(server).await?,
            Command::Config(_)
            | Command::Token(..)
            | Command::New(_)
            | Command::Completions(_)
            | Command::Man(_) => {}
        }
        Ok(ExitCode::SUCCESS)
    });
    // The shutdown grace is over: background tasks are not waited for.
    runtime.shutdown_background();
    outcome
}

/// Says what a server would do to the schema, or each reason why it would not serve.
async fn check(invocation: &Invocation, config: &Config) -> anyhow::Result<ExitCode> {
    let change = match server::check(config).await {
        Ok(change) => change,
        Err(errors) => {
            let errors = errors.iter().map(ToString::to_string);
            let named = errors.map(|error| invocation.with_names_as_given(&error));
            return Ok(wrong_settings(named));
        }
    };
    let schema = match change {
        SchemaChange::Created => "creates the schema",
        SchemaChange::Migrated => "brings the schema up to date",
        SchemaChange::Current => "finds the schema up to date",
    };
    let (newest, database) = (store::schema(), config.database.address());
    cli::print(&format!(
        "`expertise serve` can start: it {schema} ({newest}) in {database}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Brings the schema up to date, or creates it in this layout, and says what was done.
async fn migrate(config: &Config, layout: TableLayout) -> anyhow::Result<()> {
    let change = store::migrate(&config.database, layout).await?;
    let done = match change {
        SchemaChange::Created => "created the schema",
        SchemaChange::Migrated => "brought the schema up to date",
        SchemaChange::Current => "the schema is up to date",
    };
    let done = match layout {
        TableLayout::Plain => done.to_owned(),
        TableLayout::Distributed => format!("{done}, with distributed tables"),
    };
    let (schema, database) = (store::schema(), config.database.address());
    cli::print(&format!("{done} ({schema}) in {database}\n"))?;
    Ok(())
}

/// Deletes an account, after a question unless that is not wanted. One without rows is no error, so
/// that the command can be repeated.
async fn delete_account(
    config: &Config,
    account: &DeletedAccount,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let DeletedAccount { id, force } = account;
    let accounts = store::accounts(&config.database).await?;
    let found = accounts.iter().find(|it| it.account == id.as_str());
    let rows = match found {
        Some(found) if !force && !cli::agrees_to_delete_account(found)? => {
            return Ok(ExitCode::FAILURE);
        }
        Some(_) => store::delete_account(&config.database, id).await?,
        None => {
            let database = config.database.address();
            cli::print_message(format!("{database} has nothing of account {id}"));
            0
        }
    };
    cli::print_deleted_account(id.as_str(), rows, format)?;
    Ok(ExitCode::SUCCESS)
}

/// Serves until SIGTERM or SIGINT.
async fn serve(config: &Config) -> anyhow::Result<()> {
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
    let server = tokio::select! {
        server = Server::bind(config.clone()) => server?,
        () = &mut stop => return Ok(()),
    };
    let mut start_message = format!("{}\n", server.start_line());
    let plain = config.auth == AuthMode::Header && config.tls.is_none();
    if io::stdout().is_terminal() && config.reflection && plain {
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
