//! A pooler between the server and PostgreSQL.

use super::start_pgbouncer;
use crate::{kit::postgres::shared_cluster, machine, service::Service};

#[test]
#[cfg_attr(no_pgbouncer, ignore = "no PgBouncer here")]
fn a_pooler_that_the_url_does_not_name_is_logged_at_the_start() {
    let _machine = machine::shared();
    let cluster = shared_cluster();
    let pgbouncer = start_pgbouncer(&cluster.make_database("unnamed"));
    let url = pgbouncer.url().replace("?pgbouncer=true", "");
    let service = Service::start("unnamed", &url, &[]);
    let log = service.process().log();
    assert!(log.contains("a connection pooler is between"), "{log}");
}
