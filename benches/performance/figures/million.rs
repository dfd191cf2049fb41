//! Reads with 1,000,000 steps in the account's tables, against 1,000.

use super::{
    super::{
        compare::{Contender, Patience, Rounds},
        ground::{Ground, Program},
        requests,
        rows::CONNECTIONS,
        shelf,
        table::Line,
    },
    swell,
};

/// What picks it on the command line.
pub const KEY: &str = "million";
const BAR: f64 = 0.85;
const TASKS: usize = 20;
const STEPS: usize = 50;
const MILLION: usize = 1_000_000;

/// GetStep over 1,000 steps, and a page of translation work.
pub async fn measure(ground: &Ground, patience: Patience) -> Vec<Line> {
    let names = ["thousand", "million"];
    let [of_few, of_many] = names.map(|name| ground.database(name));
    let few = ground.serve(Program::Service, names[0], &of_few);
    let many = ground.serve(Program::Service, names[1], &of_many);
    let in_few = shelf::tasks(&few, TASKS, STEPS).await;
    let in_many = shelf::tasks(&many, TASKS, STEPS).await;
    swell::to(&of_many, MILLION, STEPS).await;
    ground.settle(&of_few).await;
    ground.settle(&of_many).await;

    let steps = |tasks: &[expertise::proto::v1::Task]| {
        let steps: Vec<String> = tasks.iter().flat_map(|task| task.steps.clone()).collect();
        requests::get_step(&steps)
    };
    let cases = [
        ("GetStep", steps(&in_many), steps(&in_few)),
        (
            "ListTranslationWork, page of 50",
            requests::list_translation_work(),
            requests::list_translation_work(),
        ),
    ];
    let mut lines = Vec::new();
    for (call, of_many, of_few) in cases {
        let a = Contender {
            server: &many,
            requests: of_many,
        };
        let b = Contender {
            server: &few,
            requests: of_few,
        };
        let line = Line {
            what: format!("{call}, 1,000,000 steps against 1,000"),
            kind: ground.kind(),
            bar: BAR,
            rounds: Rounds::take((&a, &b), patience, CONNECTIONS, None).await,
        };
        line.tell();
        lines.push(line);
    }
    lines
}
