//! Reads of an account with 1,000,000 steps, compared with 1,000.

use super::{
    super::{
        compare::{Contender, Rounds, Timing},
        fixture, requests,
        rows::CONNECTIONS,
        table::Line,
        testbed::{Program, Testbed},
    },
    bulk_insert,
};

/// Its name on the command line.
pub const NAME: &str = "million";
const TARGET: f64 = 0.85;
const TASKS: usize = 20;
const STEPS: usize = 50;
const MILLION: usize = 1_000_000;

/// Measures GetStep of 1,000 steps, and a page of translation work.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let names = ["thousand", "million"];
    let [of_few, of_many] = names.map(|name| testbed.make_database(name));
    let few = testbed.serve(Program::Service, names[0], &of_few);
    let many = testbed.serve(Program::Service, names[1], &of_many);
    let in_few = fixture::tasks(&few, TASKS, STEPS).await;
    let in_many = fixture::tasks(&many, TASKS, STEPS).await;
    bulk_insert::add_steps(&of_many, MILLION, STEPS).await;
    testbed.run_maintenance(&of_few).await;
    testbed.run_maintenance(&of_many).await;

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
        let what = format!("{call}, 1,000,000 steps against 1,000");
        let rounds = Rounds::run((&a, &b), timing, CONNECTIONS, None).await;
        lines.push(Line::new(what, testbed.kind(), TARGET, rounds));
    }
    lines
}
