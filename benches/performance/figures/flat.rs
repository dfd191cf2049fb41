//! CreateStep in tasks of 8,000 steps, compared with tasks of 10, on one server. A task may
//! have 10,000.
//!
//! CreateStep locks its task, so each connection has its own tasks. Small tasks grow
//! noticeably, so there are many.

use super::super::{
    compare::{Timing, compare},
    fixture, requests,
    table::Line,
    testbed::{Program, Testbed},
};

/// Its name on the command line.
pub const NAME: &str = "flat";
const TARGET: f64 = 0.9;
const STEPS_OF_LARGE: usize = 8_000;
/// Several, so that none gets too many steps.
const LARGE_TASKS_PER_CONNECTION: usize = 4;
const STEPS_OF_SMALL: usize = 10;
const SMALL_TASKS_PER_CONNECTION: usize = 100;
/// A large task is divided into so many parts, between which steps are inserted.
const PARTS: usize = 500;
const STEPS_OF_PART: usize = STEPS_OF_LARGE / PARTS;

/// Measures appends and inserts in the middle.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let name = "flat";
    let database = testbed.make_database(name);
    let server = testbed.serve(Program::Service, name, &database);
    // On tables without statistics PostgreSQL imports slowly.
    fixture::tasks(&server, 1, STEPS_OF_SMALL).await;
    testbed.run_maintenance(&database).await;
    let large = fixture::tasks(
        &server,
        timing.connections * LARGE_TASKS_PER_CONNECTION,
        STEPS_OF_LARGE,
    )
    .await;
    let small = fixture::tasks(
        &server,
        timing.connections * SMALL_TASKS_PER_CONNECTION,
        STEPS_OF_SMALL,
    )
    .await;
    testbed.run_maintenance(&database).await;
    // Request `index` is sent over connection `index % connections`, so that no task has requests
    // over two connections.
    let ends_of_large = large.iter().map(|task| (task.guid.clone(), String::new()));
    let ends_of_small = small.iter().map(|task| (task.guid.clone(), String::new()));
    let middles_of_large = (0..timing.connections * PARTS).map(|index| {
        let task = &large[index % large.len()];
        let step = (1 + index / timing.connections % (PARTS - 1)) * STEPS_OF_PART;
        (task.guid.clone(), task.steps[step].clone())
    });
    let middles_of_small = small.iter().map(|task| {
        let middle = task.steps[STEPS_OF_SMALL / 2].clone();
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
    for (place, places_in_large, places_in_small) in cases {
        let what = format!("CreateStep {place}, task of 8,000 steps against 10");
        let contenders = [places_in_large, places_in_small]
            .map(|places| (&server, requests::create_step_after(&places)));
        lines.push(compare(what, testbed.kind(), TARGET, contenders, timing).await);
    }
    lines
}
