//! Memory of the service: idle, and during calls with a body of 16 MB.

use expertise::proto::v1::{CreateStepRequest, GetStepRequest, Step};

use super::super::{
    fixture,
    table::Figure,
    testbed::{Program, Server, Testbed},
    usage,
};

/// Its name on the command line.
pub const NAME: &str = "memory";
const MIB: f64 = 1024.0 * 1024.0;
/// Target of the idle resident memory.
const MAX_IDLE_MIB: f64 = 25.0;
/// The size of the largest body in ASCII.
const BODY_BYTES: usize = 16_000_000;
/// Targets of the peak, in copies of the body.
const MAX_COPIES_CREATED: f64 = 3.5;
const MAX_COPIES_READ: f64 = 2.5;

/// Measures each figure in a new process, on the same database.
pub async fn measure(testbed: &Testbed) -> Vec<Figure> {
    let name = "memory";
    let database = testbed.make_database(name);
    let first = testbed.serve(Program::Service, name, &database);
    let task = fixture::tasks(&first, 1, 1).await.remove(0);
    drop(first);
    let start = || testbed.serve(Program::Service, name, &database);
    let figure = |what: &str, target: String, measured: String, reached: bool| {
        Figure::new(what, testbed.kind(), target, measured, reached)
    };
    let copies = |what: &str, target: f64, measured: f64| {
        figure(
            what,
            format!("{target} copies"),
            format!("{measured:.1} copies"),
            measured <= target,
        )
    };

    let server = start();
    get(&server, &task.steps[0]).await;
    let idle = server.process().resident() as f64 / MIB;
    let idle = figure(
        "Memory, idle after one call",
        format!("{MAX_IDLE_MIB} MiB"),
        format!("{idle:.1} MiB"),
        idle <= MAX_IDLE_MIB,
    );
    drop(server);

    let server = start();
    get(&server, &task.steps[0]).await;
    let (guid, created) = peak_copies(&server, create(&server, &task.guid)).await;
    let created = copies(
        "Memory, CreateStep with a body of 16 MB",
        MAX_COPIES_CREATED,
        created,
    );
    drop(server);

    let server = start();
    get(&server, &task.steps[0]).await;
    let ((), got) = peak_copies(&server, get(&server, &guid)).await;
    let got = copies("Memory, GetStep with a body of 16 MB", MAX_COPIES_READ, got);
    vec![idle, created, got]
}

/// The increase of the peak of memory during a call, in copies of the body.
async fn peak_copies<T>(server: &Server, call: impl Future<Output = T>) -> (T, f64) {
    let process = server.process();
    let before = process.resident();
    usage::reset_peak_memory(process.id());
    let answer = call.await;
    let peak = process.resident_peak().saturating_sub(before);
    (answer, peak as f64 / BODY_BYTES as f64)
}

async fn create(server: &Server, task: &str) -> String {
    let request = CreateStepRequest {
        step: Some(Step {
            task: task.to_owned(),
            body: Some(fixture::body(BODY_BYTES)),
            ..fixture::step(0)
        }),
        ..CreateStepRequest::default()
    };
    let answer = server.steps().create_step(request).await;
    let step = answer.expect("it is created").into_inner().step;
    step.expect("a step").guid
}

async fn get(server: &Server, guid: &str) {
    let request = GetStepRequest {
        guid: guid.to_owned(),
    };
    let answer = server.steps().get_step(request).await;
    answer.expect("it is there");
}
