//! The table of settings: flags, environment names, file keys and `--help` come
//! from here alone.

use clap::{Arg, Command, ValueHint, value_parser};
use clap_complete::Shell;

use super::{errand, health, token, translate};

/// One setting.
pub(super) struct Setting {
    /// The key in the file; flag and environment name derive from it.
    pub key: &'static str,
    /// What a value is, as `--help` shows it.
    pub unit: &'static str,
    /// What holds when nobody sets it.
    pub default: Fallback,
    /// What it is for.
    pub help: &'static str,
}

/// What holds when nobody sets a setting.
pub(super) enum Fallback {
    /// This value.
    Value(&'static str),
    /// It depends, as described.
    Depends(&'static str),
}

impl Setting {
    /// `EXPERTISE_LIKE_THIS`.
    pub fn env(&self) -> String {
        env(self.key)
    }

    /// Its flag.
    pub fn arg(&self) -> Arg {
        let (Fallback::Value(default) | Fallback::Depends(default)) = self.default;
        Arg::new(self.key)
            .long(self.key.replace('_', "-"))
            .value_name(self.unit)
            .help(format!(
                "{} [{}] [default: {default}]",
                self.help,
                self.env()
            ))
            .help_heading("Settings")
    }
}

/// `--like-this`.
pub(super) fn flag(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// `EXPERTISE_LIKE_THIS`.
pub(super) fn env(key: &str) -> String {
    format!("EXPERTISE_{}", key.to_ascii_uppercase())
}

/// Nothing holds.
const UNSET: Fallback = Fallback::Depends("unset");

pub(super) const LISTEN: Setting = Setting {
    key: "listen",
    unit: "ADDRESS:PORT",
    default: Fallback::Value("127.0.0.1:50051"),
    help: "Where to listen; port 0 picks a free one, which the start line names",
};
pub(super) const DATABASE_URL: Setting = Setting {
    key: "database_url",
    unit: "URL",
    default: Fallback::Value("sqlite:expertise.db"),
    help: "sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE",
};
pub(super) const DATABASE_READ_URL: Setting = Setting {
    key: "database_read_url",
    unit: "URL",
    default: UNSET,
    help: "postgres://USER:PASSWORD@HOST:PORT/DATABASE of a replica for lists, exports and \
           translation work, which may lag behind",
};
pub(super) const MIGRATE: Setting = Setting {
    key: "migrate",
    unit: "true|false",
    default: Fallback::Value("true"),
    help: "Bring the schema up to date at start; false refuses to serve an old one",
};
pub(super) const DATABASE_MAX_CONNECTIONS: Setting = Setting {
    key: "database_max_connections",
    unit: "COUNT",
    default: Fallback::Value("16"),
    help: "Connections to PostgreSQL at most, 1 to 1000",
};
pub(super) const AUTH: Setting = Setting {
    key: "auth",
    unit: "header|jwt",
    default: Fallback::Depends("header on a loopback address"),
    help: "header: metadata x-account-id (required), x-subject and x-scopes are believed; \
           on any address but loopback it must be asked for. jwt: authorization: Bearer TOKEN",
};
pub(super) const JWT_SECRET: Setting = Setting {
    key: "jwt_secret",
    unit: "SECRET",
    default: UNSET,
    help: "Tokens are signed with this secret of 32 bytes at least (HS256); best set in the \
           environment or the file, as others see flags",
};
pub(super) const JWT_PUBLIC_KEY_FILE: Setting = Setting {
    key: "jwt_public_key_file",
    unit: "PATH",
    default: UNSET,
    help: "Tokens are signed with the private key of this public key in PEM (RS256, ES256 or \
           EdDSA, as its type has it); read again when it changes",
};
pub(super) const JWT_JWKS_FILE: Setting = Setting {
    key: "jwt_jwks_file",
    unit: "PATH",
    default: UNSET,
    help: "Tokens are signed with a key of this JSON Web Key Set; read again when it changes",
};
pub(super) const JWT_JWKS_URL: Setting = Setting {
    key: "jwt_jwks_url",
    unit: "URL",
    default: UNSET,
    help: "Tokens are signed with a key of the JSON Web Key Set behind this http or https URL; \
           fetched at start, and again for a key id that is not known",
};
pub(super) const JWT_ISSUER: Setting = Setting {
    key: "jwt_issuer",
    unit: "TEXT",
    default: UNSET,
    help: "What a token's iss must be; required with jwt",
};
pub(super) const JWT_AUDIENCE: Setting = Setting {
    key: "jwt_audience",
    unit: "TEXT",
    default: UNSET,
    help: "What a token's aud must be or contain; required with jwt",
};
pub(super) const TLS_CERT_FILE: Setting = Setting {
    key: "tls_cert_file",
    unit: "PATH",
    default: UNSET,
    help: "Serve TLS with this certificate and those between it and the root, in PEM",
};
pub(super) const TLS_KEY_FILE: Setting = Setting {
    key: "tls_key_file",
    unit: "PATH",
    default: UNSET,
    help: "The private key of the certificate, in PEM",
};
pub(super) const TLS_CLIENT_CA_FILE: Setting = Setting {
    key: "tls_client_ca_file",
    unit: "PATH",
    default: UNSET,
    help: "Serve only clients that show a certificate of these authorities, in PEM",
};
pub(super) const MAX_MESSAGE_BYTES: Setting = Setting {
    key: "max_message_bytes",
    unit: "BYTES",
    default: Fallback::Value("75497472"),
    help: "The largest message taken or sent, 1024 to 2147483647",
};
pub(super) const MAX_INFLIGHT_BYTES: Setting = Setting {
    key: "max_inflight_bytes",
    unit: "BYTES",
    default: Fallback::Value("536870912"),
    help: "Bytes of calls at hand at most, 1024 to 1099511627776; a call beyond is RESOURCE_EXHAUSTED \
           and may be repeated later",
};
pub(super) const REQUEST_TIMEOUT: Setting = Setting {
    key: "request_timeout",
    unit: "DURATION",
    default: Fallback::Value("30s"),
    help: "How long a call may take, such as 500ms or 1m, at most 1day; a caller's shorter deadline wins",
};
pub(super) const SHUTDOWN_GRACE: Setting = Setting {
    key: "shutdown_grace",
    unit: "DURATION",
    default: Fallback::Value("8s"),
    help: "How long calls at hand may go on after SIGTERM or SIGINT, at most 1day",
};
pub(super) const REFLECTION: Setting = Setting {
    key: "reflection",
    unit: "true|false",
    default: Fallback::Value("true"),
    help: "Serve gRPC reflection, for grpcurl and the like",
};
pub(super) const METRICS_LISTEN: Setting = Setting {
    key: "metrics_listen",
    unit: "ADDRESS:PORT",
    default: UNSET,
    help: "Serve /metrics, /healthz and /readyz over plain HTTP there, without credentials; \
           port 0 picks a free one, which the start line names",
};
pub(super) const OTLP_ENDPOINT: Setting = Setting {
    key: "otlp_endpoint",
    unit: "URL",
    default: UNSET,
    help: "Send traces to the collector behind this http or https URL, over OTLP with gRPC, \
           such as http://127.0.0.1:4317",
};
pub(super) const LOG: Setting = Setting {
    key: "log",
    unit: "FILTER",
    default: Fallback::Value("info"),
    help: "off, error, warn, info, debug or trace, or by part, such as info,expertise::store=debug; \
           what libraries log below warn stays out, as it may hold texts and tokens",
};
pub(super) const LOG_FORMAT: Setting = Setting {
    key: "log_format",
    unit: "text|json",
    default: Fallback::Depends("text on a terminal, else json"),
    help: "The form of the log on standard error",
};

/// Every setting, in the order of `--help`.
pub(super) const ALL: [Setting; 24] = [
    LISTEN,
    DATABASE_URL,
    DATABASE_READ_URL,
    MIGRATE,
    DATABASE_MAX_CONNECTIONS,
    AUTH,
    JWT_SECRET,
    JWT_PUBLIC_KEY_FILE,
    JWT_JWKS_FILE,
    JWT_JWKS_URL,
    JWT_ISSUER,
    JWT_AUDIENCE,
    TLS_CERT_FILE,
    TLS_KEY_FILE,
    TLS_CLIENT_CA_FILE,
    MAX_MESSAGE_BYTES,
    MAX_INFLIGHT_BYTES,
    REQUEST_TIMEOUT,
    SHUTDOWN_GRACE,
    REFLECTION,
    METRICS_LISTEN,
    OTLP_ENDPOINT,
    LOG,
    LOG_FORMAT,
];

/// The name of the flag that names the file.
pub(super) const CONFIG_FILE: &str = "config";

/// The names of the subcommands; `serve` is what no subcommand means.
pub(super) const MIGRATE_COMMAND: &str = "migrate";
pub(super) const CONFIG_COMMAND: &str = "config";
pub(super) const TOKEN_COMMAND: &str = "token";
pub(super) const COMPLETIONS_COMMAND: &str = "completions";
pub(super) const MAN_COMMAND: &str = "man";

/// The argument of `completions`, and that of `man`.
pub(super) const SHELL: &str = "shell";
pub(super) const PAGE: &str = "command";

/// The command line.
pub(super) fn command() -> Command {
    let serve = Command::new("serve").about("Serve; what is done without a subcommand");
    let migrate =
        Command::new(MIGRATE_COMMAND).about("Bring the database's schema up to date and end");
    let config = Command::new(CONFIG_COMMAND)
        .about("Print the effective settings, secrets masked, and where each comes from");
    let of_a_server = [
        serve,
        migrate,
        config,
        token::command(TOKEN_COMMAND),
        translate::command(),
    ];
    let program = Command::new("expertise")
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .after_help("Flags win over the environment, the environment over the file, the file over defaults.")
        .subcommands(of_a_server.map(with_settings))
        .subcommands(errand::commands())
        .subcommand(health::command(file()))
        .subcommand(completions())
        .subcommand(man());
    with_settings(program)
}

/// The settings stand before or after the subcommands that look at them.
fn with_settings(command: Command) -> Command {
    command.arg(file()).args(ALL.iter().map(Setting::arg))
}

fn file() -> Arg {
    Arg::new(CONFIG_FILE)
        .long("config")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .help("A TOML file of settings; its keys are the flags with _ for -")
        .value_parser(value_parser!(std::path::PathBuf))
}

fn completions() -> Command {
    let shell = Arg::new(SHELL)
        .required(true)
        .value_parser(value_parser!(Shell))
        .help("The shell that is to complete");
    Command::new(COMPLETIONS_COMMAND)
        .about("Print what makes a shell complete this command line")
        .arg(shell)
}

fn man() -> Command {
    let page = Arg::new(PAGE)
        .value_name("COMMAND")
        .help("The subcommand that the page is about [default: all of them in short]");
    Command::new(MAN_COMMAND)
        .about("Print a manual page, for man to show")
        .arg(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn help_lists_every_setting_with_environment_name_and_default() {
        let help = command().render_long_help().to_string();
        for setting in ALL {
            let (Fallback::Value(default) | Fallback::Depends(default)) = setting.default;
            for text in [
                flag(setting.key),
                setting.env(),
                format!("<{}>", setting.unit),
                format!("[default: {default}]"),
            ] {
                assert!(help.contains(&text), "{text} is not in\n{help}");
            }
        }
    }

    #[test]
    fn help_of_translate_lists_its_settings() {
        let help = translate::command().render_long_help().to_string();
        for setting in translate::all() {
            for text in [flag(setting.key), setting.env()] {
                assert!(help.contains(&text), "{text} is not in\n{help}");
            }
        }
    }
}
