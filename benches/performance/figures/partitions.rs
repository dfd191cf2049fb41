//! GetStep, CreateStep and UpdateStep on tables in 16 partitions by account, compared with
//! tables without partitions. Each partition has rows of other accounts: PostgreSQL chooses
//! other plans while most partitions are empty.

use expertise::{config::DatabaseUrl, store};

use super::super::{
    compare::{Contender, Rounds, Timing},
    figures::bulk_insert,
    fixture::{Fixture, IdSource},
    requests,
    table::Line,
    testbed::{Kind, Program, Testbed},
};

/// Its name on the command line.
pub const NAME: &str = "partitions";
const TARGET: f64 = 0.9;
const PARTITIONS: u16 = 16;
const OTHER_ACCOUNTS: usize = 200;
const STEPS_OF_OTHERS: usize = 500;

/// Measures each call; only for PostgreSQL.
pub async fn measure(testbed: &Testbed, timing: Timing) -> Vec<Line> {
    if testbed.kind() != Kind::Postgres {
        return Vec::new();
    }
    let names = ["partitioned", "unpartitioned"];
    let [parts_database, whole_database] = names.map(|name| testbed.make_database(name));
    let url = DatabaseUrl::parse(&parts_database).expect("the URL of a database");
    let created = store::migrate_partitioned(&url, PARTITIONS).await;
    created.expect("the schema");
    let create = |name, database| {
        Fixture::create_in(testbed, Program::Service, name, database, IdSource::Server)
    };
    let (parts, in_parts) = create(names[0], parts_database.clone()).await;
    let (whole, in_whole) = create(names[1], whole_database.clone()).await;
    for database in [&parts_database, &whole_database] {
        bulk_insert::add_accounts(database, OTHER_ACCOUNTS, STEPS_OF_OTHERS).await;
        testbed.run_maintenance(database).await;
    }
    let cases = [
        (
            "GetStep",
            [&in_parts, &in_whole].map(|fixture| requests::get_step(&fixture.steps)),
        ),
        (
            "CreateStep",
            [&in_parts, &in_whole].map(|fixture| requests::create_step(&fixture.empty)),
        ),
        (
            "UpdateStep",
            [&in_parts, &in_whole].map(|fixture| requests::update_step(&fixture.steps)),
        ),
    ];
    let mut lines = Vec::new();
    for (call, [requests_to_parts, requests_to_whole]) in cases {
        let a = Contender {
            server: &parts,
            requests: requests_to_parts,
        };
        let b = Contender {
            server: &whole,
            requests: requests_to_whole,
        };
        let what = format!("{call}, {PARTITIONS} partitions against none");
        let rounds = Rounds::run((&a, &b), timing, timing.connections, None).await;
        lines.push(Line::new(what, testbed.kind(), TARGET, rounds));
    }
    lines
}
