use super::*;

#[test]
fn every_spelling_of_sqlite_is_read() {
    for (text, path) in [
        ("sqlite:expertise.db", "expertise.db"),
        ("sqlite://expertise.db", "expertise.db"),
        ("sqlite:/var/lib/e.db", "/var/lib/e.db"),
        ("sqlite:///var/lib/e.db", "/var/lib/e.db"),
    ] {
        assert_eq!(
            DatabaseUrl::parse(text),
            Ok(DatabaseUrl::SqliteFile(PathBuf::from(path))),
            "{text}"
        );
    }
    for text in ["sqlite::memory:", "sqlite://:memory:"] {
        assert_eq!(DatabaseUrl::parse(text), Ok(DatabaseUrl::SqliteMemory));
    }
}

#[test]
fn what_is_no_database_url_is_refused() {
    for text in [
        "",
        "expertise.db",
        "sqlite:",
        "sqlite://",
        "sqlite:e.db?mode=rwc",
        "mysql://localhost/e",
        "postgres:localhost/e",
        "postgres://u:p@host:port/e",
        "postgres://u:p/w@host/e",
        "postgres://u:p@host/w@host",
    ] {
        assert!(DatabaseUrl::parse(text).is_err(), "{text}");
    }
}

#[test]
fn no_password_is_ever_shown() {
    for (text, shown, place) in [
        (
            "postgres://ann:secret@db:5432/e?sslmode=require",
            "postgres://ann:****@db:5432/e?sslmode=require",
            "postgres://db:5432/e",
        ),
        (
            "postgresql://db/e?user=ann&password=secret",
            "postgresql://db/e?user=ann&password=****",
            "postgres://db:5432/e",
        ),
        (
            "postgres://db/e?password=secret&options=-c%20x%3Dsecret",
            "postgres://db/e?password=****&options=****",
            "postgres://db:5432/e",
        ),
        (
            "postgres://ann@[::1]:5432/e",
            "postgres://ann@[::1]:5432/e",
            "postgres://[::1]:5432/e",
        ),
        (
            "postgres:///e?host=/run/postgresql",
            "postgres:///e?host=/run/postgresql",
            "postgres:///e?host=/run/postgresql&port=5432",
        ),
    ] {
        let url = DatabaseUrl::parse(text).expect(text);
        assert_eq!(url.to_string(), shown);
        assert_eq!(format!("{url:?}"), shown);
        assert_eq!(url.address(), place);
    }
}

#[test]
fn unknown_parameters_and_wrong_values_are_refused() {
    const UNKNOWN: &str = "a URL with known parameters only: application_name, dbname, ";
    for (parameters, meant) in [
        ("sslmod=require", UNKNOWN),
        ("pgbouncer=true", UNKNOWN),
        ("pasword=hush", UNKNOWN),
        ("hushhush", UNKNOWN),
        ("password=se&hushhush=1", UNKNOWN),
        ("hushhush=1&x=@db", "percent-encoded"),
        (
            "sslmode=hush",
            "sslmode is disable, allow, prefer, require, verify-ca or verify-full",
        ),
        ("user=ann&port=hush", "port 1 to 65535"),
        ("hostaddr=hush", "hostaddr an IP address"),
        ("host=hush,hush", "with one host"),
    ] {
        let refused = PostgresUrl::parse(&format!("postgres://db/e?{parameters}"));
        let error = refused.expect_err(parameters);
        assert!(error.contains(meant), "{parameters}: {error}");
        assert!(!error.contains("hush"), "{error}");
    }
    let all = "postgres://db/e?sslmode=require&options=-c%20x%3Dy&options[a]=b&user=ann";
    PostgresUrl::parse(all).expect("known parameters");
}

#[test]
fn malformed_urls_are_masked_too() {
    for text in [
        "postgres://ann:sec/ret@db/e",
        "postgres://ann:sec?ret@db/e",
        "postgres://ann:sec@ret@db/e",
        "ann:secret@db/e",
        "mysql://ann:secret@db/e",
        "postgres://db/e?pasword=secret&secret&secret=1",
    ] {
        let shown = mask(text);
        assert!(!shown.contains("sec") && !shown.contains("ret"), "{shown}");
    }
}

#[test]
fn a_wrong_port_and_several_hosts_are_told_from_a_password() {
    for (url, part) in [
        ("postgres://h:99999/x", "with a port from 1 to 65535"),
        ("postgres://u:hush@h:99999/x", "with a port from 1 to 65535"),
        ("postgres://h1,h2/x", "with one host"),
        ("postgres://u:hu,sh@h1:1,h2:2/x", "with a port from 1"),
        (
            "postgres://u:hu/sh@h/x",
            "with user and password percent-encoded",
        ),
        ("postgres://u:hu?sh@h/x", "/ as %2F, ? as %3F, # as %23"),
        ("postgres://u:hu#sh@h/x", "# as %23"),
        ("postgres://u:1/sh@h/x", "/ as %2F"),
        // Not the character that the two digits would be.
        ("postgres://u:hu%desh@h/x", "% as %25"),
    ] {
        let error = PostgresUrl::parse(url).expect_err(url);
        assert!(error.contains(part), "{url}: {error}");
        assert!(!error.contains("hu"), "{error}");
    }
    PostgresUrl::parse("postgres://u:hu,sh@h/x").expect("a password with a comma");
    PostgresUrl::parse("postgres://u:h%75%25@h/x").expect("an encoded password");
}
