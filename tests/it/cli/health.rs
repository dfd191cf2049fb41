//! `expertise health`, as containers call it.

use crate::{
    command::command,
    kit::{
        deadline::{WAIT_TIMEOUT, poll_for},
        postgres::{Cluster, Stop},
        server::{Settings, TestServer},
    },
};

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_server_without_its_database_is_unhealthy() {
    let mut cluster = Cluster::start("unwell", &["fsync=off"]);
    let url = cluster.url();
    let process = TestServer::start_blocking(&Settings::new(&url));
    let address = process.address().to_string();
    let health = || command(&["health", "--listen", &address]).run();
    assert_eq!(health().code, Some(0));
    cluster.stop(Stop::Fast);
    // The server checks its database each second.
    let unhealthy = || Some(health()).filter(|output| output.code != Some(0));
    let output = poll_for(WAIT_TIMEOUT, unhealthy);
    output
        .expect("it is not well in the end")
        .fails_with(1, &["is NOT_SERVING: its database does not respond"]);
}
