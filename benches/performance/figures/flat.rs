//! CreateStep in tasks of 8,000 steps, compared with tasks of 10, on one server. A task may
//! have 10,000.
//!
//! CreateStep locks its task, so each connection has its own tasks. Small tasks grow
//! noticeably, so there are many.

use super::super::{
    compare::{Contender, Rounds, Timing},
    fixture, requests,
    rows::CONNECTIONS,
    table::Line,
    testbed::{Program, Testbed},
};

/// Its name on the command line.
pub const NAME: &str = "flat";
const TARGET: f64 = 0.9;
const MANY: usize = 8_000;
/// Large tasks of each connection, so that none gets too many steps.
const LARGE: usize = 4;
const FEW: usize = 10;
/// Small tasks of each connection.
const SMALL: usize = 100;
/// Positions in the middle of a large task, and the steps between them.
const POSITIONS: usize = 500;
const STRIDE: usize = 16;

/// Measures appends and inserts in the middle.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let name = "flat";
    let database = testbed.make_database(name);
    let server = testbed.serve(Program::Service, name, &database);
    fixture::tasks(&server, 1, FEW).await;
    testbed.run_maintenance(&database).await;
    let large = fixture::tasks(&server, CONNECTIONS * LARGE, MANY).await;
    let small = fixture::tasks(&server, CONNECTIONS * SMALL, FEW).await;
    testbed.run_maintenance(&database).await;
    // The connection of an index is `index % CONNECTIONS`.
    let in_large = |index: usize| &large[index % large.len()];
    let ends_of_large = large.iter().map(|task| (task.guid.clone(), String::new()));
    let ends_of_small = small.iter().map(|task| (task.guid.clone(), String::new()));
    let middles_of_large = (0..CONNECTIONS * POSITIONS).map(|index| {
        let task = in_large(index);
        let step = (1 + index / CONNECTIONS % (POSITIONS - 1)) * STRIDE;
        (task.guid.clone(), task.steps[step].clone())
    });
    let middles_of_small = small.iter().map(|task| {
        let middle = task.steps[FEW / 2].clone();
        (task.guid.clone(), middle)
    });
    let cases: [(&str, Vec<_>, Vec<_>); 2] = [
        (
            "at the end",
            ends_of_large.collect(),
            ends_of_small.collect(),
        ),
        (
            "in the middle",
            middles_of_large.collect(),
            middles_of_small.collect(),
        ),
    ];
    let mut lines = Vec::new();
    for (place, large, small) in cases {
        let [a, b] = [large, small].map(|places| Contender {
            server: &server,
            requests: requests::create_step_after(&places),
        });
        let what = format!("CreateStep {place}, task of 8,000 steps against 10");
        let rounds = Rounds::run((&a, &b), timing, CONNECTIONS, None).await;
        lines.push(Line::new(what, testbed.kind(), TARGET, rounds));
    }
    lines
}
