//! From exec to the first answered call, on an SQLite file that is there.

use std::time::Instant;

use expertise::proto::v1::GetStepRequest;

use super::super::{
    floor::Creating,
    ground::{Ground, Kind, Program},
    load::Client,
    requests::frame,
    shelf,
    table::Figure,
    watch::median,
};

/// What picks it on the command line.
pub const KEY: &str = "start";
const STARTS: usize = 10;
/// Milliseconds, or this many times what the floor takes, whichever is more.
const BAR: f64 = 100.0;
const TIMES: f64 = 3.0;

/// The service and the floor start in turn; for SQLite alone.
pub async fn measure(ground: &Ground) -> Vec<Figure> {
    if ground.kind() != Kind::Sqlite {
        return Vec::new();
    }
    let programs = [
        (Program::Service, "start"),
        (Program::Floor(Creating::Bare), "start-floor"),
    ];
    let mut known = Vec::new();
    for (program, name) in programs {
        let database = ground.database(name);
        let server = ground.serve(program, name, &database);
        let step = shelf::tasks(&server, 1, 1).await[0].steps[0].clone();
        known.push((program, name, database, step, Vec::new()));
    }
    for _ in 0..STARTS {
        for (program, name, database, step, times) in &mut known {
            let request = frame(&GetStepRequest { guid: step.clone() });
            let begun = Instant::now();
            let server = ground.serve(*program, name, database);
            let mut client = Client::connect(server.address()).await;
            client
                .call("/expertise.v1.StepService/GetStep", request)
                .await;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let mut times = known.into_iter().map(|(.., times)| median(times));
    let (service, floor) = times.next().zip(times.next()).expect("both");
    let bar = BAR.max(TIMES * floor);
    let figure = Figure {
        what: "Start, exec to the first answer".to_owned(),
        kind: ground.kind(),
        bar: format!("{bar:.0} ms"),
        found: format!("{service:.0} ms (floor {floor:.0} ms)"),
        reached: service <= bar,
    };
    figure.tell();
    vec![figure]
}
