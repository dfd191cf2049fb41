//! 64 writers on SQLite, compared with a server that sends six statements and commits
//! each call on its own.

use super::super::{
    compare::{Contender, Rounds, Timing},
    fixture::{Fixture, IdSource},
    floor::CreateMode,
    requests,
    table::Line,
    testbed::{Kind, Program, Testbed},
};

/// Its name on the command line.
pub const NAME: &str = "writers";
const WRITERS: usize = 64;
const TARGET: f64 = 3.0;

/// Measures CreateStep over 1,000 tasks; only for SQLite.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    if testbed.kind() != Kind::Sqlite {
        return Vec::new();
    }
    let service = Fixture::create(testbed, Program::Service, "writers", IdSource::Server);
    let (service, of_service) = service.await;
    let six = Program::Floor(CreateMode::SixStatements);
    let (six, of_six) = Fixture::create(testbed, six, "six", IdSource::Numbered).await;
    let a = Contender {
        server: &service,
        requests: requests::create_step(&of_service.empty),
    };
    let b = Contender {
        server: &six,
        requests: requests::create_step(&of_six.empty),
    };
    let what = format!("CreateStep, {WRITERS} writers");
    let rounds = Rounds::run((&a, &b), timing, WRITERS, None).await;
    vec![Line::new(what, testbed.kind(), TARGET, rounds)]
}
