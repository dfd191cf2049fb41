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
    testbed::{Program, Server, Testbed},
};
use super::{analysis, delete_step};

const TARGET: f64 = 0.95;

/// Compares both builds on the selected [`ROWS`] and [`WITH_CONDITIONS`], on deletions and on analysis.
pub async fn measure(testbed: &Testbed, options: &Options) -> Vec<Line> {
    let timing = options.timing();
    let rows = ROWS.iter().map(|row| (row.name, row.call, row.requests));
    let rows: Vec<_> = rows
        .chain(WITH_CONDITIONS)
        .filter(|(name, ..)| options.selects(name))
        .collect();
    let deletes = options.selects(delete_step::NAME);
    let analyzes = options.selects(analysis::NAME);
    if rows.is_empty() && !deletes && !analyzes {
        return Vec::new();
    }
    let (this, of_this) = Fixture::create(testbed, Program::Service, "this-build").await;
    let (other, of_other) = Fixture::create(testbed, Program::OtherBuild, "other-build").await;
    let mut measured: Vec<(String, [Arc<Requests>; 2])> = rows
        .into_iter()
        .map(|(_, call, requests)| (call.to_owned(), [requests(&of_this), requests(&of_other)]))
        .collect();
    if deletes {
        let spec = timing.spec(timing.connections);
        let seconds = (spec.warm_up + spec.time).as_secs_f64() * timing.rounds as f64;
        let count = (seconds * DELETIONS_PER_SECOND) as usize;
        let requests = [
            delete_imported_steps(&this, count).await,
            delete_imported_steps(&other, count).await,
        ];
        measured.push(("DeleteStep, over many tasks".to_owned(), requests));
    }
    if analyzes {
        let guides = [
            analysis::import_guide(&this, "Guide").await,
            analysis::import_guide(&other, "Guide").await,
        ];
        for (call, requests) in analysis::CALLS {
            let requests = guides.each_ref().map(|guide| requests(&guide.guid));
            measured.push((analysis::title(call), requests));
        }
        let requests = [requests::list_findings(), requests::list_findings()];
        measured.push(("ListFindings, the first page".to_owned(), requests));
    }
    let mut lines = Vec::new();
    for (call, [of_this, of_other]) in measured {
        let what = format!("{call}, this build against the other");
        let builds = [(&this, of_this), (&other, of_other)];
        lines.push(compare(what, testbed.kind(), TARGET, builds, timing).await);
    }
    lines
}

/// More than either build deletes.
const DELETIONS_PER_SECOND: f64 = 8_000.0;

/// DeleteStep of `count` imported steps. Consecutive ones are in different tasks.
async fn delete_imported_steps(server: &Server, count: usize) -> Arc<Requests> {
    let tasks = count.div_ceil(IMPORTED_STEPS);
    let tasks = fixture::tasks(server, tasks, IMPORTED_STEPS).await;
    let id = move |number: usize| {
        let task = &tasks[number % tasks.len()];
        task.steps[number / tasks.len()].clone()
    };
    requests::delete_step(count, id)
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
