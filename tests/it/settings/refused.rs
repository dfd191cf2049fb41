//! Settings that are refused and settings that go together, read in this process as the
//! program reads them.

use std::{ffi::OsString, fs, path::Path};

use expertise::config::{Command, ConfigError, Invocation};

use crate::kit::{command::command, postgres::free_port};

fn read(args: &[&str], environment: &[(&str, &str)]) -> Result<Invocation, ConfigError> {
    let args = ["expertise"].iter().chain(args).map(OsString::from);
    let variables = environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    Invocation::read(String::new(), args, variables)
}

/// The line with which these settings are refused.
pub fn refusal(args: &[&str], environment: &[(&str, &str)]) -> String {
    match read(args, environment) {
        Err(ConfigError::Setting(wrong)) => wrong.to_string(),
        Err(ConfigError::Usage(error)) => panic!("{error}"),
        Ok(_) => panic!("{args:?} {environment:?} are accepted"),
    }
}

/// A value as an error shows it.
fn shown(value: &str) -> String {
    match value {
        "" => "empty".to_owned(),
        value => format!("{value:?}"),
    }
}

/// The effective settings where these are accepted.
pub fn accepted(args: &[&str], environment: &[(&str, &str)]) -> (String, Vec<String>) {
    let args = [&["config"], args].concat();
    match read(&args, environment) {
        Ok(Invocation {
            command: Command::Config(printed),
            warnings,
            ..
        }) => (printed, warnings),
        Ok(_) => panic!("{args:?} is another command"),
        Err(error) => panic!("{args:?} {environment:?}: {error}"),
    }
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
fn tls_without_a_server_says_what_to_set() {
    let environment = [
        ("EXPERTISE_ACCOUNT", "demo"),
        ("EXPERTISE_CA_FILE", "ca.pem"),
    ];
    let line = refusal(&["list"], &environment);
    let right = "has no TLS: set EXPERTISE_SERVER to a URL that begins with https://";
    assert!(line.ends_with(right), "{line}");
    let server = [("EXPERTISE_SERVER", "http://127.0.0.1:1")];
    let line = refusal(&["list"], &[&environment[..], &server].concat());
    assert!(line.ends_with("begin the URL with https://"), "{line}");
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
        let refused = matches!(read(&args, &broken), Err(ConfigError::Usage(_)));
        assert!(refused, "{args:?}");
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
        (&["--listen=[::1]:2"], &[server], "http://[::1]:2 "),
    ] {
        let args = [&["health"], args].concat();
        let line = command(&args).envs(environment).run().failure(1);
        assert!(line.contains(asked), "{asked}: {line}");
    }
}

#[test]
fn header_authentication_off_loopback_must_be_asked_for() {
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:50051");
    assert!(refusal(&[], &[everywhere]).starts_with("EXPERTISE_LISTEN is \"0.0.0.0:50051\""));
    assert!(refusal(&["--listen=[::]:1"], &[]).starts_with("--listen is \"[::]:1\""));
    accepted(&[], &[everywhere, ("EXPERTISE_AUTH", "header")]);
    accepted(&["--listen=[::1]:1"], &[]);
}

#[test]
fn a_refusal_names_setting_value_and_what_is_right() {
    for (name, value, right) in [
        ("LISTEN", "localhost", "127.0.0.1:50051"),
        ("LISTEN", "", "127.0.0.1:50051"),
        ("DATABASE_URL", "mysql://db/e", "sqlite:PATH"),
        ("DATABASE_URL", "", "sqlite:PATH"),
        ("MIGRATE", "yes", "true or false"),
        ("DATABASE_MAX_CONNECTIONS", "0", "from 1 to 1000"),
        ("AUTH", "none", "header or jwt"),
        ("MAX_MESSAGE_BYTES", "72M", "from 65536 to 2147483647"),
        ("REQUEST_TIMEOUT", "30", "with its unit"),
        ("REQUEST_TIMEOUT", "0s", "from 1ms to 1day"),
        ("SHUTDOWN_GRACE", "for\never", "with its unit"),
        ("REFLECTION", "1", "true or false"),
        ("LOG", "inof", "info"),
        ("LOG", "expertise=loud", "debug"),
        ("LOG_FORMAT", "xml", "text or json"),
    ] {
        let name = format!("EXPERTISE_{name}");
        let line = refusal(&[], &[(&name, value)]);
        assert!(
            line.starts_with(&format!("{name} is {}: it must be ", shown(value))),
            "{line}"
        );
        assert!(line.contains(right), "{line}");
    }
}

#[test]
fn only_postgres_has_a_replica_for_reads() {
    let primary = ("EXPERTISE_DATABASE_URL", "postgres://db/e");
    let name = "EXPERTISE_DATABASE_READ_URL";
    let replica = "postgres://ann:hush@replica/e";
    let (printed, _) = accepted(&[], &[primary, (name, replica)]);
    let shown = "database_read_url = \"postgres://ann:****@replica/e\"";
    assert!(printed.contains(shown), "{printed}");
    let line = refusal(&[], &[(name, replica)]);
    let expected = "EXPERTISE_DATABASE_READ_URL is \"postgres://ann:****@replica/e\": it must be \
                    unset, as only PostgreSQL has replicas and EXPERTISE_DATABASE_URL is SQLite";
    assert_eq!(line, expected);
    for url in [
        "",
        "sqlite:replica.db",
        "sqlite::memory:",
        "replica/e",
        "postgres://ann:hu#sh@replica/e",
    ] {
        let line = refusal(&[], &[primary, (name, url)]);
        assert!(
            line.starts_with("EXPERTISE_DATABASE_READ_URL is "),
            "{line}"
        );
        assert!(line.contains("it must be postgres://"), "{line}");
        assert!(!line.contains("sh@") && !line.contains('\n'), "{line}");
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
        let (printed, _) = accepted(&[], &[JWT, ISSUER, AUDIENCE, everywhere, (name, value)]);
        assert!(printed.contains("auth = \"jwt\""), "{printed}");
        assert!(printed.contains("jwt_issuer = \"https://issuer.test\""));
    }
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
    ] {
        accepted(&[], &[("EXPERTISE_DATABASE_URL", url), (name, value)]);
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
fn settings_that_do_not_go_together_are_refused() {
    let key = ("EXPERTISE_JWT_PUBLIC_KEY_FILE", "key.pem");
    let set = ("EXPERTISE_JWT_JWKS_FILE", "keys.json");
    let url = ("EXPERTISE_JWT_JWKS_URL", "https://issuer.test/keys");
    let header = ("EXPERTISE_AUTH", "header");
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:50051");
    let cert = ("EXPERTISE_TLS_CERT_FILE", "cert.pem");
    let private = ("EXPERTISE_TLS_KEY_FILE", "key.pem");
    let clients = ("EXPERTISE_TLS_CLIENT_CA_FILE", "ca.pem");
    for (environment, start) in [
        (
            &[JWT, ISSUER, AUDIENCE][..],
            "EXPERTISE_JWT_SECRET is unset: it must be set, or one of",
        ),
        (&[JWT, SECRET, AUDIENCE], "EXPERTISE_JWT_ISSUER is unset: "),
        (&[JWT, SECRET, ISSUER], "EXPERTISE_JWT_AUDIENCE is unset: "),
        (
            &[JWT, SECRET, key, ISSUER, AUDIENCE],
            "EXPERTISE_JWT_PUBLIC_KEY_FILE is \"key.pem\": it must be unset",
        ),
        (
            &[JWT, set, url, ISSUER, AUDIENCE],
            "EXPERTISE_JWT_JWKS_URL is \"https://issuer.test/keys\": it must be unset",
        ),
        (
            &[SECRET],
            "EXPERTISE_AUTH is unset: it must be jwt, as EXPERTISE_JWT_SECRET is set",
        ),
        (
            &[everywhere, url],
            "EXPERTISE_AUTH is unset: it must be jwt, as EXPERTISE_JWT_JWKS_URL is set",
        ),
        (
            &[header, AUDIENCE],
            "EXPERTISE_AUTH is \"header\": it must be jwt, as EXPERTISE_JWT_AUDIENCE",
        ),
        (
            &[cert],
            "EXPERTISE_TLS_KEY_FILE is unset: it must be set too, as EXPERTISE_TLS_CERT_FILE",
        ),
        (
            &[private],
            "EXPERTISE_TLS_CERT_FILE is unset: it must be set too, as EXPERTISE_TLS_KEY_FILE",
        ),
        (
            &[clients],
            "EXPERTISE_TLS_CERT_FILE is unset: it must be set too, as EXPERTISE_TLS_CLIENT_CA",
        ),
        (&[cert, clients], "EXPERTISE_TLS_KEY_FILE is unset: "),
    ] {
        let line = refusal(&["config"], environment);
        assert!(line.starts_with(start), "{line}");
        assert!(!line.contains("hush"), "{line}");
    }
}

#[test]
fn wrong_values_of_tokens_and_tls_are_refused() {
    for (name, value, right) in [
        ("JWT_SECRET_FILE", "", "path"),
        ("JWT_PUBLIC_KEY_FILE", "", "path"),
        ("JWT_JWKS_FILE", "", "path"),
        ("JWT_JWKS_URL", "issuer.test/keys", "http or https"),
        ("JWT_JWKS_URL", "ftp://issuer.test/keys", "http or https"),
        ("JWT_JWKS_URL", "https://", "http or https"),
        ("TLS_CERT_FILE", "", "path"),
        ("TLS_KEY_FILE", "", "path"),
        ("TLS_CLIENT_CA_FILE", "", "path"),
    ] {
        let name = format!("EXPERTISE_{name}");
        let environment = match name.contains("TLS") {
            true => vec![(name.as_str(), value)],
            false => vec![JWT, ISSUER, AUDIENCE, (name.as_str(), value)],
        };
        let line = refusal(&[], &environment);
        assert!(line.starts_with(&name) && line.contains(right), "{line}");
    }
    let user = (
        "EXPERTISE_JWT_JWKS_URL",
        "https://ann:hush@issuer.test/keys",
    );
    let line = refusal(&[], &[JWT, ISSUER, AUDIENCE, user]);
    assert!(
        line.contains("without user") && !line.contains("hush"),
        "{line}"
    );
}

#[test]
fn a_short_secret_is_refused_and_never_shown() {
    for secret in ["", "hush", "hush, these are not 32 bytes ye"] {
        let short = (SECRET.0, secret);
        let line = refusal(&[], &[JWT, ISSUER, AUDIENCE, short]);
        let shown = if secret.is_empty() { "empty" } else { "****" };
        assert_eq!(
            line,
            format!("EXPERTISE_JWT_SECRET is {shown}: it must be a secret of 32 bytes at least")
        );
    }
    let (effective, _) = accepted(&[], &[JWT, SECRET, ISSUER, AUDIENCE]);
    assert!(effective.contains("jwt_secret = \"****\""), "{effective}");
    assert!(!effective.contains("jwt_jwks_url"), "it is unset");
    assert!(!effective.contains("hush"), "{effective}");
}

#[test]
fn token_refuses_another_kind_of_credentials() {
    let args = ["token", "--account=42", "--scope=read write"];
    let header = ("EXPERTISE_AUTH", "header");
    let line = refusal(&args, &[header, SECRET, ISSUER, AUDIENCE]);
    assert!(line.starts_with("EXPERTISE_AUTH is \"header\": "), "{line}");
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
            "line 2: the value of listen is neither a number nor true or false: write it in quotes, \
             as in listen = \"…\"",
        ),
        ("jwt_issuer = secret", "as in jwt_issuer = \"…\""),
        ("shutdown_grace = 8s", "as in shutdown_grace = \"…\""),
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
    let (effective, _) = accepted(&args, &[("EXPERTISE_REFLECTION", "false")]);
    let path = file(directory.path(), &effective);
    let (again, _) = accepted(&["--config", &path], &[]);
    let settings = |printed: &str| -> Vec<String> {
        let lines = printed.lines().filter_map(|line| line.split(" #").next());
        lines.map(|line| line.trim_end().to_owned()).collect()
    };
    assert_eq!(settings(&again), settings(&effective));
}

#[test]
fn wrong_settings_of_translate_are_refused_by_name() {
    let account = ("EXPERTISE_ACCOUNT", "42");
    let languages = ("EXPERTISE_LANGUAGES", "de");
    for (name, value, right) in [
        ("LANGUAGES", "", "BCP-47"),
        ("LANGUAGES", "de,,es", "BCP-47"),
        ("LANGUAGES", "de,spanish", "no names of languages"),
        ("LANGUAGES", "de,en", "other than that of the texts, en"),
        (
            "SERVER",
            "127.0.0.1:50051",
            "it must be http://127.0.0.1:50051, or https://127.0.0.1:50051 if it uses TLS",
        ),
        ("SERVER", "http://", "http://HOST:PORT"),
        ("ACCOUNT", "a b", "A-Z"),
        ("TASK", "", "UUID"),
        ("SOURCE_LANGUAGE", "e", "BCP-47"),
        (
            "SOURCE_LANGUAGE",
            "english",
            "such as de or pt-BR, and not the name",
        ),
        ("ENGINE", "deepl", "libretranslate or apertium"),
        (
            "ENGINE_URL",
            "http://h/?key=x",
            "without user and parameters",
        ),
        ("PARALLEL", "0", "from 1 to 64"),
        ("TIMEOUT", "0s", "from 1ms"),
        ("RETRIES", "-1", "from 0 to 100"),
        ("BACKOFF", "1", "with its unit"),
    ] {
        let name = format!("EXPERTISE_{name}");
        let environment = [account, languages, (name.as_str(), value)];
        let line = refusal(&["translate"], &environment);
        let start = format!("{name} is {}: it must be ", shown(value));
        assert!(line.starts_with(&start) && line.contains(right), "{line}");
    }
    let line = refusal(&["translate"], &[account]);
    assert!(line.starts_with("EXPERTISE_LANGUAGES is unset: "), "{line}");
    let line = refusal(&["translate"], &[languages]);
    assert!(line.starts_with("EXPERTISE_ACCOUNT is unset: "), "{line}");
}

#[test]
fn secrets_of_translate_are_never_shown() {
    let languages = ("EXPERTISE_LANGUAGES", "de");
    for name in ["EXPERTISE_TOKEN", "EXPERTISE_ENGINE_API_KEY"] {
        let line = refusal(
            &["translate", "--account=42"],
            &[(name, "se cret"), languages],
        );
        assert!(
            line.contains("is ****: it must be") && !line.contains("cret"),
            "{line}"
        );
        let line = refusal(&["translate", "--account=42"], &[(name, ""), languages]);
        assert!(line.starts_with(&format!("{name} is empty: ")), "{line}");
    }
    let environment = [
        languages,
        ("EXPERTISE_TOKEN", "secret"),
        ("EXPERTISE_ENGINE_API_KEY", "secret"),
    ];
    let line = refusal(&["translate", "--server=http://ann:secret@h"], &environment);
    assert!(!line.contains("secret"), "{line}");
    let line = refusal(&["translate", "--engine=apertium"], &environment);
    assert!(
        line.starts_with("EXPERTISE_ENGINE_API_KEY is ****: "),
        "{line}"
    );
}
