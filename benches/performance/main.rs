//! Measures the speed of calls on SQLite and PostgreSQL, optionally compared with another build of
//! the service.
//!
//! `docs/performance.md` describes the method.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../tests/kit/mod.rs"]
mod kit;

mod calls;
mod cpu;
mod load;
mod servers;
mod table;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::{Parser, ValueEnum};

use calls::Call;
use kit::child::binary;
use load::{Load, Measured};
use servers::{Server, Testbed};
use table::Row;

/// Measures calls of the service: calls per second, durations, and CPU time
#[derive(Debug, Parser)]
struct Options {
    /// Another build of the service, which takes turns with this one
    #[arg(long, value_name = "BINARY")]
    against: Option<PathBuf>,
    /// Measure on this database only
    #[arg(long)]
    database: Option<Database>,
    /// How long a turn is measured, after a fifth of that as a warm-up
    #[arg(long, default_value = "1200ms", value_parser = humantime::parse_duration)]
    turn: Duration,
    /// Turns of each build
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Connections with one call at a time on each
    #[arg(long, default_value = "16", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Calls to measure; all by default
    #[arg(value_name = "CALL", ignore_case = true)]
    calls: Vec<Call>,
    /// `cargo bench` adds it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

fn main() {
    let options = Options::parse();
    // The load has one thread, because it shares the cores with the servers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut rows = Vec::new();
    for &database in Database::value_variants() {
        if options.database.is_some_and(|only| only != database) {
            continue;
        }
        match Testbed::start(database) {
            Some(testbed) => rows.extend(runtime.block_on(measure(&options, &testbed))),
            None => eprintln!("\n*** Left out: PostgreSQL is not installed. ***\n"),
        }
    }
    println!("{}\n{}", table::machine(), table::table(&rows));
}

/// Measures each call. With two builds, they take turns in the order A B B A, so that disk writes
/// left over from one turn slow down both equally.
async fn measure(options: &Options, testbed: &Testbed) -> Vec<Row> {
    let mut builds = vec![testbed.serve(&binary(), "this")];
    builds.extend(
        options
            .against
            .iter()
            .map(|other| testbed.serve(other, "other")),
    );
    let load = Load {
        connections: options.connections,
        warm_up: options.turn / 5,
        time: options.turn,
    };
    let calls = match options.calls.as_slice() {
        [] => Call::value_variants(),
        calls => calls,
    };
    let mut requests = Vec::new();
    for call in calls {
        let mut call_requests = Vec::new();
        for build in &builds {
            let seconds = (load.warm_up + load.time).as_secs_f64() * f64::from(options.rounds);
            call_requests.push(Arc::new(call.prepare(build, seconds).await));
        }
        requests.push(call_requests);
    }
    for build in &builds {
        build.run_maintenance().await;
    }
    let mut rows = Vec::new();
    for (call, requests) in calls.iter().zip(requests) {
        let mut contenders: Vec<(usize, &Server)> = builds.iter().enumerate().collect();
        let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); builds.len()];
        for _ in 0..options.rounds {
            for &(index, build) in &contenders {
                rounds[index].push(load.run(build, &requests[index]).await);
            }
            contenders.reverse();
        }
        let row = Row::new(call.title(), testbed.database(), rounds);
        eprintln!("{}", row.progress());
        rows.push(row);
    }
    rows
}
