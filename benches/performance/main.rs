//! The speed of calls, compared with a minimal server (the floor) in the same run.
//!
//! `cargo bench --bench performance` starts all servers and prints the tables of
//! `docs/performance.md`, which describes the method.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../tests/kit/mod.rs"]
mod kit;
use kit::{command, postgres as cluster, scratch, server};

mod compare;
mod figures;
mod fixture;
mod floor;
mod load;
mod machine;
mod options;
mod requests;
mod rows;
mod table;
mod testbed;
mod usage;

use std::env;

use clap::Parser;

use figures::{against, analysis, delete_step, flat, memory, million, start};
use options::Options;
use rows::{ROWS, Row};
use table::{Figure, Line};
use testbed::Testbed;

/// The argument that makes this program the floor.
const FLOOR: &str = "floor";

fn main() {
    match env::args().nth(1).as_deref() {
        Some(FLOOR) => floor::serve(),
        _ => measure(&Options::parse()),
    }
}

fn measure(options: &Options) {
    // The load has one thread, as it shares the cores with the servers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut tables = Tables::default();
    for kind in options.kinds() {
        match Testbed::of(kind, options.against.clone()) {
            Some(testbed) => runtime.block_on(tables.fill(&testbed, options)),
            None => eprintln!("\n*** PostgreSQL is not installed: it is not measured. ***\n"),
        }
    }
    println!("{}", machine::describe());
    let floors = table::comparison_table("service", "floor", &tables.floors);
    let others = table::comparison_table("first", "second", &tables.others);
    let figures = table::figure_table(&tables.figures);
    for table in [floors, others, figures] {
        if !table.is_empty() {
            println!("{table}");
        }
    }
}

/// The tables that are printed.
#[derive(Default)]
struct Tables {
    /// The service against the floor.
    floors: Vec<Line>,
    /// Other comparisons.
    others: Vec<Line>,
    /// Single figures.
    figures: Vec<Figure>,
}

impl Tables {
    /// Measures the selected rows and figures on one kind of database.
    async fn fill(&mut self, testbed: &Testbed, options: &Options) {
        if options.against.is_some() {
            let lines = against::measure(testbed, options).await;
            self.others.extend(lines);
            return;
        }
        let timing = options.timing();
        let rows: Vec<&Row> = ROWS
            .iter()
            .filter(|row| options.selects(row.name))
            .collect();
        self.floors
            .extend(rows::measure(testbed, &rows, timing).await);
        if options.selects(delete_step::NAME) {
            self.floors
                .extend(delete_step::measure(testbed, timing).await);
        }
        if options.selects(flat::NAME) {
            self.others.extend(flat::measure(testbed, timing).await);
        }
        if options.selects(million::NAME) {
            self.others.extend(million::measure(testbed, timing).await);
        }
        if options.selects(analysis::NAME) {
            self.floors.extend(analysis::measure(testbed, timing).await);
        }
        if options.selects(memory::NAME) {
            self.figures.extend(memory::measure(testbed).await);
        }
        if options.selects(start::NAME) {
            self.figures.extend(start::measure(testbed).await);
        }
    }
}
