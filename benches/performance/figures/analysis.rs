//! Validation, previews and references.

use std::sync::Arc;

use expertise::proto::v1::{ImportTaskRequest, Step, StepType, Task};
use futures_util::future::join;

use super::{
    super::{
        compare::{Contender, Rounds, Timing},
        fixture,
        floor::CreateMode,
        kit::sample,
        load::{Measured, Requests},
        requests,
        table::{Figure, Line},
        testbed::{Program, Server, Testbed},
    },
    bulk_insert,
};

/// Its name on the command line.
pub const NAME: &str = "analysis";
const STEPS: usize = 100;
const QUESTIONS: usize = 20;
const CONDITIONS: usize = 60;
const MANY_STEPS: usize = 10_000;
/// The target of the rate against that of a floor that reads the rows.
const TARGET: f64 = 0.5;
/// The target of the processor time of a call, in milliseconds.
const MAX_CPU_MS: f64 = 3.0;
/// The target of the steps validated a second, in a large guide against a small one.
const TARGET_PER_STEP: f64 = 0.8;
/// Conditions of the hard guide, over [`HARD_VARIABLES`].
const HARD_CONDITIONS: usize = 999;
const HARD_VARIABLES: usize = 100;
/// The target of the median of other calls beside the hard guide, against a quiet server.
const MAX_SLOWDOWN: f64 = 2.0;
/// Connections that read beside the hard guide.
const READERS: usize = 4;
const REFERENCES_TARGET: f64 = 0.85;
const MILLION: usize = 1_000_000;

/// Compares ValidateTask and PreviewTask with a floor that reads the rows of the same guide,
/// and ListReferences in a large account with that in a small one.
pub async fn measure_rates(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let database = testbed.make_database("analysis");
    let service = testbed.serve(Program::Service, "analysis", &database);
    let guide = import(&service, "Guide", guide(STEPS)).await;
    testbed.run_maintenance(&database).await;
    let floor_database = testbed.make_database("analysis-floor");
    let floor = testbed.serve(
        Program::Floor(CreateMode::OneStatement),
        "analysis-floor",
        &floor_database,
    );
    let floor_guides = fixture::tasks(&floor, 1, STEPS).await;
    bulk_insert::copy_conditions(&database, &floor_database).await;
    testbed.run_maintenance(&floor_database).await;
    let mut lines = Vec::new();
    type MakeRequests = fn(&str) -> Arc<Requests>;
    let calls: [(&str, MakeRequests); 2] = [
        ("ValidateTask", requests::validate_task),
        ("PreviewTask", requests::preview_task),
    ];
    for (call, requests) in calls {
        let a = Contender {
            server: &service,
            requests: requests(&guide.guid),
        };
        let b = Contender {
            server: &floor,
            requests: requests(&floor_guides[0].guid),
        };
        let rounds = Rounds::run((&a, &b), timing, timing.connections, None).await;
        let what = format!("{call}, {STEPS} steps with {CONDITIONS} conditions");
        lines.push(Line::new(what, testbed.kind(), TARGET, rounds));
    }
    lines.push(references(testbed, timing).await);
    lines
}

/// A page of references in an account with a million steps, against a thousand.
async fn references(testbed: &Testbed, timing: Timing) -> Line {
    let names = ["few-references", "many-references"];
    let [few_database, many_database] = names.map(|name| testbed.make_database(name));
    let few = testbed.serve(Program::Service, names[0], &few_database);
    let many = testbed.serve(Program::Service, names[1], &many_database);
    for server in [&few, &many] {
        for number in 0..10 {
            import(server, &format!("Guide {number}"), guide(STEPS)).await;
        }
    }
    bulk_insert::add_steps(&many_database, MILLION, STEPS).await;
    bulk_insert::add_symbols(&many_database, MILLION).await;
    testbed.run_maintenance(&few_database).await;
    testbed.run_maintenance(&many_database).await;
    let a = Contender {
        server: &many,
        requests: requests::list_references(&fixture::account_wide_name(0)),
    };
    let b = Contender {
        server: &few,
        requests: requests::list_references(&fixture::account_wide_name(0)),
    };
    let rounds = Rounds::run((&a, &b), timing, timing.connections, None).await;
    let what = "ListReferences, page of 50, 1,000,000 steps against 1,000";
    Line::new(what, testbed.kind(), REFERENCES_TARGET, rounds)
}

/// Measures processor time, large guides, and other calls beside the hard guide.
pub async fn measure_figures(testbed: &Testbed, timing: Timing) -> Vec<Figure> {
    let database = testbed.make_database("analysis-figures");
    let server = testbed.serve(Program::Service, "analysis-figures", &database);
    let small = import(&server, "Small", guide(STEPS)).await;
    let large = import(&server, "Large", guide(MANY_STEPS)).await;
    let hard = import(&server, "Hard", hard_guide()).await;
    testbed.run_maintenance(&database).await;
    let one = timing.spec(1);
    let validate = |task: &Task| requests::validate_task(&task.guid);
    let of_small = server.load(&validate(&small), one).await;
    let of_large = server.load(&validate(&large), one).await;
    let preview = server.load(&requests::preview_task(&small.guid), one).await;
    let figure = |what: String, target: String, measured: String, reached: bool| {
        Figure::new(what, testbed.kind(), target, measured, reached)
    };
    let mut figures = Vec::new();
    for (call, measured) in [("ValidateTask", &of_small), ("PreviewTask", &preview)] {
        let cpu = measured.per_call(measured.cpu.server) / 1e3;
        figures.push(figure(
            format!("{call}, {STEPS} steps with {CONDITIONS} conditions, CPU"),
            format!("{MAX_CPU_MS} ms"),
            format!("{cpu:.2} ms"),
            cpu <= MAX_CPU_MS,
        ));
    }
    let per_step = of_large.rate() * MANY_STEPS as f64 / (of_small.rate() * STEPS as f64);
    figures.push(figure(
        "ValidateTask, steps a second, guide of 10,000 against 100".to_owned(),
        format!("{TARGET_PER_STEP:.2} at least"),
        format!("{per_step:.2}"),
        per_step >= TARGET_PER_STEP,
    ));
    let (quiet, beside, validations) = beside_hard_guide(&server, &small, &hard, timing).await;
    let cpu = validations.per_call(validations.cpu.server) / 1e3;
    figures.push(figure(
        format!(
            "GetStep, median beside ValidateTask of {HARD_CONDITIONS} conditions over \
             {HARD_VARIABLES} variables (at most {cpu:.0} ms CPU)"
        ),
        format!("{:.2} ms", MAX_SLOWDOWN * quiet),
        format!("{beside:.2} ms"),
        beside <= MAX_SLOWDOWN * quiet,
    ));
    figures
}

/// The median of GetStep in milliseconds on a quiet server, and beside one client that has
/// the hard guide validated; and what that client measured.
async fn beside_hard_guide(
    server: &Server,
    small: &Task,
    hard: &Task,
    timing: Timing,
) -> (f64, f64, Measured) {
    let read: Arc<Requests> = requests::get_step(&small.steps);
    let readers = timing.spec(READERS);
    let quiet = server.load(&read, readers).await.percentile(0.5);
    let validate = requests::validate_task(&hard.guid);
    let one = timing.spec(1);
    let (beside, validations) =
        join(server.load(&read, readers), server.load(&validate, one)).await;
    (quiet, beside.percentile(0.5), validations)
}

async fn import(server: &Server, name: &str, steps: Vec<Step>) -> Task {
    let request = ImportTaskRequest {
        document: Some(fixture::document(name, steps)),
        ..ImportTaskRequest::default()
    };
    let answer = server.tasks().import_task(request).await;
    let task = answer.expect("it is imported").into_inner().task;
    task.expect("a task")
}

/// A guide: of each 100 steps 20 ask, 60 have a condition, and 20 are always shown.
fn guide(steps: usize) -> Vec<Step> {
    (0..steps).map(|index| guide_step(index, steps)).collect()
}

fn guide_step(index: usize, steps: usize) -> Step {
    let (hundred, place) = (index / STEPS, index % STEPS);
    let question = |place: usize| hundred * QUESTIONS + place % QUESTIONS;
    if place < QUESTIONS {
        return asking(question(place));
    }
    let mut step = fixture::step(index);
    if index + 1 == steps {
        step.r#type = StepType::End.into();
        step.cost = None;
    }
    if place < QUESTIONS + CONDITIONS {
        let key = if place % 2 == 0 { "on" } else { "off" };
        step.dependencies = Some(sample::all_of(vec![sample::when(
            &fixture::account_wide_name(question(place)),
            "=",
            key,
        )]));
    }
    step
}

fn asking(question: usize) -> Step {
    Step {
        product_id: Some(fixture::PRODUCT),
        ..sample::observation_asking(sample::question(
            &fixture::variable(question),
            &["on", "off"],
        ))
    }
}

/// A guide with a step whose visibility depends on 333 groups of three conditions each, over
/// [`HARD_VARIABLES`].
fn hard_guide() -> Vec<Step> {
    let mut steps: Vec<Step> = (0..HARD_VARIABLES).map(asking).collect();
    // A linear congruential generator: each run has the same guide.
    let mut state = 7_usize;
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % limit
    };
    let clauses = (0..HARD_CONDITIONS / 3).map(|_| {
        let literals = (0..3).map(|_| {
            let key = if below(2) == 0 { "on" } else { "off" };
            sample::when(&fixture::account_wide_name(below(HARD_VARIABLES)), "=", key)
        });
        sample::nested(sample::any_of(literals.collect()))
    });
    steps.push(Step {
        dependencies: Some(sample::all_of(clauses.collect())),
        ..fixture::step(0)
    });
    steps.push(Step {
        r#type: StepType::End.into(),
        cost: None,
        ..fixture::step(1)
    });
    steps
}
