//! DeleteStep against the floor. Each step can be deleted once, so both databases get many.

use super::{
    super::{
        compare::{Contender, Rounds, Timing},
        fixture,
        floor::CreateMode,
        requests,
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
/// Steps of a task.
const EACH: usize = 10;
/// More steps than either server deletes in a second.
const PER_SECOND: f64 = 20_000.0;

/// Measures deletions of steps with a body of 1 KB. Concurrent ones are of several tasks.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    let spec = timing.spec(timing.connections);
    let seconds = (spec.warm_up + spec.time).as_secs_f64() * timing.rounds as f64;
    let tasks = (seconds * PER_SECOND) as usize / EACH;
    let mut servers = Vec::new();
    for (name, program) in [
        ("deletions", Program::Service),
        ("deletions_floor", Program::Floor(CreateMode::OneStatement)),
    ] {
        let database = testbed.make_database(name);
        let server = testbed.serve(program, name, &database);
        fixture::tasks(&server, 1, EACH).await;
        bulk_insert::add_steps(&database, tasks * EACH, EACH).await;
        testbed.run_maintenance(&database).await;
        servers.push(server);
    }
    let requests = || {
        let id = move |number| bulk_insert::id(number % tasks * EACH + number / tasks + 1);
        requests::delete_step(tasks * EACH, id)
    };
    let [a, b] = [&servers[0], &servers[1]].map(|server| Contender {
        server,
        requests: requests(),
    });
    let rounds = Rounds::run((&a, &b), timing, timing.connections, None).await;
    let (what, kind) = ("DeleteStep, over many tasks", testbed.kind());
    vec![Line::new(what, kind, target(kind, TARGETS), rounds)]
}
