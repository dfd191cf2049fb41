//! The service of this build, compared with that of another build.

use std::sync::Arc;

use super::super::{
    compare::{Contender, Rounds, Timing},
    fixture::{self, Fixture, IdSource},
    load::Requests,
    requests,
    rows::{IMPORTED_STEPS, ROWS},
    table::Line,
    testbed::{Program, Testbed},
};

/// Its name on the command line.
pub const NAME: &str = "against";
const TARGET: f64 = 0.95;

/// Measures each row on both, and writes of steps with conditions.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let this = Fixture::create(testbed, Program::Service, "this-build", IdSource::Server);
    let (this, of_this) = this.await;
    let other = Fixture::create(
        testbed,
        Program::OtherBuild,
        "other-build",
        IdSource::Server,
    );
    let (other, of_other) = other.await;
    let rows = ROWS.iter().map(|row| (row.call, row.requests));
    let mut lines = Vec::new();
    for (call, requests) in rows.chain(WITH_CONDITIONS) {
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

const WITH_CONDITIONS: [(&str, MakeRequests); 3] = [
    ("CreateStep with two conditions", |fixture| {
        requests::create_step_with_conditions(&fixture.empty)
    }),
    ("UpdateStep, conditions by mask", |fixture| {
        requests::update_conditions(&fixture.steps)
    }),
    (
        "ImportTask, 1,000 steps of 1 KB with two conditions",
        |_| requests::import_task_of(IMPORTED_STEPS, fixture::step_with_conditions),
    ),
];
