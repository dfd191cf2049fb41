//! The calls that have a bar against the floor.

use std::sync::Arc;

use super::{
    compare::{Contender, Patience, Rounds},
    floor::Creating,
    ground::{Ground, Kind, Program},
    load::Requests,
    pgbench::Script,
    requests,
    shelf::{Ids, Shelf},
    table::Line,
};

/// Connections, where nothing else is said.
pub const CONNECTIONS: usize = 16;
/// Steps of an import.
const IMPORTED: usize = 1_000;
/// How far the answers of the two may differ in size.
const ALIKE: std::ops::Range<f64> = 0.9..1.1;

/// A row of the table.
pub struct Row {
    /// What picks it on the command line.
    pub key: &'static str,
    call: &'static str,
    /// The ratio to be reached on SQLite and on PostgreSQL.
    bars: (f64, f64),
    requests: fn(&Shelf) -> Arc<Requests>,
    script: Option<Script>,
}

/// All of them. Those that read come first, when there is little to read.
pub const ROWS: [Row; 7] = [
    Row {
        key: "get_step",
        call: "GetStep, body of 1 KB",
        bars: (0.80, 0.80),
        requests: |shelf| requests::get_step(&shelf.steps),
        script: Some(Script::GetStep),
    },
    Row {
        key: "get_task",
        call: "GetTask, 50 steps",
        bars: (0.75, 0.75),
        requests: |shelf| requests::get_task(&shelf.full),
        script: Some(Script::GetTask),
    },
    Row {
        key: "list_steps",
        call: "ListSteps, 100 of 1 KB, no bodies",
        bars: (0.70, 0.70),
        requests: |shelf| requests::list_steps(&shelf.long),
        script: Some(Script::ListSteps),
    },
    Row {
        key: "create_step_spread",
        call: "CreateStep, over 1,000 tasks",
        bars: (0.85, 0.75),
        requests: |shelf| requests::create_step(&shelf.empty),
        script: Some(Script::CreateStep),
    },
    Row {
        key: "create_step_one_task",
        call: "CreateStep, all on one task",
        bars: (0.85, 0.70),
        requests: |shelf| requests::create_step(&shelf.empty[shelf.empty.len() - 1..]),
        script: Some(Script::CreateStepOfOneTask),
    },
    Row {
        key: "update_step",
        call: "UpdateStep, title by mask",
        bars: (0.85, 0.75),
        requests: |shelf| requests::update_step(&shelf.steps),
        script: Some(Script::UpdateStep),
    },
    Row {
        key: "import_task",
        call: "ImportTask, 1,000 steps of 1 KB",
        bars: (0.50, 0.50),
        requests: |_| requests::import_task(IMPORTED),
        script: None,
    },
];

/// Measures these on one kind of database.
pub async fn measure(ground: &Ground, rows: &[&Row], patience: Patience) -> Vec<Line> {
    if rows.is_empty() {
        return Vec::new();
    }
    let database = "floor";
    let service = Shelf::fill(ground, Program::Service, "service", Ids::Made);
    let (service, of_service) = service.await;
    let floor = Program::Floor(Creating::Bare);
    let (floor, of_floor) = Shelf::fill(ground, floor, database, Ids::Numbered).await;
    let connections = patience.connections;
    let mut lines = Vec::new();
    for row in rows {
        let a = Contender {
            server: &service,
            requests: (row.requests)(&of_service),
        };
        let b = Contender {
            server: &floor,
            requests: (row.requests)(&of_floor),
        };
        let pgbench = ground.cluster().zip(row.script);
        let pgbench = pgbench.map(|(cluster, script)| {
            move || script.run(cluster, database, connections, patience.turn)
        });
        let pgbench = pgbench.as_ref().map(|run| run as &dyn Fn() -> f64);
        let rounds = Rounds::take((&a, &b), patience, connections, pgbench).await;
        let sizes = rounds.sizes();
        assert!(
            ALIKE.contains(&sizes),
            "{}: other answers, {sizes}",
            row.key
        );
        let bar = match ground.kind() {
            Kind::Sqlite => row.bars.0,
            Kind::Postgres => row.bars.1,
        };
        let line = Line {
            what: row.call.to_owned(),
            kind: ground.kind(),
            bar,
            rounds,
        };
        line.tell();
        lines.push(line);
    }
    lines
}
