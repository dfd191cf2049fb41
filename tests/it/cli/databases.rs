//! Databases that cannot be used: each is a one-line error that says what to do,
//! without the driver's text.

use std::{fs, os::unix::fs::PermissionsExt, sync::OnceLock};

use sqlx::{Connection, Executor, SqliteConnection};

use crate::{
    command::{Says, command},
    kit::{
        postgres::{Cluster, Stop, execute},
        runtime::runtime,
        sql::SqlConnection,
    },
    prelude::*,
};

/// The line of a server that did not start on this database, and ended with this code.
fn refused(url: &str, code: i32) -> String {
    let line = command(&["--listen=127.0.0.1:0"])
        .env("EXPERTISE_DATABASE_URL", url)
        .run()
        .failure(code);
    line.says_none_of(&[
        "sqlx",
        "SqliteError",
        "error returned from database",
        "PoolTimedOut",
        "secret",
    ]);
    line
}

/// The error about a schema that this version does not know.
const UNKNOWN_SCHEMA: &str = "does not know: run the version that created it";

pub(super) fn assert_refused_with(url: &str, parts: &[&str]) {
    refused(url, 1).says(parts);
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// A user who owns nothing.
const NOBODY: u32 = 65534;

#[test]
fn a_file_that_may_not_be_written_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("e.db");
    let url = format!("sqlite:{}", path.display());
    let migrate = command(&["migrate"]).env("EXPERTISE_DATABASE_URL", &url);
    migrate.run().succeeded();
    for (path, mode) in [(directory.path(), 0o777), (&path, 0o444)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(path, mode).expect("they are set");
    }
    let mut server = command(&["--listen=127.0.0.1:0"]).env("EXPERTISE_DATABASE_URL", &url);
    // Root may write any file.
    if rustix::process::geteuid().is_root() {
        server = server.run_by(NOBODY);
    }
    server.run().fails_with(2, &["this user may not write it"]);
}

#[test]
fn a_server_that_makes_the_schema_logs_where() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}/e.db", directory.path().display());
    let server = command(&["--listen=127.0.0.1:0", "--log-format=text"])
        .env("EXPERTISE_DATABASE_URL", &url)
        .start();
    let line = server.next_error_line();
    let made = format!("created the schema m0001 in {url}");
    assert!(line.ends_with(&made), "{line}");
}

#[test]
fn a_new_file_is_readable_by_its_owner_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("e.db");
    let url = format!("sqlite:{}", path.display());
    let server = command(&["--listen=127.0.0.1:0"])
        .env("EXPERTISE_DATABASE_URL", &url)
        .start();
    server.start_line();
    for file in ["e.db", "e.db-wal", "e.db-shm"] {
        let metadata = fs::metadata(directory.path().join(file)).expect(file);
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
#[ignore = "slow"]
fn another_writing_process_is_waited_for_and_then_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}/e.db", directory.path().display());
    command(&["migrate"])
        .env("EXPERTISE_DATABASE_URL", &url)
        .run()
        .succeeded();
    block_on(async {
        let mut file = SqliteConnection::connect(&url).await.expect("the file");
        file.execute("PRAGMA locking_mode=EXCLUSIVE")
            .await
            .expect("it is set");
        file.execute("BEGIN EXCLUSIVE").await.expect("it is locked");
        assert_refused_with(&url, &["another process has locked it"]);
    });
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_postgres_whose_tls_is_not_that_of_the_url_is_named() {
    let cluster = cluster();
    let url = cluster.url();
    let part = "the server offers no TLS: set it up there";
    for mode in ["require", "verify-full"] {
        assert_refused_with(&format!("{url}?sslmode={mode}"), &[part]);
    }
}

#[test]
fn a_postgres_whose_tls_fails_is_named() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for mut connection in server.incoming().flatten() {
            // It accepts the request for TLS, and then does not speak it.
            let _ = std::io::Read::read_exact(&mut connection, &mut [0; 8]);
            let _ = std::io::Write::write_all(&mut connection, b"Snothing of TLS");
            let _ = std::io::Read::read_to_end(&mut connection, &mut Vec::new());
        }
    });
    let url = format!("postgres://ann@127.0.0.1:{port}/e?sslmode=require");
    assert_refused_with(&url, &["the TLS handshake failed: check sslmode"]);
}

#[test]
fn a_server_that_is_not_postgres_is_named() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for connection in server.incoming().flatten() {
            let _ =
                std::io::Write::write_all(&mut &connection, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let url = format!("postgres://ann@127.0.0.1:{port}/e");
    assert_refused_with(&url, &["the server is not PostgreSQL: check host and port"]);
}

/// A cluster with a user `ann` who needs a password and owns nothing.
pub(super) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let mut cluster = Cluster::start("strict", &["fsync=off"]);
        for sql in ["CREATE USER ann PASSWORD 'right'", "CREATE DATABASE e"] {
            execute(&cluster.url(), sql);
        }
        let rules = cluster.data().join("pg_hba.conf");
        let trusting = fs::read_to_string(&rules).expect("the rules");
        let strict = format!("host all ann all scram-sha-256\nhost all bob all reject\n{trusting}");
        fs::write(&rules, strict).expect("the rules");
        cluster.stop(Stop::Fast);
        cluster.start_again();
        cluster
    })
}

pub(super) fn url(cluster: &Cluster, user: &str, database: &str) -> String {
    format!("postgres://{user}@127.0.0.1:{}/{database}", cluster.port())
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_wrong_password_is_named() {
    let cluster = cluster();
    for user in ["ann:secret", "ann", "bob:secret"] {
        let url = url(cluster, user, "e");
        assert_refused_with(
            &url,
            &["/e, which", "rejects the login: check user and password"],
        );
    }
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_password_file_that_others_may_read_is_named() {
    let cluster = cluster();
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join(".pgpass");
    fs::write(&file, "*:*:*:ann:right\n").expect("a file");
    let migrate = |user: &str| {
        command(&["migrate"])
            .env("EXPERTISE_DATABASE_URL", &url(cluster, user, "nothing"))
            .env("HOME", &home.path().display().to_string())
            .run()
            .failure(1)
    };
    let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
    set_mode(0o644).expect("it is set");
    let ignored = format!("the password file {} is ignored", file.display());
    let line = migrate("ann");
    line.says(&["rejects the login", &ignored, "its mode to 600"]);
    // The password of the URL is the wrong one.
    assert!(!migrate("ann:secret").contains("password file"));
    set_mode(0o600).expect("it is set");
    assert!(migrate("ann").contains("the database does not exist"));
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_database_that_is_not_there_is_named() {
    let cluster = cluster();
    let url = url(cluster, "ann:right", "nothing");
    assert_refused_with(
        &url,
        &[
            "/nothing, which",
            "the database does not exist: create it with createdb",
        ],
    );
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_user_who_may_not_create_tables_is_named() {
    let cluster = cluster();
    let sql = "REVOKE CREATE ON SCHEMA public FROM PUBLIC";
    execute(&cluster.url_of("e"), sql);
    let url = url(cluster, "ann:right", "e");
    assert_refused_with(&url, &["may not create tables: grant CREATE"]);
}

#[apply(on_both_databases)]
async fn a_database_of_another_application_is_not_touched(url: String) {
    if let Some(path) = url.strip_prefix("sqlite:") {
        fs::write(path, "").expect("a file");
    }
    let mut database = SqlConnection::open(&url).await;
    database.execute("CREATE TABLE tasks (id int)").await;
    assert_refused_with(&url, &["the database has tables of another application"]);
}

#[apply(on_both_databases)]
async fn a_schema_of_another_version_or_commit_is_not_touched(url: String) {
    let migrate = || command(&["migrate", "--database-url", &url]).run();
    migrate().succeeded();
    migrate().succeeded();
    let mut database = SqlConnection::open(&url).await;
    for change in [
        // A later version's, and one from before the first release.
        "INSERT INTO seaql_migrations VALUES ('m9999_next_year', 0)",
        "INSERT INTO seaql_migrations VALUES ('m0001_core', 0)",
        // The digest of another commit, and a missing digest.
        "UPDATE server_keys SET value = substr(value, 1, 31) WHERE name = 'schema'",
        "DELETE FROM server_keys WHERE name = 'schema'",
    ] {
        database.execute(change).await;
        assert_refused_with(&url, &[UNKNOWN_SCHEMA]);
        migrate().fails_with(1, &[UNKNOWN_SCHEMA]);
        let undo = "DELETE FROM seaql_migrations WHERE applied_at = 0";
        database.execute(undo).await;
    }
}
