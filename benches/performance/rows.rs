//! The comparisons of the service with the floor.

use std::sync::Arc;

use super::{
    compare::{Rounds, Timing},
    fixture::Fixture,
    load::Requests,
    requests,
    table::Line,
    testbed::{Kind, Program, Testbed},
};

/// The number of steps of one import.
pub const IMPORTED_STEPS: usize = 1_000;
/// The allowed ratio between the sizes of both responses.
const RESPONSE_SIZE_RATIO: std::ops::Range<f64> = 0.9..1.1;

/// A row of the table.
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// The call that it measures.
    pub call: &'static str,
    /// The target of the ratio, on SQLite and on PostgreSQL.
    targets: (f64, f64),
    pub requests: fn(&Fixture) -> Arc<Requests>,
}

/// All rows. Reads come first, before writes add data.
pub const ROWS: &[Row] = &[
    Row {
        name: "get_step",
        call: "GetStep, body of 1 KB",
        targets: (0.85, 0.85),
        requests: |fixture| requests::get_step(&fixture.steps),
    },
    Row {
        name: "get_task",
        call: "GetTask, 50 steps",
        targets: (1.0, 0.90),
        requests: |fixture| requests::get_task(&fixture.full),
    },
    Row {
        name: "list_steps",
        call: "ListSteps, 100 of 1 KB, no bodies",
        targets: (1.0, 0.85),
        requests: |fixture| requests::list_steps(&fixture.long),
    },
    Row {
        name: "list_steps_with_bodies",
        call: "ListSteps, 100 of 1 KB, with bodies",
        targets: (0.85, 0.80),
        requests: |fixture| requests::list_steps_with_bodies(&fixture.long),
    },
    Row {
        name: "export_task",
        call: "ExportTask, 1,000 steps of 1 KB",
        targets: (0.70, 0.70),
        requests: |fixture| requests::export_task(&fixture.large_guids()),
    },
    Row {
        name: "create_step_spread",
        call: "CreateStep, over 1,000 tasks",
        targets: (2.0, 0.80),
        requests: |fixture| requests::create_step(&fixture.empty),
    },
    Row {
        name: "create_step_one_task",
        call: "CreateStep, all on one task",
        targets: (2.5, 0.80),
        requests: |fixture| requests::create_step_of_one_task(&fixture.empty),
    },
    Row {
        name: "update_step",
        call: "UpdateStep, title by mask",
        targets: (2.5, 0.80),
        requests: |fixture| requests::update_step(&fixture.steps),
    },
    Row {
        name: "import_task",
        call: "ImportTask, 1,000 steps of 1 KB",
        targets: (0.75, 0.75),
        requests: |_| requests::import_task(IMPORTED_STEPS),
    },
    Row {
        name: "reimport_task",
        call: "ImportTask again, 1 of 1,000 steps changed",
        targets: (0.50, 0.50),
        requests: |fixture| requests::reimport_task(&fixture.large),
    },
    Row {
        name: "write_translations",
        call: "WriteTranslations, 100 of 1 KB",
        targets: (0.60, 0.60),
        requests: |fixture| requests::write_translations(&fixture.work),
    },
];

/// Measures `rows` on one kind of database.
pub async fn measure(testbed: &Testbed, rows: &[&Row], timing: Timing) -> Vec<Line> {
    if rows.is_empty() {
        return Vec::new();
    }
    let (service, of_service) = Fixture::create(testbed, Program::Service, "service").await;
    let (floor, of_floor) = Fixture::create(testbed, Program::Floor, "floor").await;
    let mut lines = Vec::new();
    for row in rows {
        let contenders = [(&service, &of_service), (&floor, &of_floor)];
        let contenders = contenders.map(|(server, fixture)| (server, (row.requests)(fixture)));
        let rounds = Rounds::run(&contenders, timing).await;
        let size_ratio = rounds.size_ratio();
        assert!(
            RESPONSE_SIZE_RATIO.contains(&size_ratio),
            "{}: responses of different sizes, ratio {size_ratio}",
            row.name
        );
        let target = target(testbed.kind(), row.targets);
        lines.push(Line::new(row.call, testbed.kind(), target, rounds));
    }
    lines
}

/// The target for this kind of database.
pub fn target(kind: Kind, (sqlite, postgres): (f64, f64)) -> f64 {
    match kind {
        Kind::Sqlite => sqlite,
        Kind::Postgres => postgres,
    }
}
