//! DeleteStep against the floor. Each step can be deleted once, so both databases get many.

use super::{
    super::{
        compare::{Timing, compare},
        fixture, requests,
        rows::target,
        table::Line,
        testbed::{Program, Testbed},
    },
    bulk_insert,
};

/// Its name on the command line.
pub const NAME: &str = "delete_step";
/// The targets on SQLite and on PostgreSQL.
const TARGETS: (f64, f64) = (2.0, 0.75);
const STEPS_PER_TASK: usize = 10;
/// More than either server deletes.
const STEPS_PER_SECOND: f64 = 20_000.0;

/// Measures deletions of steps with a body of 1 KB. Consecutive ones are in different tasks.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let spec = timing.spec(timing.connections);
    let seconds = (spec.warm_up + spec.time).as_secs_f64() * timing.rounds as f64;
    let tasks = (seconds * STEPS_PER_SECOND) as usize / STEPS_PER_TASK;
    let mut servers = Vec::new();
    for (name, program) in [
        ("deletions", Program::Service),
        ("deletions_floor", Program::Floor),
    ] {
        let database = testbed.make_database(name);
        let server = testbed.serve(program, name, &database);
        fixture::tasks(&server, 1, STEPS_PER_TASK).await;
        bulk_insert::add_steps(&database, tasks * STEPS_PER_TASK, STEPS_PER_TASK).await;
        testbed.run_maintenance(&database).await;
        servers.push(server);
    }
    let requests = || {
        let id =
            move |number| bulk_insert::id(number % tasks * STEPS_PER_TASK + number / tasks + 1);
        requests::delete_step(tasks * STEPS_PER_TASK, id)
    };
    let contenders = [&servers[0], &servers[1]].map(|server| (server, requests()));
    let (what, kind) = ("DeleteStep, over many tasks", testbed.kind());
    vec![compare(what, kind, target(kind, TARGETS), contenders, timing).await]
}
