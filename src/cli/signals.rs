//! Ctrl-C and SIGTERM during a run over several files.

use futures_util::FutureExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{CliError, out::print_error};

/// The signals that end a run: the first signal after the current file, the second immediately.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    interrupted: bool,
}

impl Interrupts {
    pub fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(CliError::cannot_listen);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            interrupted: false,
        })
    }

    pub fn was_interrupted(&mut self) -> bool {
        self.interrupted |= self.next().now_or_never().is_some();
        self.interrupted
    }

    /// Finishes the work, or returns `None` after a second signal.
    pub async fn run_until_second_signal<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                // Signals are polled first, so that work that ends immediately does not hide a
                // signal.
                biased;
                () = self.next() => {
                    if std::mem::replace(&mut self.interrupted, true) {
                        return None;
                    }
                    print_error(
                        "interrupted: finishing the current file; press Ctrl-C again to stop now",
                    );
                }
                done = &mut work => return Some(done),
            }
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
