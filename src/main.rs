//! The command line: settings in, exit code out.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context;
use expertise::{
    auth::{self, Grant, SignError},
    config::{AuthMode, Command, Config, ConfigError, Invocation, TranslateConfig},
    server::Server,
    store, telemetry,
    translate::{self, Summary},
};
use rustix::process::Signal;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

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
            eprintln!("expertise: {error}");
            return ExitCode::from(WRONG_SETTINGS);
        }
    };
    match run(&invocation) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("expertise: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let config = &invocation.config;
    match &invocation.command {
        Command::Config => {
            say(&invocation.effective());
            return Ok(ExitCode::SUCCESS);
        }
        Command::Token(grant) => {
            say(&format!("{}\n", token(&config.auth, grant)?));
            return Ok(ExitCode::SUCCESS);
        }
        Command::Serve | Command::Migrate | Command::Translate(_) => {}
    }
    telemetry::start(config);
    let runtime = Runtime::new().context("cannot start the runtime")?;
    let outcome = runtime.block_on(async {
        match &invocation.command {
            Command::Serve => serve(config).await?,
            Command::Migrate => store::migrate(&config.database).await?,
            Command::Config | Command::Token(_) => {}
            Command::Translate(settings) => return translate(settings).await,
        }
        Ok(ExitCode::SUCCESS)
    });
    // The grace is over: nothing is waited for any more.
    runtime.shutdown_background();
    outcome
}

fn token(mode: &AuthMode, grant: &Grant) -> Result<String, SignError> {
    match mode {
        AuthMode::Header => Err(SignError::NoSecret),
        AuthMode::Jwt(rules) => auth::sign(rules, grant),
    }
}

async fn serve(config: &Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    // SQLite that may not write more than a limit is refused like one without room,
    // and no reason to end: listened to, the signal does not kill.
    let limit = SignalKind::from_raw(Signal::XFSZ.as_raw());
    let _limit = signal(limit).context("cannot listen for SIGXFSZ")?;
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
    say(&format!("{}\n", server.start_line()));
    let plain = config.auth == AuthMode::Header && config.tls.is_none();
    if io::stdout().is_terminal() && config.reflection && plain {
        say(&server.first_call());
    }
    Ok(server.serve(stop).await?)
}

/// The summary is said however the run ends.
async fn translate(settings: &TranslateConfig) -> anyhow::Result<ExitCode> {
    let mut summary = Summary::default();
    let mut progress = translate::of_standard_error();
    let outcome = translate::run(settings, &mut summary, &mut *progress).await;
    drop(progress);
    say(&format!("{summary}\n"));
    outcome?;
    Ok(if summary.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes to standard output; a reader that went away is no failure of ours.
fn say(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
