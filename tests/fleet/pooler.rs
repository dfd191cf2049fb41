//! A pooler between the servers and PostgreSQL.

use crate::harness::{database, process::ServerProcess, through_pgbouncer};

#[test]
fn a_pooler_that_the_url_does_not_name_is_noticed_at_the_start() {
    let Some(url) = database("unnamed") else {
        return;
    };
    let Some(pooled) = through_pgbouncer(&url) else {
        return;
    };
    let unnamed = pooled.replace("?pgbouncer=true", "");
    let server = ServerProcess::start("unnamed", &[("EXPERTISE_DATABASE_URL", &unnamed)]);
    let log = server.log();
    assert!(log.contains("a connection pooler is between"), "{log}");
}
