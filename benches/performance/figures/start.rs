//! The time from exec to the first response, on an existing database.

use std::time::Instant;

use expertise::proto::v1::GetStepRequest;

use super::super::{
    compare::median,
    fixture,
    load::Client,
    requests::frame,
    table::Figure,
    testbed::{Program, Testbed},
};

/// Its name on the command line.
pub const NAME: &str = "start";
const STARTS: usize = 10;
/// The target is the larger of this time and [`TARGET_FACTOR`] times that of the floor.
const TARGET_MS: f64 = 100.0;
const TARGET_FACTOR: f64 = 3.0;

/// Starts the service and the floor in turn.
pub async fn measure(testbed: &Testbed) -> Vec<Figure> {
    let programs = [(Program::Service, "start"), (Program::Floor, "start-floor")];
    let mut prepared = Vec::new();
    for (program, name) in programs {
        let database = testbed.make_database(name);
        let server = testbed.serve(program, name, &database);
        let step = fixture::tasks(&server, 1, 1).await[0].steps[0].clone();
        prepared.push((program, name, database, step, Vec::new()));
    }
    for _ in 0..STARTS {
        for (program, name, database, step, times) in &mut prepared {
            let request = frame(&GetStepRequest { guid: step.clone() });
            let begun = Instant::now();
            let server = testbed.serve(*program, name, database);
            let mut client = Client::connect(server.address()).await;
            client
                .call("/expertise.v1.StepService/GetStep", request)
                .await;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let mut times = prepared.into_iter().map(|(.., times)| median(times));
    let (service, floor) = times.next().zip(times.next()).expect("both");
    let target = TARGET_MS.max(TARGET_FACTOR * floor);
    vec![Figure::new(
        "Start, exec to the first response",
        testbed.kind(),
        format!("{target:.0} ms"),
        format!("{service:.0} ms (floor {floor:.0} ms)"),
        service <= target,
    )]
}
