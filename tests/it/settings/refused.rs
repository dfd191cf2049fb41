//! Settings that are refused and settings that go together.

mod lines;

use std::{fs, path::Path};

use crate::kit::{
    command::{CommandOutput, Says, command},
    postgres::free_port,
};

fn run(args: &[&str], environment: &[(&str, &str)]) -> CommandOutput {
    command(args).envs(environment).run()
}

/// The line with which these settings are refused.
pub fn refusal(args: &[&str], environment: &[(&str, &str)]) -> String {
    let line = run(args, environment).failure(2);
    let line = line.trim_end().strip_prefix("expertise: ");
    line.expect("a line of the program").to_owned()
}

/// The effective settings where these are accepted.
pub fn accepted(args: &[&str], environment: &[(&str, &str)]) -> String {
    let args = [&["config"], args].concat();
    run(&args, environment).succeeded().stdout
}

fn file(directory: &Path, text: &str) -> String {
    let path = directory.join("settings.toml");
    fs::write(&path, text).expect("a file in a directory of our own");
    path.to_string_lossy().into_owned()
}

#[test]
fn migrate_checks_the_settings_of_the_database_alone() {
    let others = [
        ("EXPERTISE_AUTH", "jwt"),
        ("EXPERTISE_JWT_SECRET", "short"),
        ("EXPERTISE_TLS_CERT_FILE", "/nowhere"),
    ];
    let migrate = command(&["migrate"]).envs(&others).run();
    assert!(migrate.succeeded().stdout.starts_with("created the schema"));
    let database = [("EXPERTISE_DATABASE_URL", "mysql://db/e")];
    let line = refusal(&["migrate"], &[&others[..], &database].concat());
    assert!(line.starts_with("EXPERTISE_DATABASE_URL is "), "{line}");
}

#[test]
fn settings_of_the_server_do_not_concern_those_who_call_it() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let broken = [
        ("EXPERTISE_LISTEN", "0.0.0.0:50051"),
        ("EXPERTISE_JWT_SECRET", "short"),
        ("EXPERTISE_ACCOUNT", "demo"),
        ("EXPERTISE_SERVER", &server),
    ];
    let line = command(&["list"]).envs(&broken).run().failure(1);
    assert!(line.contains("refuses the connection"), "{line}");
    assert!(refusal(&["serve"], &broken).starts_with("EXPERTISE_JWT_SECRET is "));
    for args in [["--migrate=false", "list"], ["list", "--migrate=false"]] {
        assert_eq!(run(&args, &broken).code, Some(2), "{args:?}");
    }
}

#[test]
fn health_is_asked_of_the_server_of_these_settings() {
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:1");
    let tls = ("EXPERTISE_TLS_CERT_FILE", "cert.pem");
    let server = ("EXPERTISE_SERVER", "https://127.0.0.1:3");
    for (args, environment, asked) in [
        (&[][..], &[everywhere, tls][..], "https://127.0.0.1:1 "),
        (&["--listen=[::]:2"], &[everywhere], "http://[::1]:2 "),
        (&[], &[everywhere, server], "https://127.0.0.1:3 "),
        (
            &["--server=http://127.0.0.1:4/"],
            &[server],
            "http://127.0.0.1:4 ",
        ),
        (&["--listen=[::1]:2"], &[server], "https://127.0.0.1:3 "),
    ] {
        let args = [&["health"], args].concat();
        let line = command(&args).envs(environment).run().failure(1);
        assert!(line.contains(asked), "{asked}: {line}");
    }
}

const SECRET: (&str, &str) = ("EXPERTISE_JWT_SECRET", "hush, these are 32 bytes or more");
const ISSUER: (&str, &str) = ("EXPERTISE_JWT_ISSUER", "https://issuer.test");
const AUDIENCE: (&str, &str) = ("EXPERTISE_JWT_AUDIENCE", "expertise");
const JWT: (&str, &str) = ("EXPERTISE_AUTH", "jwt");

#[test]
fn jwt_takes_keys_from_one_place_and_serves_everywhere() {
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:50051");
    for (name, value) in [
        SECRET,
        ("EXPERTISE_JWT_PUBLIC_KEY_FILE", "key.pem"),
        ("EXPERTISE_JWT_JWKS_FILE", "keys.json"),
        ("EXPERTISE_JWT_JWKS_URL", "https://issuer.test/keys?v=1"),
        ("EXPERTISE_JWT_JWKS_URL", "http://[::1]:8080/keys"),
    ] {
        let printed = accepted(&[], &[JWT, ISSUER, AUDIENCE, everywhere, (name, value)]);
        printed.says(&["auth = \"jwt\"", "jwt_issuer = \"https://issuer.test\""]);
    }
}

/// Settings with values at their bounds, and with values beyond them.
const BOUNDS: [(&str, &str, &str); 10] = [
    ("DATABASE_MAX_CONNECTIONS", "1 1000", "0 1001"),
    ("MAX_MESSAGE_BYTES", "65536 2147483647", "65535 2147483648"),
    (
        "MAX_INFLIGHT_BYTES",
        "65536 1099511627776",
        "65535 1099511627777",
    ),
    ("REQUEST_TIMEOUT", "1ms 1day", "999us 1day1ms"),
    ("SHUTDOWN_GRACE", "0 0s 1day", "1day1ms"),
    ("CHANGES_RETENTION", "1h 365days", "59m59s 365days1s"),
    ("AUTOMATIC_REVISIONS", "0 1000", "1001"),
    ("CHECKPOINT_INTERVAL", "0 0s 1m 30days", "59s 30days1s"),
    ("DELETED_TASK_RETENTION", "0s 3650days", "3650days1s"),
    (
        "JWT_SECRET",
        "öö-of-32-bytes,-30-characters.",
        "31-bytes-of-so-many-characters.",
    ),
];

#[test]
fn a_setting_is_accepted_up_to_its_bounds() {
    for (name, allowed, refused) in BOUNDS {
        let others: &[_] = match name {
            "MAX_MESSAGE_BYTES" => &[("EXPERTISE_MAX_INFLIGHT_BYTES", "1099511627776")],
            "MAX_INFLIGHT_BYTES" => &[("EXPERTISE_MAX_MESSAGE_BYTES", "65536")],
            "JWT_SECRET" => &[JWT, ISSUER, AUDIENCE],
            _ => &[],
        };
        let name = format!("EXPERTISE_{name}");
        for value in allowed.split(' ') {
            accepted(&[], &[others, &[(&*name, value)]].concat());
        }
        for value in refused.split(' ') {
            let line = refusal(&[], &[others, &[(&*name, value)]].concat());
            assert!(line.starts_with(&format!("{name} is ")), "{line}");
        }
    }
    let token = |expires: &str| {
        let args = [
            "token",
            "--account=42",
            "--scope=read",
            "--expires",
            expires,
        ];
        run(&args, &[SECRET, ISSUER, AUDIENCE]).code == Some(0)
    };
    let expiries = ["1s", "366days", "999ms", "366days1s"].map(token);
    assert_eq!(expiries, [true, true, false, false]);
}

#[test]
fn parameters_that_the_driver_does_not_use_are_accepted() {
    for (url, name, value) in [
        ("postgres://db/e", "PGSSLMODE", ""),
        ("postgres://db/e", "PGPORT", ""),
        ("postgres://db/e?sslmode=disable", "PGSSLCERT", "client.pem"),
        (
            "postgres://db/e?sslmode=allow&sslkey=client.key",
            "PGSSLMODE",
            "require",
        ),
        ("postgres://db/e?sslmode=require", "PGSSLMODE", "on"),
        ("postgres://db:5432/e", "PGPORT", "x"),
        ("postgres://db/e?port=5432", "PGPORT", "x"),
    ] {
        accepted(&[], &[("EXPERTISE_DATABASE_URL", url), (name, value)]);
    }
}

#[test]
fn calls_and_metrics_share_a_port_on_different_addresses() {
    for (listen, metrics) in [
        ("127.0.0.1:9464", "127.0.0.2:9464"),
        ("0.0.0.0:9464", "[::1]:9464"),
        ("127.0.0.1:9464", "0.0.0.0:9465"),
        ("127.0.0.1:0", "127.0.0.1:0"),
    ] {
        let addresses = [
            ("EXPERTISE_LISTEN", listen),
            ("EXPERTISE_METRICS_LISTEN", metrics),
        ];
        accepted(&["--auth=header"], &addresses);
    }
}

#[test]
fn the_file_of_root_certificates_is_read_only_to_verify_a_server() {
    for mode in ["prefer", "require"] {
        // Nothing listens on this port.
        let url = format!("postgres://ann@127.0.0.1:1/e?sslmode={mode}");
        let line = command(&["migrate", "--log=off"])
            .env("EXPERTISE_DATABASE_URL", &url)
            .env("PGSSLROOTCERT", "/no/such.pem")
            .run()
            .failure(1);
        assert!(line.contains("the connection is refused"), "{mode}: {line}");
    }
}

#[test]
fn files_are_refused_whole_when_anything_in_them_is_wrong() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (text, part) in [
        ("listne = \"127.0.0.1:1\"", "listne in "),
        ("reflection = \"perhaps\"", "must be true or false"),
        ("request_timeout = 1.5", "is of type float"),
        ("\n\nlisten = \n", "line 3"),
        ("database_url = \"postgres://ann:secret@db", "line 1"),
        (
            "reflection = true\nlisten = 127.0.0.1:1",
            "a value that is neither a number nor true or false needs quotes, as in listen = \"…\"",
        ),
        ("jwt_issuer = secret", "line 1"),
    ] {
        let path = file(directory.path(), text);
        let line = refusal(&["--config", &path], &[]);
        assert!(line.contains(part), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
    assert!(refusal(&["--config", "/nowhere/at.all"], &[]).starts_with("--config is "));
}

#[test]
fn effective_settings_are_a_file_that_means_the_same() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let args = ["--log", "info,h2=debug", "--shutdown-grace=1m 5s"];
    let effective = accepted(&args, &[("EXPERTISE_REFLECTION", "false")]);
    let path = file(directory.path(), &effective);
    let again = accepted(&["--config", &path], &[]);
    assert_eq!(again, effective);
}

#[test]
fn header_authentication_off_loopback_is_accepted_when_asked_for() {
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:50051");
    accepted(&[], &[everywhere, ("EXPERTISE_AUTH", "header")]);
    accepted(&["--listen=[::1]:1"], &[]);
}

#[test]
fn secrets_are_masked_in_effective_settings() {
    let database = ("EXPERTISE_DATABASE_URL", "postgres://ann:hush@db/e");
    let traces = ("EXPERTISE_OTLP_ENDPOINT", "http://otel:4317/?key=hush");
    let effective = accepted(&[], &[JWT, SECRET, ISSUER, AUDIENCE, database, traces]);
    effective.says(&[
        "database_url = \"postgres://ann:****@db/e\"",
        "otlp_endpoint = \"http://otel:4317/?****\"",
        "jwt_secret = \"****\"",
    ]);
    assert!(!effective.contains("jwt_jwks_url"), "it is unset");
    assert!(!effective.contains("hush"), "{effective}");
}
