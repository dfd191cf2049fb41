//! Memory of the service: idle, and while a body of 16 MB passes.

use expertise::proto::v1::{CreateStepRequest, GetStepRequest, Step};

use super::super::{
    ground::{Ground, Program, Server},
    shelf,
    table::Figure,
    watch,
};

/// What picks it on the command line.
pub const KEY: &str = "memory";
const MIB: f64 = 1024.0 * 1024.0;
/// Of resident memory, in MiB.
const IDLE: f64 = 25.0;
/// Bytes of the largest body, in ASCII.
const BODY: usize = 16_000_000;
/// At the peak.
const COPIES: f64 = 4.0;

/// On a database that has been used before, each time in a new process.
pub async fn measure(ground: &Ground) -> Vec<Figure> {
    let name = "memory";
    let database = ground.database(name);
    let first = ground.serve(Program::Service, name, &database);
    let task = shelf::tasks(&first, 1, 1).await.remove(0);
    drop(first);
    let again = || ground.serve(Program::Service, name, &database);
    let figure = |what: &str, bar: String, found: String, reached: bool| {
        let figure = Figure {
            what: what.to_owned(),
            kind: ground.kind(),
            bar,
            found,
            reached,
        };
        figure.tell();
        figure
    };
    let copies = |what: &str, found: f64| {
        let bar = format!("{COPIES} copies");
        figure(what, bar, format!("{found:.1} copies"), found <= COPIES)
    };

    let server = again();
    get(&server, &task.steps[0]).await;
    let idle = server.process().resident() as f64 / MIB;
    let idle = figure(
        "Memory, idle after one call",
        format!("{IDLE} MiB"),
        format!("{idle:.1} MiB"),
        idle <= IDLE,
    );
    drop(server);

    let server = again();
    get(&server, &task.steps[0]).await;
    let (guid, created) = passing(&server, create(&server, &task.guid)).await;
    let created = copies("Memory, CreateStep with a body of 16 MB", created);
    drop(server);

    let server = again();
    get(&server, &task.steps[0]).await;
    let ((), got) = passing(&server, get(&server, &guid)).await;
    let got = copies("Memory, GetStep with a body of 16 MB", got);
    vec![idle, created, got]
}

/// How many copies of the body were held at the peak of a call.
async fn passing<T>(server: &Server, call: impl Future<Output = T>) -> (T, f64) {
    let process = server.process();
    let before = process.resident();
    watch::forget_peak(process.id());
    let answer = call.await;
    let peak = watch::peak(process.id()).saturating_sub(before);
    (answer, peak as f64 / BODY as f64)
}

async fn create(server: &Server, task: &str) -> String {
    let request = CreateStepRequest {
        step: Some(Step {
            task: task.to_owned(),
            body: Some(shelf::body(BODY)),
            ..shelf::step(0)
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
