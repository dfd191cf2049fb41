//! Mistakes in settings that a server must not start with, such as misspelt names.

use super::refused::{accepted, refusal};
use crate::kit::command::{Says, command};

const AUDIENCE: (&str, &str) = ("EXPERTISE_JWT_AUDIENCE", "expertise");

#[test]
fn a_wrong_setting_is_named_as_it_was_given() {
    let (message, inflight) = ("1073741824", "1048576");
    let flag = format!("--max-message-bytes={message}");
    let key = format!("max_message_bytes = {message}\n");
    for (args, file, start) in [
        (
            &[flag.as_str()][..],
            "",
            "--max-message-bytes is \"1073741824\": it must be at most 536870912, or ",
        ),
        (
            &["--config=e.toml"],
            &key,
            "max_message_bytes in e.toml is \"1073741824\": it must be at most 536870912, or ",
        ),
        (
            &[
                "--config=e.toml",
                &format!("--max-inflight-bytes={inflight}"),
            ],
            &key,
            "--max-inflight-bytes is \"1048576\": it must be at least 1073741824, the largest \
             message (max_message_bytes in e.toml)",
        ),
        (
            &["--listen=9464"],
            "",
            "--listen is \"9464\": it must be an IP address and a port",
        ),
    ] {
        let line = command(args).file("e.toml", file).run().failure(2);
        assert!(
            line.contains(&format!("expertise: {start}")),
            "{start}: {line}"
        );
    }
}

#[test]
fn a_file_with_the_wrong_content_is_named_as_it_was_given() {
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
    let start = "expertise: tls_cert_file in e.toml is \"c.pem\": it must be certificates in PEM";
    assert!(line.starts_with(start), "{line}");
    let line = command(&["--listen=127.0.0.1:0", "--auth=jwt", "--jwt-jwks-file=keys"])
        .envs(&[AUDIENCE, ("EXPERTISE_JWT_ISSUER", "us")])
        .file("keys", "hush")
        .run()
        .failure(2);
    let start = "expertise: --jwt-jwks-file is \"keys\": it must be a JSON Web Key Set";
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
fn commands_to_a_server_pass_over_misspelt_settings_that_are_not_theirs() {
    let output = command(&["list", "--account=demo", "--server=http://127.0.0.1:1"])
        .env("EXPERTISE_RETRIES", "0")
        .env("EXPERTISE_DATABSE_URL", "sqlite:e.db")
        .env("EXPERTISE_COLOUR", "red")
        .run();
    assert_eq!(output.code, Some(1));
    output.stderr.says_none_of(&["is not a setting"]);
}

#[test]
fn another_unknown_variable_is_a_warning() {
    let output = command(&["config"])
        .env("EXPERTISE_COLOUR", "hush")
        .run()
        .succeeded();
    let warning = "expertise: EXPERTISE_COLOUR is not a setting and is ignored: ";
    assert!(output.stderr.starts_with(warning), "{}", output.stderr);
    assert!(!output.stderr.contains("hush"), "{}", output.stderr);

    // Two other letters of three make another word.
    let (_, warnings) = accepted(&[], &[("EXPERTISE_TAG", "1.2")]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    // So do two of four, and three of twelve.
    for name in ["EXPERTISE_AUXX", "EXPERTISE_DATABASE_XXX"] {
        let (_, warnings) = accepted(&[], &[(name, "1.2")]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
    let line = refusal(&[], &[("EXPERTISE_LIXXEN", "1.2")]);
    line.says(&["did you mean EXPERTISE_LISTEN?"]);

    let logged = command(&["migrate", "--log-format=text"])
        .env("EXPERTISE_COLOUR", "hush")
        .run()
        .succeeded();
    logged.stderr.says(&["WARN", "EXPERTISE_COLOUR"]);
}

#[test]
fn an_unknown_variable_is_a_warning_whatever_the_log_leaves_out() {
    for filter in ["off", "error", "h2=warn"] {
        let output = command(&["migrate", "--log", filter])
            .env("EXPERTISE_COLOUR", "hush")
            .run()
            .succeeded();
        let warning = "expertise: EXPERTISE_COLOUR is not a setting and is ignored: ";
        assert!(
            output.stderr.starts_with(warning),
            "{filter}: {}",
            output.stderr
        );
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}

#[test]
fn variables_of_kubernetes_and_of_tests_are_passed_over() {
    let (_, warnings) = accepted(
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
    assert_eq!(warnings, [""; 0]);
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

#[test]
fn a_short_flag_before_its_command_is_told_where_it_belongs() {
    let tip = "it belongs behind the command, such as `expertise list ";
    for (args, expects_tip) in [
        (&["-a", "demo", "list"][..], true),
        (&["-x", "list"], false),
        (&["completions", "-a"], false),
    ] {
        let refused = command(args).run();
        assert_eq!(refused.code, Some(2));
        let has_tip = refused.stderr.contains(tip);
        assert_eq!(has_tip, expects_tip, "{args:?}: {}", refused.stderr);
    }
}
