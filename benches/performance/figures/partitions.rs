//! GetStep, CreateStep and UpdateStep on tables in 16 partitions by account, compared with
//! tables without partitions. Each partition has rows of other accounts: PostgreSQL chooses
//! other plans while most partitions are empty.

use std::sync::Arc;

use expertise::{
    config::{DatabaseUrl, TableLayout},
    store,
};

use super::super::{
    compare::{Timing, compare},
    figures::bulk_insert,
    fixture::Fixture,
    load::Requests,
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
    let created = store::migrate_with_layout(&url, TableLayout::Partitioned(PARTITIONS)).await;
    created.expect("the schema");
    let create = |name, database| Fixture::create_in(testbed, Program::Service, name, database);
    let (parts, in_parts) = create(names[0], &parts_database).await;
    let (whole, in_whole) = create(names[1], &whole_database).await;
    for database in [&parts_database, &whole_database] {
        bulk_insert::add_accounts(database, OTHER_ACCOUNTS, STEPS_OF_OTHERS).await;
        testbed.run_maintenance(database).await;
    }
    type MakeRequests = fn(&Fixture) -> Arc<Requests>;
    let calls: [(&str, MakeRequests); 3] = [
        ("GetStep", |fixture| requests::get_step(&fixture.steps)),
        ("CreateStep", |fixture| {
            requests::create_step(&fixture.empty)
        }),
        ("UpdateStep", |fixture| {
            requests::update_step(&fixture.steps)
        }),
    ];
    let mut lines = Vec::new();
    for (call, requests) in calls {
        let what = format!("{call}, {PARTITIONS} partitions against none");
        let contenders = [(&parts, requests(&in_parts)), (&whole, requests(&in_whole))];
        lines.push(compare(what, testbed.kind(), TARGET, contenders, timing).await);
    }
    lines
}
