//! `expertise serve`.

use std::io::{self, IsTerminal};

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::out::say;
use crate::{
    config::{AuthMode, Config},
    server::{Server, StartError},
};

/// Why a server did not start. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum ServeFailure {
    /// A signal cannot be listened for.
    #[error("cannot listen for {name}: {reason}")]
    Signal {
        /// The signal.
        name: &'static str,
        /// What the system says.
        reason: io::Error,
    },
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Serves until SIGTERM or SIGINT.
pub async fn serve(config: &Config) -> Result<(), ServeFailure> {
    let mut terminate = listen(SignalKind::terminate(), "SIGTERM")?;
    let mut interrupt = listen(SignalKind::interrupt(), "SIGINT")?;
    // SQLite that may not write more than a limit is refused like one without room,
    // and no reason to end: listened to, the signal does not kill.
    let limit = SignalKind::from_raw(Signal::XFSZ.as_raw());
    let _limit = listen(limit, "SIGXFSZ")?;
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
    server.serve(stop).await;
    Ok(())
}

fn listen(
    kind: SignalKind,
    name: &'static str,
) -> Result<tokio::signal::unix::Signal, ServeFailure> {
    signal(kind).map_err(|reason| ServeFailure::Signal { name, reason })
}
