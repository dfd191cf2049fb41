//! A pooler between the servers and PostgreSQL.

use crate::harness::{database, process::Process, through_pgbouncer};

#[test]
fn a_pooler_that_the_url_does_not_name_is_refused_at_the_start() {
    let Some(url) = database("unnamed") else {
        return;
    };
    let Some(pooled) = through_pgbouncer(&url) else {
        return;
    };
    let unnamed = pooled.replace("?pgbouncer=true", "");
    let refused = Process::try_start("unnamed", &[("EXPERTISE_DATABASE_URL", &unnamed)]);
    let Err(log) = refused else {
        panic!("it serves");
    };
    assert!(log.contains("add pgbouncer=true"), "{log}");
}
