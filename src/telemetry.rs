//! The log, and traces for a collector.

mod trace_context;
mod traces;

use std::{
    io::{self, IsTerminal, Write},
    panic,
};

use tracing::error;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

pub use self::traces::{Traces, TracesError, begin_call, end_call, record_span};
use crate::{
    config::{LogConfig, LogFormat},
    terminal::escape_formatting,
};

/// The only target that may log below WARN, regardless of the filter. At those levels, other crates
/// log statements, headers and frames, which contain bodies and tokens.
const OWN_TARGET: &str = "expertise";

/// Prefixes of targets that never log. The database driver logs server messages, errors, and URL
/// parameters. The store logs what matters about them in its own words.
const SILENCED_TARGETS: [&str; 2] = ["sqlx", "sea_orm"];

/// Starts logging to standard error as configured, panics included. Later calls in a
/// process do nothing.
pub fn start(config: &LogConfig) {
    let lines = fmt::layer().with_writer(|| SafeLines(io::stderr()));
    let lines = match config.format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
    };
    // Both filters apply to the whole registry. A filter of one layer would lose the next
    // event after a library has checked whether a level is enabled.
    let initialized = tracing_subscriber::registry()
        .with(lines)
        .with(config.filter.clone())
        .with(most_verbose())
        .try_init();
    if initialized.is_ok() {
        log_panics();
    }
}

/// Escapes characters that could change how a terminal or viewer displays the rest of the log.
struct SafeLines<W>(W);

impl<W: Write> Write for SafeLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.is_ascii() && !line.contains(&0x7f) {
            self.0.write_all(line)?;
        } else {
            let text = escape_formatting(&String::from_utf8_lossy(line));
            self.0.write_all(text.as_bytes())?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The upper limit on what is logged, regardless of the settings.
fn most_verbose() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target(OWN_TARGET, LevelFilter::TRACE)
        .with_targets(SILENCED_TARGETS.map(|target| (target, LevelFilter::OFF)))
}

/// Logs where a panic happened. Leaves out its message, which may quote data.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        error!(location = location.unwrap_or_default(), "panicked");
    }));
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn other_crates_log_warnings_at_most() {
        let cap = most_verbose();
        for target in ["h2::codec", "a_crate_that_is_new"] {
            assert!(!cap.would_enable(target, &Level::INFO), "{target}");
            assert!(cap.would_enable(target, &Level::WARN), "{target}");
        }
        assert!(cap.would_enable("expertise::store", &Level::TRACE));
    }
}
