//! Mistakes in settings that a server must not start with, such as misspelt names.

use super::refused::{accepted, refusal};
use crate::kit::command::{Says, command};

const AUDIENCE: (&str, &str) = ("EXPERTISE_JWT_AUDIENCE", "expertise");

#[test]
fn a_wrong_value_is_named_as_it_was_given() {
    for (args, file, environment, start) in [
        (
            &["--listen=9464"][..],
            "",
            &[][..],
            "--listen is \"9464\": it must be an IP address",
        ),
        (
            &["--config=e.toml"],
            "listen = 9464\n",
            &[],
            "listen in e.toml is \"9464\": it must be an IP address",
        ),
        (
            &["--config=e.toml"],
            "listen = \"127.0.0.1:0\"\n",
            &[("EXPERTISE_LISTEN", "9464")],
            "EXPERTISE_LISTEN is \"9464\": it must be an IP address",
        ),
    ] {
        let line = command(args)
            .file("e.toml", file)
            .envs(environment)
            .run()
            .failure(2);
        assert!(
            line.starts_with(&format!("expertise: {start}")),
            "{start}: {line}"
        );
    }
}

#[test]
fn a_value_that_is_overridden_is_not_checked() {
    let output = command(&["config", "--config=e.toml", "--listen=127.0.0.1:1"])
        .file("e.toml", "listen = \"hush\"\nlog = \"loud\"\n")
        .envs(&[("EXPERTISE_LISTEN", "hush"), ("EXPERTISE_LOG", "warn")])
        .run()
        .succeeded();
    output
        .stdout
        .says(&["listen = \"127.0.0.1:1\"", "log = \"warn\""]);
}

/// The command line was once read again without end.
#[test]
fn a_wrong_flag_that_equals_the_value_of_the_file_or_the_environment_is_named() {
    for args in [&[][..], &["serve"], &["config", "--check"]] {
        let args = [args, &["--config=e.toml", "--listen=9464"]].concat();
        let command = || command(&args).file("e.toml", "listen = \"9464\"\n");
        for output in [
            command().run(),
            command().env("EXPERTISE_LISTEN", "9464").run(),
        ] {
            let line = output.failure(2);
            let start = "expertise: --listen is \"9464\": it must be an IP address";
            assert!(line.starts_with(start), "{args:?}: {line}");
        }
    }
}

#[test]
fn help_shows_no_value_of_the_file_or_the_environment() {
    let file = "jwt_secret = \"hush, these are 32 bytes or more\"\n\
                database_url = \"postgres://ann:hush@db/e\"\n";
    for args in [&[][..], &["serve"], &["config"], &["token"], &["migrate"]] {
        for flag in ["--help", "-h"] {
            let args = [args, &["--config=e.toml", flag]].concat();
            let output = command(&args)
                .file("e.toml", file)
                .env("EXPERTISE_JWT_ISSUER", "hush")
                .env("EXPERTISE_TOKEN", "hush")
                .run()
                .succeeded();
            output.stdout.says(&["[env: EXPERTISE_"]);
            assert!(!output.stdout.contains("hush"), "{args:?}");
        }
    }
}

#[test]
fn credentials_do_not_concern_commands_on_files() {
    let guide = "{\"task\": {\"name\": \"A\", \"productId\": \"7\"}}";
    for args in [&["lint", "a.json"][..], &["graph", "a.json"]] {
        let output = command(args)
            .file("a.json", guide)
            .env("EXPERTISE_ACCOUNT", "demo")
            .env("EXPERTISE_TOKEN", "a.b.c")
            .run();
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
    }
    let online = command(&["lint", "--online", "a.json"]).env("EXPERTISE_ACCOUNT", "demo");
    let online = online.env("EXPERTISE_TOKEN", "a.b.c").file("a.json", guide);
    let line = online.run().failure(2);
    assert!(line.contains("EXPERTISE_ACCOUNT"), "{line}");
}

#[test]
fn every_setting_of_tls_is_named_that_a_server_without_tls_does_not_use() {
    let output = command(&["list", "--account=demo", "--server=http://127.0.0.1:1"])
        .env("EXPERTISE_CA_FILE", "/dev/null")
        .env("EXPERTISE_CLIENT_CERT_FILE", "/dev/null")
        .env("EXPERTISE_SERVER_NAME", "guides")
        .run();
    assert_eq!(output.code, Some(2));
    let names: Vec<_> = output
        .stderr
        .lines()
        .map(|line| line.split(' ').nth(1))
        .collect();
    let expected = [
        "EXPERTISE_CA_FILE",
        "EXPERTISE_CLIENT_CERT_FILE",
        "EXPERTISE_SERVER_NAME",
        "EXPERTISE_CLIENT_KEY_FILE",
    ];
    assert_eq!(names, expected.map(Some), "{}", output.stderr);
}

#[test]
fn a_file_with_the_wrong_content_is_named_by_its_setting() {
    let line = command(&[
        "--listen=127.0.0.1:0",
        "--tls-key-file=k.pem",
        "--config=e.toml",
    ])
    .file("e.toml", "tls_cert_file = \"c.pem\"\n")
    .file("c.pem", "hush")
    .file("k.pem", "hush")
    .run()
    .failure(2);
    let start = "expertise: EXPERTISE_TLS_CERT_FILE is \"c.pem\": it must be certificates in PEM";
    assert!(line.starts_with(start), "{line}");
    let line = command(&["--listen=127.0.0.1:0", "--auth=jwt", "--jwt-jwks-file=keys"])
        .envs(&[AUDIENCE, ("EXPERTISE_JWT_ISSUER", "us")])
        .file("keys", "hush")
        .run()
        .failure(2);
    let start = "expertise: EXPERTISE_JWT_JWKS_FILE is \"keys\": it must be a JSON Web Key Set";
    assert!(line.contains(start), "{line}");
}

#[test]
fn an_unknown_key_of_a_file_is_named_with_the_closest_setting() {
    for (text, line) in [
        (
            "listne = 1",
            "listne in e.toml is not a setting: did you mean listen?\n",
        ),
        (
            "colour = 1",
            "colour in e.toml is not a setting: `expertise --help` lists them\n",
        ),
    ] {
        let refused = command(&["--config=e.toml"])
            .file("e.toml", text)
            .run()
            .failure(2);
        assert_eq!(refused, format!("expertise: {line}"));
    }
}

#[test]
fn every_command_refuses_a_variable_that_is_no_setting() {
    for args in [
        &[][..],
        &["migrate"],
        &["list", "--account=demo"],
        // A command on files alone, which passes over the settings of a connection.
        &["lint", "a.json"],
        &["new"],
        &["completions", "bash"],
    ] {
        let output = command(args).env("EXPERTISE_DATABSE_URL", "hush").run();
        let line = "expertise: EXPERTISE_DATABSE_URL is not a setting: did you mean \
                    EXPERTISE_DATABASE_URL?\n";
        let refused = (output.code, output.stderr.as_str());
        assert_eq!(refused, (Some(2), line), "{args:?}");
    }
    let line = refusal(&[], &[("EXPERTISE_COLOUR", "hush")]);
    assert_eq!(
        line,
        "EXPERTISE_COLOUR is not a setting: `expertise --help` lists them"
    );
    let help = command(&["--help"]).env("EXPERTISE_COLOUR", "hush").run();
    assert_eq!(help.code, Some(0));
}

#[test]
fn variables_of_kubernetes_and_of_tests_are_passed_over() {
    accepted(
        &[],
        &[
            ("EXPERTISE_PORT", "tcp://10.0.0.1:50051"),
            ("EXPERTISE_PORT_50051_TCP", "tcp://10.0.0.1:50051"),
            ("EXPERTISE_PORT_50051_TCP_ADDR", "10.0.0.1"),
            ("EXPERTISE_PORT_50051_TCP_PORT", "50051"),
            ("EXPERTISE_PORT_50051_TCP_PROTO", "tcp"),
            ("EXPERTISE_SERVICE_HOST", "10.0.0.1"),
            ("EXPERTISE_SERVICE_PORT", "50051"),
            ("EXPERTISE_SERVICE_PORT_GRPC", "50051"),
            ("EXPERTISE_METRICS_PORT_9464_TCP_ADDR", "10.0.0.1"),
            ("EXPERTISE_METRICS_SERVICE_HOST", "10.0.0.1"),
            ("EXPERTISE_TEST_POSTGRES_URL", "postgres://db/e"),
            ("EXPERTISE_REQUIRE_POSTGRES", "1"),
            ("EXPERTISE_TEST_LOAD", "full"),
        ],
    );
}

#[test]
fn a_missing_certificate_is_a_wrong_setting_of_every_command() {
    let server = ["--server=https://127.0.0.1:1", "--ca-file=none.pem"];
    for args in [
        &["list", "--account=demo"][..],
        &["translate", "--account=demo", "--languages=de"],
        &["health"],
    ] {
        let output = command(&[args, &server].concat()).run();
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        let start = "expertise: --ca-file is \"none.pem\": it must be the path of a file: ";
        assert!(
            output.stderr.starts_with(start),
            "{args:?}: {}",
            output.stderr
        );
    }
}
