//! What calls cost, against a bare server in the same run.
//!
//! `cargo bench --bench performance` starts everything itself and prints the
//! tables of `docs/performance.md`, which says how each figure is obtained. Names
//! pick rows and figures; see [`options`] for the rest.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../tests/kit/mod.rs"]
mod kit;
use kit::{postgres as cluster, scratch, server_process as process};

mod compare;
mod figures;
mod floor;
mod ground;
mod load;
mod machine;
mod options;
mod pgbench;
mod requests;
mod rows;
mod shelf;
mod table;
mod watch;

use std::{env, process::ExitCode};

use figures::{flat, memory, million, start, writers};
use floor::Creating;
use ground::Ground;
use options::Options;
use rows::{ROWS, Row};
use table::{Figure, Line};

/// What makes this program a floor.
const FLOOR: &str = "floor";
const SIX_STATEMENTS: &str = "six-statements";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(FLOOR) => floor::serve(Creating::Bare),
        Some(SIX_STATEMENTS) => floor::serve(Creating::SixStatements),
        _ => match Options::parse(&arguments) {
            Ok(options) => measure(&options),
            Err(wrong) => {
                eprintln!("{wrong}");
                return ExitCode::from(2);
            }
        },
    }
    ExitCode::SUCCESS
}

fn measure(options: &Options) {
    // The load has one thread: more would take more from the servers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut tables = Tables::default();
    for &kind in &options.kinds {
        match Ground::of(kind) {
            Some(ground) => runtime.block_on(tables.fill(&ground, options)),
            None => eprintln!("\n*** No PostgreSQL here: only SQLite is measured. ***\n"),
        }
    }
    println!("{}", machine::describe());
    let floors = table::of_lines("service", "floor", &tables.floors);
    let others = table::of_lines("first", "second", &tables.others);
    let figures = table::of_figures(&tables.figures);
    for table in [floors, others, figures] {
        if !table.is_empty() {
            println!("{table}");
        }
    }
}

/// What is printed.
#[derive(Default)]
struct Tables {
    /// The service against the floor.
    floors: Vec<Line>,
    /// One against another.
    others: Vec<Line>,
    /// What is no comparison.
    figures: Vec<Figure>,
}

impl Tables {
    /// Measures what was picked on one kind of database.
    async fn fill(&mut self, ground: &Ground, options: &Options) {
        let patience = options.patience;
        let rows: Vec<&Row> = ROWS.iter().filter(|row| options.picks(row.key)).collect();
        self.floors
            .extend(rows::measure(ground, &rows, patience).await);
        if options.picks(writers::KEY) {
            self.others.extend(writers::measure(ground, patience).await);
        }
        if options.picks(flat::KEY) {
            self.others.extend(flat::measure(ground, patience).await);
        }
        if options.picks(million::KEY) {
            self.others.extend(million::measure(ground, patience).await);
        }
        if options.picks(memory::KEY) {
            self.figures.extend(memory::measure(ground).await);
        }
        if options.picks(start::KEY) {
            self.figures.extend(start::measure(ground).await);
        }
    }
}
