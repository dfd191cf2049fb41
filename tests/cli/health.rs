//! `expertise health`: what a container asks of itself.

use crate::harness::{
    absent_postgres,
    cluster::{Cluster, Stop, free_port},
    expertise,
    process::ServerProcess,
};

#[test]
fn a_server_that_serves_is_well() {
    let process = ServerProcess::start("well", &[("EXPERTISE_DATABASE_URL", "sqlite::memory:")]);
    let address = process.address().to_string();
    let server = format!("http://{address}");
    let said = expertise(&["health", "--server", &server])
        .run()
        .succeeded();
    assert_eq!(said.stdout, format!("{server} is SERVING\n"));
    // With the settings of the server itself.
    let same = expertise(&["health"])
        .env("EXPERTISE_LISTEN", &address)
        .run()
        .succeeded();
    assert_eq!(same.stdout, said.stdout);
    expertise(&["health", "--listen", &address])
        .run()
        .succeeded();
    let json = expertise(&["health", "--output=json", "--server", &server]).run();
    assert_eq!(json.succeeded().json()["status"], "SERVING");
}

#[test]
fn every_address_is_reached_on_loopback() {
    let process = ServerProcess::start(
        "everywhere",
        &[
            ("EXPERTISE_DATABASE_URL", "sqlite::memory:"),
            ("EXPERTISE_LISTEN", "0.0.0.0:0"),
            ("EXPERTISE_AUTH", "header"),
        ],
    );
    let listen = process.address().to_string();
    let said = expertise(&["health"])
        .env("EXPERTISE_LISTEN", &listen)
        // Settings that the server was given in another way do not concern it.
        .env("EXPERTISE_JWT_SECRET", "short")
        .run()
        .succeeded();
    let port = process.address().port();
    assert_eq!(said.stdout, format!("http://127.0.0.1:{port} is SERVING\n"));
}

#[test]
fn the_settings_file_says_where_it_listens() {
    let process = ServerProcess::start("file", &[("EXPERTISE_DATABASE_URL", "sqlite::memory:")]);
    let file = format!("listen = \"{}\"\n", process.address());
    let health = expertise(&["health", "--config=e.toml"]).file("e.toml", &file);
    health.run().succeeded();
}

#[test]
fn a_server_that_is_not_there_is_one_line() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let line = expertise(&["health", "--server", &server]).run().failure(1);
    assert!(
        line.contains(&format!("nothing listens at {server}")),
        "{line}"
    );
}

#[test]
fn a_server_without_its_database_is_not_well() {
    let Some(mut cluster) = Cluster::start("unwell", &["fsync=off"]) else {
        return absent_postgres();
    };
    let url = cluster.url();
    let process = ServerProcess::start("unwell-server", &[("EXPERTISE_DATABASE_URL", &url)]);
    let address = process.address().to_string();
    let health = || expertise(&["health", "--listen", &address]).run();
    assert_eq!(health().code, Some(0));
    cluster.stop(Stop::Fast);
    // The server looks each second; the bound is the harness's.
    let said = std::iter::repeat_with(health).find(|said| said.code != Some(0));
    let line = said.expect("it is not well in the end").failure(1);
    assert!(
        line.contains("is NOT_SERVING: its database does not answer"),
        "{line}"
    );
}
