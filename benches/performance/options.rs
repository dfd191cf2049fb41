//! The command line.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::Parser;

use super::{
    compare::Timing,
    figures::{against::WITH_CONDITIONS, analysis, delete_step, flat, memory, million, start},
    rows::ROWS,
    testbed::Kind,
};

/// The names of figures.
const FIGURES: [&str; 6] = [
    delete_step::NAME,
    flat::NAME,
    million::NAME,
    analysis::NAME,
    memory::NAME,
    start::NAME,
];

/// The speed of calls, compared with a minimal server.
#[derive(Debug, Parser)]
pub struct Options {
    /// Seconds of a turn.
    #[arg(long, default_value = "2.5", value_parser = seconds)]
    seconds: Duration,
    /// Turns of each server.
    #[arg(long, default_value = "4")]
    rounds: NonZeroUsize,
    /// Connections of each server.
    #[arg(long, default_value = "16")]
    connections: NonZeroUsize,
    /// The program of another build of the service: the rows are compared with it, in place of
    /// the minimal server, and no figure is measured.
    #[arg(long, value_name = "PATH")]
    pub against: Option<PathBuf>,
    /// Only this kind of database.
    #[arg(long)]
    database: Option<Kind>,
    /// Parts of the names of rows and figures; all by default.
    #[arg(value_parser = name)]
    names: Vec<String>,
    /// `cargo bench` adds it.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// The number and the duration of turns, and the number of connections.
    pub fn timing(&self) -> Timing {
        Timing {
            rounds: self.rounds.get(),
            turn: self.seconds,
            connections: self.connections.get(),
        }
    }

    /// The kinds of database.
    pub fn kinds(&self) -> Vec<Kind> {
        self.database
            .map_or_else(|| vec![Kind::Sqlite, Kind::Postgres], |kind| vec![kind])
    }

    /// Whether the row or figure of this name is measured.
    pub fn selects(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| name.contains(part.as_str()))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    let seconds = seconds.ok_or("it must be a number above 0")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn name(part: &str) -> Result<String, String> {
    let known: Vec<&str> = ROWS
        .iter()
        .map(|row| row.name)
        .chain(FIGURES)
        .chain(WITH_CONDITIONS.map(|(name, ..)| name))
        .collect();
    if known.iter().any(|name| name.contains(part)) {
        Ok(part.to_owned())
    } else {
        Err(format!("it must be a part of one of {}", known.join(", ")))
    }
}
