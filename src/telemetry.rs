//! The log, and traces for a collector.

pub mod trace_context;
mod traces;

use std::{
    io::{self, IsTerminal},
    panic,
};

use tracing::error;
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

pub use self::traces::{CallSpan, ChildSpans, Ended, Sent, Tracer, Traces, TracesError};
use crate::config::{Config, LogFormat};

/// Who may log below a warning. What other crates log there holds statements,
/// headers and frames, and so bodies and tokens: it stays out, whatever the filter
/// asks for. A crate that is new here is among the others.
const OURS: &str = "expertise";

/// What sqlx says of connections that were lost is text of the driver, and what it says
/// of parameters that it does not know repeats their values; the store says both in words
/// of its own.
const SILENT: [&str; 2] = ["sqlx_core::pool", "sqlx_postgres::options"];

/// Starts logging to standard error as configured, panics included. The first
/// start of a process holds.
pub fn start(config: &Config) {
    let filter = config.log.clone().and(cap());
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match config.log_format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
    };
    let started = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
    if started.is_ok() {
        log_panics();
    }
}

fn cap() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target(OURS, LevelFilter::TRACE)
        .with_targets(SILENT.map(|target| (target, LevelFilter::OFF)))
}

/// Says where it happened and not what was said there: a panic's text may quote
/// the data at hand.
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
    fn statements_stay_out_whatever_is_asked_for() {
        let cap = cap();
        for target in [
            "sqlx::query",
            "sea_orm::driver",
            "h2::codec",
            "sea_orm_migration::migrator",
            "a_crate_that_is_new",
        ] {
            assert!(!cap.would_enable(target, &Level::INFO), "{target}");
            assert!(cap.would_enable(target, &Level::WARN), "{target}");
        }
        for target in ["sqlx_core::pool::inner", "sqlx_postgres::options::parse"] {
            assert!(!cap.would_enable(target, &Level::ERROR), "{target}");
        }
        assert!(cap.would_enable("expertise::store", &Level::TRACE));
    }
}
