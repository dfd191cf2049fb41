//! Reads of an account with 1,000,000 steps, compared with 1,000.

use super::{
    super::{
        compare::{Timing, compare},
        fixture, requests,
        table::Line,
        testbed::{Program, Testbed},
    },
    analysis, bulk_insert,
};

/// Its name on the command line.
pub const NAME: &str = "million";
const TARGET: f64 = 0.85;
const GUIDES: usize = 10;
const MILLION: usize = 1_000_000;

/// Measures GetStep of 1,000 steps, and a page of translation work and of references.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let names = ["million", "thousand"];
    let databases = names.map(|name| testbed.make_database(name));
    let mut servers = Vec::new();
    let mut steps = Vec::new();
    for (name, database) in names.iter().zip(&databases) {
        let server = testbed.serve(Program::Service, name, database);
        let mut own = Vec::new();
        for number in 0..GUIDES {
            let guide = analysis::import_guide(&server, &format!("Guide {number}")).await;
            own.extend(guide.steps);
        }
        servers.push(server);
        steps.push(own);
    }
    bulk_insert::add_steps(&databases[0], MILLION, analysis::STEPS).await;
    bulk_insert::add_name_uses(&databases[0], MILLION).await;
    for database in &databases {
        testbed.run_maintenance(database).await;
    }
    let get_step = |index: usize| requests::get_step(&steps[index]);
    let list_references = |_| requests::list_references(&fixture::account_wide_name(0));
    let cases = [
        ("GetStep", [0, 1].map(get_step)),
        (
            "ListTranslationWork, page of 50",
            [0, 1].map(|_| requests::list_translation_work()),
        ),
        ("ListReferences, page of 50", [0, 1].map(list_references)),
    ];
    let mut lines = Vec::new();
    for (call, [of_many, of_few]) in cases {
        let what = format!("{call}, 1,000,000 steps against 1,000");
        let contenders = [(&servers[0], of_many), (&servers[1], of_few)];
        lines.push(compare(what, testbed.kind(), TARGET, contenders, timing).await);
    }
    lines
}
