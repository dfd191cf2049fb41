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
    let [few_database, many_database] = names.map(|name| testbed.make_database(name));
    let few = testbed.serve(Program::Service, names[0], &few_database);
    let many = testbed.serve(Program::Service, names[1], &many_database);
    let in_few = fixture::tasks(&few, TASKS, STEPS).await;
    let in_many = fixture::tasks(&many, TASKS, STEPS).await;
    bulk_insert::add_steps(&many_database, MILLION, STEPS).await;
    testbed.run_maintenance(&few_database).await;
    testbed.run_maintenance(&many_database).await;

    let get_step = |tasks: &[expertise::proto::v1::Task]| {
        let steps: Vec<String> = tasks.iter().flat_map(|task| task.steps.clone()).collect();
        requests::get_step(&steps)
    };
    let cases = [
        ("GetStep", get_step(&in_many), get_step(&in_few)),
        (
            "ListTranslationWork, page of 50",
            requests::list_translation_work(),
            requests::list_translation_work(),
        ),
    ];
    let mut lines = Vec::new();
    for (call, requests_to_many, requests_to_few) in cases {
        let a = Contender {
            server: &many,
            requests: requests_to_many,
        };
        let b = Contender {
            server: &few,
            requests: requests_to_few,
        };
        let what = format!("{call}, 1,000,000 steps against 1,000");
        let rounds = Rounds::run((&a, &b), timing, CONNECTIONS, None).await;
        lines.push(Line::new(what, testbed.kind(), TARGET, rounds));
    }
    lines
}
