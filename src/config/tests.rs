#![allow(clippy::expect_used)]

use std::{fs, path::Path};

use super::*;

fn read(args: &[&str], environment: &[(&str, &str)]) -> Result<Invocation, ConfigError> {
    let args = ["expertise"].iter().chain(args).map(OsString::from);
    let environment = |name: &str| {
        let found = environment.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| OsString::from(value))
    };
    Invocation::read(command_line(String::new()), args, &environment)
}

fn accepted(args: &[&str], environment: &[(&str, &str)]) -> Invocation {
    match read(args, environment) {
        Ok(invocation) => invocation,
        Err(error) => panic!("{error}"),
    }
}

fn config(args: &[&str], environment: &[(&str, &str)]) -> Config {
    accepted(args, environment).config
}

fn refusal(args: &[&str], environment: &[(&str, &str)]) -> String {
    match read(args, environment) {
        Ok(invocation) => panic!("accepted: {:?}", invocation.config),
        Err(error) => error.to_string(),
    }
}

fn file(directory: &Path, text: &str) -> String {
    let path = directory.join("settings.toml");
    fs::write(&path, text).expect("a file in a directory of our own");
    path.to_string_lossy().into_owned()
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = file(
        directory.path(),
        "request_timeout = \"3s\"\nshutdown_grace = \"3s\"\nmax_message_bytes = 3333\n",
    );
    let environment = [
        ("EXPERTISE_REQUEST_TIMEOUT", "2s"),
        ("EXPERTISE_SHUTDOWN_GRACE", "2s"),
    ];
    let config = config(
        &["--config", &path, "--request-timeout", "1s"],
        &environment,
    );
    assert_eq!(config.request_timeout, Duration::from_secs(1));
    assert_eq!(config.shutdown_grace, Duration::from_secs(2));
    assert_eq!(config.max_message_bytes, 3333);
    assert_eq!(config.database_max_connections, 16);
}

#[test]
fn flags_may_stand_before_or_after_the_subcommand() {
    for args in [["serve", "--migrate=false"], ["--migrate=false", "serve"]] {
        assert!(!config(&args, &[]).migrate);
    }
}

#[test]
fn defaults_are_those_documented() {
    let config = config(&[], &[]);
    assert_eq!(config.listen.to_string(), "127.0.0.1:50051");
    assert_eq!(config.database.to_string(), "sqlite:expertise.db");
    assert_eq!(config.auth, AuthMode::Header);
    assert_eq!(config.max_message_bytes, 72 * 1024 * 1024);
    assert_eq!(config.request_timeout, Duration::from_secs(30));
    assert_eq!(config.shutdown_grace, Duration::from_secs(8));
    assert!(config.migrate && config.reflection && config.tls.is_none());
}

#[test]
fn settings_of_the_server_do_not_concern_those_who_call_it() {
    let broken = [
        ("EXPERTISE_LISTEN", "0.0.0.0:50051"),
        ("EXPERTISE_JWT_SECRET", "short"),
        ("EXPERTISE_ACCOUNT", "demo"),
    ];
    assert!(matches!(
        read(&["list"], &broken).map(|invocation| invocation.command),
        Ok(Command::Client(_))
    ));
    refusal(&["serve"], &broken);
    let line = refusal(&["--migrate=false", "list"], &broken);
    assert!(
        line.starts_with("--migrate is a setting of the server"),
        "{line}"
    );
    assert!(read(&["list", "--migrate=false"], &broken).is_err());
}

#[test]
fn health_is_asked_of_the_server_of_these_settings() {
    let address = |args: &[&str], environment: &[(&str, &str)]| {
        let args = [&["health"], args].concat();
        match accepted(&args, environment).command {
            Command::Health(config) => config.server,
            command => panic!("{command:?}"),
        }
    };
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:1234");
    let tls = ("EXPERTISE_TLS_CERT_FILE", "cert.pem");
    let server = ("EXPERTISE_SERVER", "https://guides.example:443");
    assert_eq!(address(&[], &[]), "http://127.0.0.1:50051");
    assert_eq!(address(&[], &[everywhere]), "http://127.0.0.1:1234");
    assert_eq!(address(&[], &[everywhere, tls]), "https://127.0.0.1:1234");
    assert_eq!(
        address(&["--listen=[::]:5"], &[everywhere]),
        "http://[::1]:5"
    );
    assert_eq!(address(&[], &[everywhere, server]), server.1);
    assert_eq!(address(&["--server=http://a:1/"], &[server]), "http://a:1");
    assert_eq!(address(&["--listen=[::1]:5"], &[server]), "http://[::1]:5");
}

#[test]
fn header_authentication_off_loopback_must_be_asked_for() {
    let everywhere = ("EXPERTISE_LISTEN", "0.0.0.0:50051");
    assert!(refusal(&[], &[everywhere]).starts_with("EXPERTISE_LISTEN is \"0.0.0.0:50051\""));
    assert!(refusal(&["--listen=[::]:1"], &[]).starts_with("--listen is \"[::]:1\""));
    config(&[], &[everywhere, ("EXPERTISE_AUTH", "header")]);
    config(&["--listen=[::1]:1"], &[]);
}

#[test]
fn a_refusal_is_one_line_that_names_setting_value_and_what_is_right() {
    for (name, value, right) in [
        ("LISTEN", "localhost", "127.0.0.1:50051"),
        ("LISTEN", "", "127.0.0.1:50051"),
        ("DATABASE_URL", "mysql://db/e", "sqlite:PATH"),
        ("DATABASE_URL", "", "sqlite:PATH"),
        ("MIGRATE", "yes", "true or false"),
        ("DATABASE_MAX_CONNECTIONS", "0", "from 1 to 1000"),
        ("AUTH", "none", "header or jwt"),
        ("MAX_MESSAGE_BYTES", "72M", "from 1024 to 2147483647"),
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
            line.starts_with(&format!("{name} is {value:?}: it must be ")),
            "{line}"
        );
        assert!(line.contains(right) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn only_postgres_has_a_replica_for_reads() {
    let primary = ("EXPERTISE_DATABASE_URL", "postgres://db/e");
    let name = "EXPERTISE_DATABASE_READ_URL";
    let replica = "postgres://ann:hush@replica/e";
    let config = config(&[], &[primary, (name, replica)]);
    let read = config.database_read.map(|url| url.to_string());
    assert_eq!(read.as_deref(), Some("postgres://ann:****@replica/e"));
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
        let environment = [JWT, ISSUER, AUDIENCE, everywhere, (name, value)];
        let AuthMode::Jwt(rules) = config(&[], &environment).auth else {
            panic!("{name} is not used");
        };
        assert_eq!(
            (rules.issuer.as_str(), rules.audience.as_str()),
            (ISSUER.1, AUDIENCE.1)
        );
    }
}

#[test]
fn settings_that_do_not_go_together_are_refused_with_one_line() {
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
        let line = refusal(&[], environment);
        assert!(line.starts_with(start), "{line}");
        assert!(!line.contains('\n') && !line.contains("hush"), "{line}");
    }
}

#[test]
fn wrong_values_of_tokens_and_tls_are_refused() {
    for (name, value, right) in [
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
        assert!(!line.contains('\n'), "{line}");
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
        assert_eq!(
            line,
            "EXPERTISE_JWT_SECRET is ****: it must be a secret of 32 bytes at least"
        );
    }
    let environment = [JWT, SECRET, ISSUER, AUDIENCE];
    let invocation = accepted(&["config"], &environment);
    let effective = invocation.effective();
    assert!(effective.contains("jwt_secret = \"****\""), "{effective}");
    assert!(effective.contains("jwt_issuer = \"https://issuer.test\""));
    assert!(!effective.contains("jwt_jwks_url"), "it is unset");
    assert!(!effective.contains("hush"), "{effective}");
    assert!(!format!("{:?}", invocation.config).contains("hush"));
}

#[test]
fn token_asks_for_jwt_by_itself() {
    let args = [
        "token",
        "--account=42",
        "--scope=read write",
        "--expires=2h",
    ];
    let invocation = accepted(&args, &[SECRET, ISSUER, AUDIENCE]);
    let Command::Token(grant) = invocation.command else {
        panic!("{:?}", invocation.command);
    };
    assert_eq!(grant.account.as_str(), "42");
    assert_eq!(grant.expires, Duration::from_secs(7200));
    let header = ("EXPERTISE_AUTH", "header");
    let line = refusal(&args, &[header, SECRET, ISSUER, AUDIENCE]);
    assert!(line.starts_with("EXPERTISE_AUTH is \"header\": "), "{line}");
    let line = refusal(&args, &[]);
    assert!(
        line.starts_with("EXPERTISE_JWT_SECRET is unset: "),
        "{line}"
    );
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
    ] {
        let path = file(directory.path(), text);
        let line = refusal(&["--config", &path], &[]);
        assert!(line.contains(part) && !line.contains('\n'), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
    assert!(refusal(&["--config", "/nowhere/at.all"], &[]).starts_with("--config is "));
}

#[test]
fn foreign_environment_names_are_ignored() {
    config(&[], &[("EXPERTISE_SERVICE_HOST", "10.0.0.1")]);
}

#[test]
fn effective_settings_are_a_file_that_means_the_same() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let args = ["--log", "info,h2=debug", "--shutdown-grace=1m 5s"];
    let invocation = accepted(&args, &[("EXPERTISE_REFLECTION", "false")]);
    let effective = invocation.effective();
    let path = file(directory.path(), &effective);
    assert_eq!(config(&["--config", &path], &[]), invocation.config);
    for (start, end) in [
        ("log = ", "# flag"),
        ("reflection = false", "# environment"),
        ("listen = ", "# default"),
    ] {
        let found = |line: &str| line.starts_with(start) && line.ends_with(end);
        assert!(effective.lines().any(found), "{effective}");
    }
}

#[test]
fn effective_settings_mask_passwords() {
    let url = ("EXPERTISE_DATABASE_URL", "postgres://ann:secret@db/e");
    let invocation = accepted(&["config"], &[url]);
    assert_eq!(invocation.command, Command::Config);
    let effective = invocation.effective();
    assert!(effective.contains("postgres://ann:****@db/e") && !effective.contains("secret"));
    assert!(!format!("{:?}", invocation.config).contains("secret"));
}

fn translate_config(args: &[&str], environment: &[(&str, &str)]) -> TranslateConfig {
    let args = [&["translate"], args].concat();
    match accepted(&args, environment).command {
        Command::Translate(config) => *config,
        command => panic!("{command:?}"),
    }
}

#[test]
fn translate_takes_flags_over_environment_over_defaults() {
    let environment = [
        ("EXPERTISE_LANGUAGES", "DE, pt-br"),
        ("EXPERTISE_ACCOUNT", "42"),
        ("EXPERTISE_PARALLEL", "7"),
        ("EXPERTISE_RETRIES", "2"),
    ];
    let config = translate_config(&["--parallel=8"], &environment);
    let languages: Vec<_> = config.languages.iter().map(|tag| tag.as_str()).collect();
    assert_eq!(languages, ["de", "pt-BR"]);
    assert_eq!((config.parallel, config.connection.retry.retries), (8, 2));
    assert_eq!(config.connection.server, "http://127.0.0.1:50051");
    assert_eq!(config.engine_url, "http://127.0.0.1:5000");
    assert_eq!(config.timeout, Duration::from_secs(30));
    let apertium = translate_config(&["--engine=apertium"], &environment);
    assert_eq!(apertium.engine_url, "http://127.0.0.1:2737");
}

#[test]
fn wrong_settings_of_translate_are_refused_by_name() {
    let account = ("EXPERTISE_ACCOUNT", "42");
    let languages = ("EXPERTISE_LANGUAGES", "de");
    for (name, value, right) in [
        ("LANGUAGES", "", "BCP-47"),
        ("LANGUAGES", "de,,es", "BCP-47"),
        ("LANGUAGES", "de,en", "other than that of the texts, en"),
        ("SERVER", "127.0.0.1:50051", "http://HOST:PORT"),
        ("SERVER", "http://", "http://HOST:PORT"),
        ("ACCOUNT", "a b", "A-Z"),
        ("TASK", "42", "UUID"),
        ("SOURCE_LANGUAGE", "e", "BCP-47"),
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
        let environment = [(name.as_str(), value), account, languages];
        let line = refusal(&["translate"], &environment);
        let start = format!("{name} is {value:?}: it must be ");
        assert!(line.starts_with(&start) && line.contains(right), "{line}");
        assert!(!line.contains('\n'), "{line}");
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
    }
    let environment = [
        languages,
        ("EXPERTISE_TOKEN", "secret"),
        ("EXPERTISE_ENGINE_API_KEY", "secret"),
    ];
    let config = translate_config(&[], &environment);
    assert!(!format!("{config:?}").contains("secret"));
    let line = refusal(&["translate", "--server=http://ann:secret@h"], &environment);
    assert!(!line.contains("secret"), "{line}");
    let line = refusal(&["translate", "--engine=apertium"], &environment);
    assert!(
        line.starts_with("EXPERTISE_ENGINE_API_KEY is ****: "),
        "{line}"
    );
}

#[test]
fn the_command_line_is_consistent() {
    command_line(String::new()).debug_assert();
}

#[test]
fn help_lists_every_setting_with_environment_name_unit_and_default() {
    let mut program = command_line(String::new());
    let mut lists = |command: &str, settings: Vec<clap::Arg>| {
        let command = program.find_subcommand_mut(command).expect("a command");
        let help = command.render_long_help().to_string();
        for setting in settings {
            let key = settings::key(&setting);
            let unit = setting.get_value_names().and_then(|units| units.first());
            let default = setting.get_default_values().first();
            for text in [
                format!("{} <{}>", settings::flag(key), unit.expect("a unit")),
                format!("[{}]", settings::environment_name(key)),
                default.map_or("[default: ".to_owned(), |default| {
                    format!("[default: {}]", default.to_string_lossy())
                }),
            ] {
                let shown = text == "[default: text]" || text == "[default: json]";
                assert!(shown || help.contains(&text), "{text} is not in\n{help}");
            }
        }
    };
    lists("serve", settings::settings::<ServerSettings>());
    lists(
        "translate",
        settings::settings::<translate::TranslateSettings>(),
    );
    lists(
        "list",
        settings::settings::<connection::ConnectionSettings>(),
    );
    lists("health", settings::settings::<health::HealthSettings>());
}
