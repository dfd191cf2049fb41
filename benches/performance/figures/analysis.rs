//! Validation and previews against a floor that reads the rows of the same guide.

use std::sync::Arc;

use expertise::proto::v1::{ImportTaskRequest, Step, StepType, Task};

use super::{
    super::{
        compare::{Timing, compare},
        fixture,
        kit::sample,
        load::Requests,
        requests,
        table::Line,
        testbed::{Program, Server, Testbed},
    },
    bulk_insert,
};

/// Its name on the command line.
pub const NAME: &str = "analysis";
/// The steps of a guide, of which some ask and some have a condition.
pub const STEPS: usize = 100;
const QUESTIONS: usize = 20;
const CONDITIONS: usize = 60;
/// The target of the rate against that of the floor.
const TARGET: f64 = 0.5;
/// Gives the floor's steps conditions and answers, which its import leaves out.
const ADD_CONDITIONS: &str = "UPDATE steps SET \
     dependencies = '{\"all\":[{\"path\":\"components.1204.state_1\",\"op\":\"=\",\"target\":\"on\"}]}', \
     feedback_config = '{\"name\":\"state_1\",\"values\":[{\"key\":\"on\"},{\"key\":\"off\"}]}'";

type MakeRequests = fn(&str) -> Arc<Requests>;

/// The calls that analyze one guide.
pub const CALLS: [(&str, MakeRequests); 2] = [
    ("ValidateTask", requests::validate_task),
    ("PreviewTask", requests::preview_task),
];

/// The call and the guide that it analyzes, for a line of the table.
pub fn title(call: &str) -> String {
    format!("{call}, {STEPS} steps with {CONDITIONS} conditions")
}

/// Compares ValidateTask and PreviewTask.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let database = testbed.make_database("analysis");
    let service = testbed.serve(Program::Service, "analysis", &database);
    let guide = import_guide(&service, "Guide").await;
    testbed.run_maintenance(&database).await;
    let floor_database = testbed.make_database("analysis-floor");
    let floor = testbed.serve(Program::Floor, "analysis-floor", &floor_database);
    let floor_guide = fixture::tasks(&floor, 1, STEPS).await.remove(0);
    bulk_insert::execute(&floor_database, ADD_CONDITIONS).await;
    testbed.run_maintenance(&floor_database).await;
    let mut lines = Vec::new();
    for (call, requests) in CALLS {
        let what = title(call);
        let contenders = [
            (&service, requests(&guide.guid)),
            (&floor, requests(&floor_guide.guid)),
        ];
        lines.push(compare(what, testbed.kind(), TARGET, contenders, timing).await);
    }
    lines
}

/// Imports a guide in which 20 steps ask, 60 have a condition, and 20 are always shown.
pub async fn import_guide(server: &Server, name: &str) -> Task {
    let request = ImportTaskRequest {
        document: Some(fixture::document(name, (0..STEPS).map(step).collect())),
        ..ImportTaskRequest::default()
    };
    let answer = server.tasks().import_task(request).await;
    let task = answer.expect("it is imported").into_inner().task;
    task.expect("a task")
}

fn step(index: usize) -> Step {
    let question = index % QUESTIONS;
    if index < QUESTIONS {
        let variable = fixture::variable(question);
        return Step {
            product_id: Some(fixture::PRODUCT),
            ..sample::observation_asking(sample::question(&variable, &["on", "off"]))
        };
    }
    let mut step = fixture::step(index);
    if index + 1 == STEPS {
        step.r#type = StepType::End.into();
        step.cost = None;
    }
    if index < QUESTIONS + CONDITIONS {
        let key = if index.is_multiple_of(2) { "on" } else { "off" };
        let variable = fixture::account_wide_name(question);
        step.dependencies = Some(sample::all_of(vec![sample::when(&variable, "=", key)]));
    }
    step
}
