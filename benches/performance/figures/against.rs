//! The service of this build, compared with that of another build.

use std::sync::Arc;

use super::super::{
    compare::compare,
    fixture::{self, Fixture},
    load::Requests,
    options::Options,
    requests,
    rows::{IMPORTED_STEPS, ROWS},
    table::Line,
    testbed::{Program, Testbed},
};

const TARGET: f64 = 0.95;

/// Compares both builds on the selected [`ROWS`] and [`WITH_CONDITIONS`].
pub async fn measure(testbed: &Testbed, options: &Options) -> Vec<Line> {
    let timing = options.timing();
    let rows = ROWS.iter().map(|row| (row.name, row.call, row.requests));
    let rows: Vec<_> = rows
        .chain(WITH_CONDITIONS)
        .filter(|(name, ..)| options.selects(name))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let (this, of_this) = Fixture::create(testbed, Program::Service, "this-build").await;
    let (other, of_other) = Fixture::create(testbed, Program::OtherBuild, "other-build").await;
    let mut lines = Vec::new();
    for (_, call, requests) in rows {
        let what = format!("{call}, this build against the other");
        let builds = [(&this, requests(&of_this)), (&other, requests(&of_other))];
        lines.push(compare(what, testbed.kind(), TARGET, builds, timing).await);
    }
    lines
}

type MakeRequests = fn(&Fixture) -> Arc<Requests>;

/// The names on the command line, the calls and the requests of rows with conditions.
pub const WITH_CONDITIONS: [(&str, &str, MakeRequests); 2] = [
    (
        "create_step_with_conditions",
        "CreateStep with two conditions",
        |fixture| requests::create_step_with_conditions(&fixture.empty),
    ),
    (
        "import_task_with_conditions",
        "ImportTask, 1,000 steps of 1 KB with two conditions",
        |_| requests::import_task_of(IMPORTED_STEPS, fixture::step_with_conditions),
    ),
];
