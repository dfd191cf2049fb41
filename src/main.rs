//! The command line: settings in, exit code out.

use std::process::ExitCode;

use anyhow::Context;
use expertise::{
    cli,
    config::{Command, ConfigError, Invocation},
    store, telemetry,
};
use tokio::runtime::Runtime;

/// Nothing started: the settings are wrong.
const WRONG_SETTINGS: u8 = 2;

/// Gives memory back after large bodies, which the allocators of many systems keep:
/// they held 400 MB on after 64 bodies of 16 MB at once, this one 90.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let invocation = match Invocation::of_process() {
        Ok(invocation) => invocation,
        Err(ConfigError::Usage(error)) => error.exit(),
        Err(error) => {
            cli::complain(&format!("expertise: {error}"));
            return ExitCode::from(WRONG_SETTINGS);
        }
    };
    match run(&invocation) {
        Ok(code) => code,
        Err(error) => {
            cli::complain(&format!("expertise: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let config = &invocation.config;
    match &invocation.command {
        Command::Config => {
            cli::write(&invocation.effective())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Token(grant) => {
            cli::write(&format!("{}\n", cli::token(&config.auth, grant)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Completions(shell) => {
            cli::completions(*shell)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Man(page) => {
            cli::man(page.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Serve | Command::Migrate | Command::Translate(_) => telemetry::start(config),
        // Their answers are all there is to say.
        Command::Errand(_) | Command::Health(_) => {}
    }
    let runtime = Runtime::new().context("cannot start the runtime")?;
    let outcome = runtime.block_on(async {
        match &invocation.command {
            Command::Serve => cli::serve(config).await?,
            Command::Migrate => store::migrate(&config.database).await?,
            Command::Translate(settings) => return Ok(cli::translate(settings).await?),
            Command::Errand(errand) => return Ok(cli::run(errand).await?),
            Command::Health(server) => cli::health(server).await?,
            Command::Config | Command::Token(_) | Command::Completions(_) | Command::Man(_) => {}
        }
        Ok(ExitCode::SUCCESS)
    });
    // The grace is over: nothing is waited for any more.
    runtime.shutdown_background();
    outcome
}
