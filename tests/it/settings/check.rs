//! `config --check`: whether a server could start, and that nothing is changed.

use std::fs;

use crate::kit::{
    certificates::Authority,
    command::{Command, command},
    postgres::{free_port, in_a_runtime, shared_cluster},
};
use sqlx::{Connection, PgConnection};

fn check(url: &str, args: &[&str]) -> Command {
    let args = [&["config", "--check"], args].concat();
    command(&args).env("EXPERTISE_DATABASE_URL", url)
}

#[test]
fn a_missing_file_could_be_created_and_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = check("sqlite:e.db", &[])
        .in_directory(directory.path())
        .run();
    let line = output.succeeded().stdout;
    let expected = "`expertise serve` can start: it creates the schema (m0001) in sqlite:e.db\n";
    assert_eq!(line, expected);
    assert_eq!(fs::read_dir(directory.path()).expect("it").count(), 0);
    let line = check("sqlite:e.db", &["--migrate=false"]).run().failure(2);
    assert!(line.contains("the file e.db does not exist"), "{line}");
    let line = check("sqlite:/sys/e.db", &[]).run().failure(2);
    assert!(line.contains("may not write it or create files"), "{line}");
}

#[test]
fn a_database_of_this_version_is_found_and_left_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}", directory.path().join("e.db").display());
    let migrate = command(&["migrate", "--database-url", &url]).run();
    migrate.succeeded();
    let before = fs::read(directory.path().join("e.db")).expect("a file");
    let line = check(&url, &["--migrate=false"]).run().succeeded().stdout;
    assert!(line.contains("it finds the schema up to date"), "{line}");
    assert_eq!(fs::read_dir(directory.path()).expect("it").count(), 1);
    let after = fs::read(directory.path().join("e.db")).expect("a file");
    assert!(before == after, "the file has changed");
}

#[test]
fn every_cause_has_a_line() {
    let port = free_port();
    let key = Authority::new().make("localhost").key;
    let settings = [
        ("EXPERTISE_AUTH", "jwt"),
        ("EXPERTISE_JWT_PUBLIC_KEY_FILE", "nowhere.pem"),
        ("EXPERTISE_JWT_ISSUER", "https://issuer.test"),
        ("EXPERTISE_JWT_AUDIENCE", "expertise"),
        ("EXPERTISE_TLS_CERT_FILE", "key.pem"),
    ];
    let url = format!("postgres://ann:secret@127.0.0.1:{port}/e");
    let output = check(&url, &["--tls-key-file=key.pem"])
        .envs(&settings)
        .file("key.pem", &key)
        .run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    let lines: Vec<&str> = output.stderr.lines().collect();
    let parts = [
        "EXPERTISE_TLS_CERT_FILE is \"key.pem\": it must be certificates in PEM",
        "EXPERTISE_JWT_PUBLIC_KEY_FILE is \"nowhere.pem\": it must be a public key in PEM",
        "which cannot be reached: the connection is refused",
    ];
    assert_eq!(lines.len(), parts.len(), "{}", output.stderr);
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.starts_with("expertise: EXPERTISE_"), "{line}");
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
}

#[test]
fn every_tls_file_of_postgres_has_a_line() {
    let url = "postgres://db/e?sslmode=verify-full&sslkey=/no/such.key&ssl-root-cert=ca.pem";
    let output = check(url, &[])
        .env("PGSSLCERT", "empty.pem")
        .file("empty.pem", "hush")
        .file(
            "ca.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        )
        .run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    let expected = "\
        expertise: ssl-root-cert in EXPERTISE_DATABASE_URL is \"ca.pem\": it must be certificates of \
        authorities in PEM: one is malformed\n\
        expertise: PGSSLCERT is \"empty.pem\": it must be certificates in PEM, first the one that the \
        key belongs to: it has none\n\
        expertise: sslkey in EXPERTISE_DATABASE_URL is \"/no/such.key\": it must be a private key in \
        PEM: No such file or directory (os error 2)\n";
    assert_eq!(output.stderr, expected);
}

#[test]
fn every_wrong_setting_has_a_line() {
    let file = "jwt_audience = \"\"\nlog_format = \"xml\"\n";
    let settings = [
        ("EXPERTISE_REQUEST_TIMEOUT", "1"),
        ("EXPERTISE_MIGRATE", "perhaps"),
    ];
    let output = check("mysql://h/d", &["--config=e.toml"])
        .envs(&settings)
        .file("e.toml", file)
        .run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    let lines: Vec<&str> = output.stderr.lines().collect();
    for part in [
        "EXPERTISE_DATABASE_URL is",
        "EXPERTISE_REQUEST_TIMEOUT is",
        "EXPERTISE_MIGRATE is",
        "jwt_audience in e.toml is",
        "log_format in e.toml is",
    ] {
        assert_eq!(
            lines.iter().filter(|line| line.contains(part)).count(),
            1,
            "{part}: {lines:?}"
        );
    }
    assert_eq!(lines.len(), 5, "{lines:?}");
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn an_empty_postgres_database_is_left_empty() {
    let url = shared_cluster().make_database("checked");
    let tables = || {
        in_a_runtime(async {
            let mut connection = PgConnection::connect(&url).await.expect("a connection");
            let count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
            let count = sqlx::query_scalar::<_, i64>(count).fetch_one(&mut connection);
            count.await.expect("a number")
        })
    };
    let line = check(&url, &[]).run().succeeded().stdout;
    assert!(line.contains("it creates the schema"), "{line}");
    assert_eq!(tables(), 0);
    let line = check(&url, &["--migrate=false"]).run().failure(2);
    assert!(line.contains("the database is empty"), "{line}");
    let migrate = command(&["migrate", "--database-url", &url]).run();
    migrate.succeeded();
    let line = check(&url, &["--migrate=false"]).run().succeeded().stdout;
    assert!(line.contains("finds the schema up to date"), "{line}");
}
