//! The settings of a server, with one struct per section.

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};

use clap::{Arg, ArgAction, Args, Command, ValueEnum};
use http::{HeaderValue, Uri};
use tracing_subscriber::filter::Targets;

use super::{
    AuthMode, DatabaseUrl,
    auth::AuthSettings,
    names::with_uniform_names,
    read::{ConfigError, fail_if_any, wrong},
    settings_file::SettingsFileArg,
    value,
};

pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:50051";
/// The default of the maximum message size.
pub const DEFAULT_MAX_MESSAGE_BYTES: u32 = 75_497_472;
/// 4,096 bytes of each message are reserved, so with a limit of a few kilobytes, no task could be
/// created.
const MIN_MESSAGE_BYTES: usize = 65_536;

/// The valid settings of a server.
#[derive(Clone, Debug, PartialEq, Args)]
// The subcommand `config` has a group of this name.
#[group(skip)]
#[command(next_help_heading = "Server")]
pub struct Config {
    /// The address to listen on; port 0 picks a free port, which the start line reports
    #[arg(env, default_value = DEFAULT_LISTEN, value_parser = value::address(50051))]
    pub listen: SocketAddr,
    /// Serve gRPC reflection, for tools such as grpcurl
    #[arg(env, default_value = "true", action = ArgAction::Set)]
    pub reflection: bool,
    /// The origins (scheme, host and port) of web pages that may make calls over gRPC-Web, separated by commas; * allows all [default: none]
    #[arg(
        env,
        value_name = "ORIGIN,ORIGIN",
        default_value = "",
        hide_default_value = true,
        value_parser = value::origins
    )]
    // The full path keeps clap from reading a list of repeated flags.
    pub cors_origins: ::std::vec::Vec<HeaderValue>,
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub limits: LimitsConfig,
    #[command(flatten)]
    pub history: HistoryConfig,
    #[command(flatten)]
    pub telemetry: TelemetryConfig,
    #[command(flatten)]
    pub log: LogConfig,
    /// Where the account of a call comes from: the settings `auth` and `jwt_*`.
    #[arg(skip)]
    pub auth: AuthMode,
    /// `None` serves without TLS. From the settings `tls_*`.
    #[arg(skip)]
    pub tls: Option<Tls>,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseConfig {
    /// The database: sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(id = "database_url", env, default_value = "sqlite:expertise.db")]
    pub url: DatabaseUrl,
    /// Bring the schema up to date at start; if false, refuse to serve an old schema
    #[arg(env, default_value = "true", action = ArgAction::Set)]
    pub migrate: bool,
    /// The maximum number of connections to PostgreSQL, 1 to 1000; reads and writes share them, and writes use at most all but one
    #[arg(
        id = "database_max_connections",
        env,
        default_value = "16",
        value_parser = value::number::<u32>(1..=1000)
    )]
    pub max_connections: u32,
}

/// The limits of calls.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitsConfig {
    /// The maximum size of a message received or sent, 65536 to 2147483647; requests without guides, bodies and conditions have a limit of 4 MiB
    #[arg(
        env,
        default_value_t = DEFAULT_MAX_MESSAGE_BYTES as usize,
        value_parser = value::number::<usize>(MIN_MESSAGE_BYTES..=2_147_483_647)
    )]
    pub max_message_bytes: usize,
    /// The maximum number of bytes that all calls hold for guides and large responses, 65536 to 1099511627776 and at least the maximum size of a message; further calls fail with RESOURCE_EXHAUSTED and may be retried later
    #[arg(
        env,
        default_value = "536870912",
        value_parser = value::number::<usize>(MIN_MESSAGE_BYTES..=1_099_511_627_776)
    )]
    pub max_inflight_bytes: usize,
    /// How long a call may take, such as 500ms or 1m, at most 1day; a shorter deadline of the caller takes precedence
    #[arg(env, default_value = "30s", value_parser = value::duration("1ms", "1day"))]
    pub request_timeout: Duration,
    /// How long calls in progress may continue after SIGTERM or SIGINT, at most 1day; an eighth of it, at most 500ms, is for closing the database; 0s ends the calls immediately
    #[arg(env, default_value = "8s", value_parser = value::duration("0s", "1day"))]
    pub shutdown_grace: Duration,
    /// How long a connection accepts calls, 1s to 1day; the client then opens a new one, which spreads load over servers behind a connection-level proxy [default: unlimited]
    #[arg(env, value_parser = value::duration("1s", "1day"))]
    pub max_connection_age: Option<Duration>,
}

/// The retention of former states of guides.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "History")]
pub struct HistoryConfig {
    /// How many automatic revisions of each guide are kept, 0 to 1000; with 0, none are created, and existing ones stay
    #[arg(env, default_value = "50", value_parser = value::number::<usize>(0..=1_000))]
    pub automatic_revisions: usize,
    /// A change first creates a checkpoint of the guide if its newest revision is older than this, 1m to 30days; 0 creates none
    #[arg(env, default_value = "1h", value_parser = value::interval("1m", "30days"))]
    pub checkpoint_interval: Duration,
    /// How long deleted steps, and the history of deleted guides, are kept, at most 3650days; 0s keeps none
    #[arg(env, default_value = "90days", value_parser = value::duration("0s", "3650days"))]
    pub deleted_task_retention: Duration,
    /// How long the change feed keeps changes, 1h to 365days; the newest change of an account is always kept
    #[arg(env, default_value = "7days", value_parser = value::duration("1h", "365days"))]
    pub changes_retention: Duration,
}

/// Where metrics and traces go.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryConfig {
    /// Serve /metrics, /livez and /readyz over plain HTTP on this address, without credentials; the port must differ from the port for calls; port 0 picks a free port, which the start line reports
    #[arg(env, value_parser = value::address(9464))]
    pub metrics_listen: Option<SocketAddr>,
    /// Export traces to the collector at this http or https URL, over OTLP with gRPC, such as http://127.0.0.1:4317
    #[arg(env, value_parser = value::http_url)]
    pub otlp_endpoint: Option<Uri>,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Log")]
pub struct LogConfig {
    /// The log level: off, error, warn, info, debug or trace, optionally by module, such as info,expertise::store=debug; libraries never log below warn, because such messages may contain texts and tokens
    #[arg(id = "log", env, default_value = "info", value_parser = value::log)]
    pub filter: Targets,
    /// The format of the log on standard error [default: text on a terminal, else json]
    #[arg(
        id = "log_format",
        env,
        default_value = if io::stderr().is_terminal() { "text" } else { "json" },
        hide_default_value = true
    )]
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

/// The TLS files, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, then its intermediates.
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// The CAs of clients. If set, a client without a certificate from one of them is rejected.
    pub client_ca_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "TLS")]
struct TlsSettings {
    /// Serve TLS with this certificate, followed by its intermediates, in PEM; all TLS files are read again every two seconds
    #[arg(env)]
    tls_cert_file: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(env)]
    tls_key_file: Option<PathBuf>,
    /// Accept only clients that present a certificate from these CAs, in PEM
    #[arg(env)]
    tls_client_ca_file: Option<PathBuf>,
}

impl TlsSettings {
    /// A certificate and its key, or nothing at all.
    fn check(self) -> Result<Option<Tls>, String> {
        match (self.tls_cert_file, self.tls_key_file) {
            (Some(cert_file), Some(key_file)) => Ok(Some(Tls {
                cert_file,
                key_file,
                client_ca_file: self.tls_client_ca_file,
            })),
            (None, None) if self.tls_client_ca_file.is_none() => Ok(None),
            _ => Err(
                "EXPERTISE_TLS_CERT_FILE and EXPERTISE_TLS_KEY_FILE must be set together, and \
                 EXPERTISE_TLS_CLIENT_CA_FILE only with both"
                    .to_owned(),
            ),
        }
    }
}

/// All settings of a server, which are the keys of a settings file.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ServerSettings {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    auth: AuthSettings,
    #[command(flatten)]
    tls: TlsSettings,
    #[command(flatten)]
    file: SettingsFileArg,
}

/// The settings of a server, in sections.
pub fn server_settings() -> Vec<Arg> {
    let command = ServerSettings::augment_args(Command::new(""));
    let command = with_uniform_names(command);
    let is_setting = |argument: &&Arg| argument.get_env().is_some();
    command
        .get_arguments()
        .filter(is_setting)
        .cloned()
        .collect()
}

impl ServerSettings {
    /// Checks the settings against each other.
    pub fn check(self) -> Result<Config, ConfigError> {
        let config = self.config;
        let mut faults = config.database.url.faults();
        faults.extend(config.limits.fault());
        faults.extend(config.port_fault());
        match (self.auth.check(config.listen), self.tls.check()) {
            (Ok(auth), Ok(tls)) if faults.is_empty() => Ok(Config {
                auth,
                tls,
                ..config
            }),
            (auth, tls) => {
                faults.extend(auth.err().into_iter().flatten());
                faults.extend(tls.err());
                Err(ConfigError::Settings(faults))
            }
        }
    }
}

impl Config {
    /// Calls and metrics need different ports.
    fn port_fault(&self) -> Option<String> {
        let metrics = self.telemetry.metrics_listen?;
        let port = self.listen.port();
        let expected = format!("a port other than {port}, which serves calls (EXPERTISE_LISTEN)");
        is_same_port(self.listen, metrics)
            .then(|| wrong("EXPERTISE_METRICS_LISTEN", metrics, expected))
    }
}

impl LimitsConfig {
    /// With less memory for calls than the maximum message size, the server would refuse every
    /// message of that size.
    fn fault(&self) -> Option<String> {
        let (largest, inflight) = (self.max_message_bytes, self.max_inflight_bytes);
        let expected =
            format!("at least {largest}, the largest message (EXPERTISE_MAX_MESSAGE_BYTES)");
        (inflight < largest).then(|| wrong("EXPERTISE_MAX_INFLIGHT_BYTES", inflight, expected))
    }
}

/// Whether only one of the addresses can be used. 0.0.0.0 uses the port on all IPv4 addresses,
/// `[::]` on all addresses.
fn is_same_port(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |all: SocketAddr, address: SocketAddr| {
        all.ip().is_unspecified() && (all.is_ipv6() || address.is_ipv4())
    };
    let is_same_host = one.ip() == other.ip() || covers(one, other) || covers(other, one);
    one.port() != 0 && one.port() == other.port() && is_same_host
}

/// The settings of a command on the database. Settings of servers are not checked.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct DatabaseCommandConfig {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub log: LogConfig,
    #[command(flatten)]
    file: SettingsFileArg,
}

impl DatabaseCommandConfig {
    /// Checks the URL of the database.
    pub fn check(self) -> Result<Self, ConfigError> {
        fail_if_any(self.database.url.faults())?;
        Ok(self)
    }
}

/// How `migrate` lays out the tables of account data of a new database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableLayout {
    #[default]
    Plain,
    /// Distributed over the nodes of a Citus cluster by account.
    Distributed,
}
