//! The service of this build, compared with that of another build.

use std::sync::Arc;

use super::super::{
    compare::{Contender, Rounds},
    fixture::{self, Fixture, IdSource},
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
    let this = Fixture::create(testbed, Program::Service, "this-build", IdSource::Server);
    let (this, of_this) = this.await;
    let other = Fixture::create(
        testbed,
        Program::OtherBuild,
        "other-build",
        IdSource::Server,
    );
    let (other, of_other) = other.await;
    let mut lines = Vec::new();
    for (_, call, requests) in rows {
        let a = Contender {
            server: &this,
            requests: requests(&of_this),
        };
        let b = Contender {
            server: &other,
            requests: requests(&of_other),
        };
        let rounds = Rounds::run((&a, &b), timing, timing.connections, None).await;
        let what = format!("{call}, this build against the other");
        lines.push(Line::new(what, testbed.kind(), TARGET, rounds));
    }
    lines
}

type MakeRequests = fn(&Fixture) -> Arc<Requests>;

/// The names on the command line, the calls and the requests of rows with conditions.
pub const WITH_CONDITIONS: [(&str, &str, MakeRequests); 4] = [
    (
        "create_step_with_conditions",
        "CreateStep with two conditions",
        |fixture| requests::create_step_with_conditions(&fixture.empty),
    ),
    (
        "update_step_conditions",
        "UpdateStep, conditions by mask",
        |fixture| requests::update_conditions(&fixture.steps),
    ),
    (
        "update_step_answers",
        "UpdateStep, other answers in conditions by mask",
        |fixture| requests::update_compared_answers(&fixture.steps),
    ),
    (
        "import_task_with_conditions",
        "ImportTask, 1,000 steps of 1 KB with two conditions",
        |_| requests::import_task_of(IMPORTED_STEPS, fixture::step_with_conditions),
    ),
];
