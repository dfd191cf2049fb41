//! CreateStep into tasks of 10,000 steps, against tasks of 10, on one server.
//!
//! A task is locked while a step goes into it, so each connection has tasks of its
//! own; and it grows by each, so there are many of the small ones.

use super::super::{
    compare::{Contender, Patience, Rounds},
    ground::{Ground, Program},
    requests,
    rows::CONNECTIONS,
    shelf,
    table::Line,
};

/// What picks it on the command line.
pub const KEY: &str = "flat";
const BAR: f64 = 0.9;
const MANY: usize = 10_000;
const FEW: usize = 10;
/// Small tasks of each connection.
const SMALL: usize = 100;
/// Places in the middle of a large task, and how far they are apart.
const PLACES: usize = 500;
const APART: usize = 16;

/// At the end of a task, and in its middle.
pub async fn measure(ground: &Ground, patience: Patience) -> Vec<Line> {
    let name = "flat";
    let database = ground.database(name);
    let server = ground.serve(Program::Service, name, &database);
    shelf::tasks(&server, 1, FEW).await;
    ground.settle(&database).await;
    let large = shelf::tasks(&server, CONNECTIONS, MANY).await;
    let small = shelf::tasks(&server, CONNECTIONS * SMALL, FEW).await;
    ground.settle(&database).await;
    // The number of a place, divided by the connections, leaves its connection.
    let in_large = |index: usize| &large[index % CONNECTIONS];
    let ends_of_large = large.iter().map(|task| (task.guid.clone(), String::new()));
    let ends_of_small = small.iter().map(|task| (task.guid.clone(), String::new()));
    let middles_of_large = (0..CONNECTIONS * PLACES).map(|index| {
        let task = in_large(index);
        let step = (1 + index / CONNECTIONS) * APART;
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
        let line = Line {
            what: format!("CreateStep {place}, task of 10,000 steps against 10"),
            kind: ground.kind(),
            bar: BAR,
            rounds: Rounds::take((&a, &b), patience, CONNECTIONS, None).await,
        };
        line.tell();
        lines.push(line);
    }
    lines
}
