//! Servers and databases of PostgreSQL that cannot be used: the error names the cause and
//! what to do.

use sqlx::{Connection, Executor, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::databases::{assert_refused_with, block_on, cluster, url};
use crate::{
    command::{Says, command},
    kit::postgres::execute,
    ops::authentication::certificates::{self, Authority, Pair},
};

/// The port of a server that speaks TLS with this certificate, and nothing else.
fn serve_tls(pair: &Pair) -> u16 {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("its address").port();
    let acceptor = pair.acceptor();
    std::thread::spawn(move || {
        block_on(async {
            server.set_nonblocking(true).expect("it is set");
            let server = tokio::net::TcpListener::from_std(server).expect("a listener");
            while let Ok((mut connection, _)) = server.accept().await {
                // It accepts the request for TLS.
                let _ = connection.read_exact(&mut [0; 8]).await;
                let _ = connection.write_all(b"S").await;
                let _ = acceptor.accept(connection).await;
            }
        });
    });
    port
}

#[test]
fn what_is_wrong_with_a_certificate_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let trusted = certificates::write(directory.path(), "ca.pem", authority.pem());
    let other = certificates::write(directory.path(), "other.pem", Authority::new().pem());
    for (pair, root, part) in [
        (
            authority.make("db.test"),
            &trusted,
            "is for another name: use a host name",
        ),
        (
            authority.make("localhost"),
            &other,
            "is from an untrusted CA: set sslrootcert",
        ),
        (
            authority.make_between("localhost", 1999, 2001),
            &trusted,
            "has expired or is not valid yet",
        ),
        (
            authority.make_authority("localhost"),
            &trusted,
            "is a CA certificate (CA:TRUE): give it one with CA:FALSE",
        ),
    ] {
        let (port, root) = (serve_tls(&pair), root.display());
        let url =
            format!("postgres://ann@localhost:{port}/e?sslmode=verify-full&sslrootcert={root}");
        assert_refused_with(&url, &["its certificate", part]);
    }
}

/// Citus makes one of version 1.
#[test]
fn a_certificate_of_citus_is_named() {
    let pair = Pair {
        cert: include_str!("../ops/authentication/keys/citus_certificate.pem").to_owned(),
        key: include_str!("../ops/authentication/keys/citus_key.pem").to_owned(),
    };
    let url = format!("postgres://ann@localhost:{}/e", serve_tls(&pair));
    assert_refused_with(
        &url,
        &["like the ones that Citus generates", "set sslmode=disable"],
    );
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_database_that_is_not_in_utf_8_is_refused() {
    let cluster = cluster();
    let sql = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    execute(&cluster.url(), sql);
    let part = "the database has the encoding LATIN1, which cannot store every text";
    let url = cluster.url_of("latin");
    assert_refused_with(&url, &[part, "ENCODING 'UTF8'"]);
    let migrate = command(&["migrate"]).env("EXPERTISE_DATABASE_URL", &url);
    assert!(migrate.run().failure(1).contains(part));
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_url_without_a_database_is_named() {
    let cluster = cluster();
    let url = url(cluster, "ann:right", "");
    assert_refused_with(
        url.trim_end_matches('/'),
        &["the URL names no database", "end the URL with /DATABASE"],
    );
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_setting_of_the_session_that_is_unknown_is_named() {
    let url = cluster().url_of("e") + "?options=-cno_such_setting%3D1";
    assert_refused_with(&url, &["refuses a setting of the session: check options"]);
}

/// The server waits, because a connection may become free.
#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_limit_of_connections_is_named() {
    let cluster = cluster();
    for sql in [
        "CREATE USER eve CONNECTION LIMIT 0",
        "CREATE USER adam",
        "CREATE DATABASE narrow CONNECTION LIMIT 0",
    ] {
        execute(&cluster.url(), sql);
    }
    for (user, database, part) in [
        ("eve", "postgres", "with ALTER ROLE … CONNECTION LIMIT"),
        ("adam", "narrow", "with ALTER DATABASE … CONNECTION LIMIT"),
    ] {
        let server = command(&["--listen=127.0.0.1:0"])
            .env("EXPERTISE_DATABASE_URL", &url(cluster, user, database))
            .start();
        let line = server.next_error_line();
        line.says(&["waiting for the database", part]);
    }
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_statement_timeout_that_is_too_short_is_named() {
    let cluster = cluster();
    let url = cluster.make_database("hasty");
    // The migration waits for a table that another session is creating.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut other = runtime
        .block_on(PgConnection::connect(&url))
        .expect("a connection");
    for sql in [
        "ALTER DATABASE hasty SET statement_timeout = '500ms'",
        "BEGIN",
        "CREATE TABLE accounts ()",
    ] {
        runtime
            .block_on(other.execute(sql))
            .expect("it is executed");
    }
    assert_refused_with(
        &url,
        &["raise statement_timeout of the user with ALTER ROLE"],
    );
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_restored_part_of_a_dump_is_named() {
    let cluster = cluster();
    let url = cluster.make_database("partly");
    let migrate = command(&["migrate"]).env("EXPERTISE_DATABASE_URL", &url);
    migrate.run().succeeded();
    for sql in ["TRUNCATE server_keys", "DROP TABLE server_keys"] {
        execute(&url, sql);
        let part = "restore a full dump, or use an empty database";
        assert_refused_with(&url, &["a table or its rows are missing", part]);
    }
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn the_address_is_the_one_that_the_driver_uses() {
    let (url, port) = (cluster().url_of("e"), cluster().port());
    let elsewhere = format!("postgres://bob@db.test:1/e?host=127.0.0.1&port={port}");
    assert_refused_with(&elsewhere, &[&format!("postgres://127.0.0.1:{port}/e")]);
    let server = command(&["--listen=127.0.0.1:0"])
        .env("EXPERTISE_DATABASE_URL", "postgres:///e")
        .env("PGUSER", "postgres")
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", &port.to_string())
        .start();
    let line = server.start_line();
    assert!(
        line.contains(&format!("(postgres://127.0.0.1:{port}/e,")),
        "{url}: {line}"
    );
}
