//! 64 writers on SQLite, against a server that does nothing about the cost of a
//! statement and of a commit.

use super::super::{
    compare::{Contender, Patience, Rounds},
    floor::Creating,
    ground::{Ground, Kind, Program},
    requests,
    shelf::{Ids, Shelf},
    table::Line,
};

/// What picks it on the command line.
pub const KEY: &str = "writers";
const WRITERS: usize = 64;
const BAR: f64 = 3.0;

/// CreateStep over 1,000 tasks; for SQLite alone.
pub async fn measure(ground: &Ground, patience: Patience) -> Vec<Line> {
    if ground.kind() != Kind::Sqlite {
        return Vec::new();
    }
    let service = Shelf::fill(ground, Program::Service, "writers", Ids::Made);
    let (service, of_service) = service.await;
    let six = Program::Floor(Creating::SixStatements);
    let (six, of_six) = Shelf::fill(ground, six, "six", Ids::Made).await;
    let a = Contender {
        server: &service,
        requests: requests::create_step(&of_service.empty),
    };
    let b = Contender {
        server: &six,
        requests: requests::create_step(&of_six.empty),
    };
    let line = Line {
        what: format!("CreateStep, {WRITERS} writers"),
        kind: ground.kind(),
        bar: BAR,
        rounds: Rounds::take((&a, &b), patience, WRITERS, None).await,
    };
    line.tell();
    vec![line]
}
