//! Bounds of settings. `tests/cli/settings.md` has what is said of wrong ones.

mod lines;

use crate::command::{CommandOutput, Says, command};

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
fn accepted(args: &[&str], environment: &[(&str, &str)]) -> String {
    let args = [&["config"], args].concat();
    run(&args, environment).succeeded().stdout
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
