//! `expertise health`, as containers call it.

use crate::kit::{
    command::command,
    deadline::{WAIT_TIMEOUT, poll_for},
    postgres::{Cluster, Stop, free_port},
    server::{Settings, TestServer, in_memory},
};

#[test]
fn a_serving_server_is_healthy() {
    let process = TestServer::start_blocking(&in_memory());
    let address = process.address().to_string();
    let server = format!("http://{address}");
    let output = command(&["health", "--server", &server]).run().succeeded();
    assert_eq!(output.stdout, format!("{server} is SERVING\n"));
    // With the settings of the server itself.
    let same = command(&["health"])
        .env("EXPERTISE_LISTEN", &address)
        .run()
        .succeeded();
    assert_eq!(same.stdout, output.stdout);
    command(&["health", "--listen", &address]).run().succeeded();
    let json = command(&["health", "--format=json", "--server", &server]).run();
    assert_eq!(json.succeeded().json()["status"], "SERVING");
}

#[test]
fn a_wildcard_address_is_reached_on_loopback() {
    let settings = in_memory()
        .set("EXPERTISE_LISTEN", "0.0.0.0:0")
        .set("EXPERTISE_AUTH", "header");
    let process = TestServer::start_blocking(&settings);
    let listen = process.address().to_string();
    let output = command(&["health"])
        .env("EXPERTISE_LISTEN", &listen)
        // Other settings of the server do not matter here.
        .env("EXPERTISE_JWT_SECRET", "short")
        .run()
        .succeeded();
    let port = process.address().port();
    assert_eq!(
        output.stdout,
        format!("http://127.0.0.1:{port} is SERVING\n")
    );
}

#[test]
fn the_settings_file_says_where_it_listens() {
    let process = TestServer::start_blocking(&in_memory());
    let file = format!("listen = \"{}\"\n", process.address());
    let health = command(&["health", "--config=e.toml"]).file("e.toml", &file);
    health.run().succeeded();
}

#[test]
fn a_missing_server_is_reported_in_one_line() {
    let server = format!("http://127.0.0.1:{}", free_port());
    command(&["health", "--server", &server])
        .run()
        .fails_with(1, &[&format!("{server} refuses the connection: start")]);
}

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
        .fails_with(1, &["is NOT_SERVING: its database does not answer"]);
}
