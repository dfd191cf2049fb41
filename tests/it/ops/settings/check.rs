//! `config --check`: whether a server could start, and that nothing is changed.

use crate::{
    command::{Command, Says, command},
    kit::{
        postgres::{free_port, shared_cluster},
        runtime::in_a_runtime,
        sql::SqlConnection,
    },
    ops::authentication::certificates::Authority,
};

fn check(url: &str, args: &[&str]) -> Command {
    let args = [&["config", "--check"], args].concat();
    command(&args).env("EXPERTISE_DATABASE_URL", url)
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
        ("EXPERTISE_TLS_CLIENT_CA_FILE", "nowhere.pem"),
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
        "EXPERTISE_JWT_PUBLIC_KEY_FILE is \"nowhere.pem\": No such file or directory",
        "which cannot be reached: the connection is refused",
    ];
    assert_eq!(lines.len(), parts.len(), "{}", output.stderr);
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.starts_with("expertise: EXPERTISE_"), "{line}");
        assert!(line.contains(part), "{part}: {line}");
    }
    lines[0].says(&["EXPERTISE_TLS_CLIENT_CA_FILE is \"nowhere.pem\": it must be CA certificates"]);
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn an_empty_postgres_database_is_left_empty() {
    let url = shared_cluster().make_database("checked");
    let tables = || {
        let count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        in_a_runtime(async { SqlConnection::open(&url).await.number(count).await })
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
