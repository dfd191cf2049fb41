//! Settings: the only reader of the environment and of the settings file.
//!
//! Flags win over the environment, the environment over the file, the file over
//! defaults. A wrong value stops the start with one line.

mod analysis_command;
mod auth;
mod client_command;
mod command_line;
mod connection;
mod database_url;
mod enum_arguments;
mod error;
mod examples;
mod health;
mod names;
mod postgres_parameters;
mod secret;
mod settings;
mod tls;
mod token;
mod translate;
mod value;

use std::{
    ffi::OsString,
    fmt,
    io::{self, IsTerminal},
    net::SocketAddr,
    time::Duration,
};

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use http::Uri;
use tracing_subscriber::filter::Targets;

pub use self::{
    analysis_command::{GraphArgs, GraphFormat, GuideArg, LintArgs, PreviewArgs, ReferencesArgs},
    auth::{AuthMode, KeySource, SigningKey, TokenRules, TokenSigning},
    client_command::{
        AliasArgs, ApplyArgs, ChangesArgs, ChangesStart, ClientCommand, ClientCommandConfig,
        DeleteArgs, DiffArgs, EditArgs, ExportArgs, Format, GuideRef, HistoryArgs, ImportArgs,
        KeepArgs, ListFilters, RestoreArgs, RevisionRef, ShowArgs, TaskRef,
    },
    command_line::{Invocation, NewArgs, command_line},
    connection::{ConnectionConfig, Credentials, RetrySettings, Trust},
    database_url::{DatabaseUrl, MASK, PostgresUrl},
    error::{ConfigError, WrongSetting},
    health::HealthConfig,
    secret::{Secret, SigningSecret},
    tls::Tls,
    token::TokenGrant,
    translate::{EngineKind, TranslateConfig},
};
use self::{
    auth::AuthSettings, client_command::OutputFormat, names::Variables,
    postgres_parameters::PostgresParameters, settings::GivenSettings, tls::TlsSettings,
};
use crate::domain::ids::AccountId;

const DEFAULT_LISTEN: &str = "127.0.0.1:50051";
/// The largest message of a server by default, in bytes.
pub const DEFAULT_MAX_MESSAGE_BYTES: u32 = 75_497_472;
/// Of each message 4,096 bytes are reserved, so with a few kilobytes no task could be created.
const MIN_MESSAGE_BYTES: usize = 65_536;

/// The settings of a server, every one valid.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Settings")]
pub struct Config {
    /// Where to listen; port 0 picks a free one, which the start line names
    #[arg(value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN, value_parser = value::address(50051))]
    pub listen: SocketAddr,
    /// sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(
        id = "database_url",
        value_name = "URL",
        default_value = "sqlite:expertise.db",
        value_parser = DatabaseUrl::parse
    )]
    pub database: DatabaseUrl,
    /// Bring the schema up to date at start; false refuses to serve an old one
    #[arg(
        value_name = "true|false",
        default_value = "true",
        action = clap::ArgAction::Set,
        value_parser = value::boolean
    )]
    pub migrate: bool,
    /// The most connections to PostgreSQL, 1 to 1000
    #[arg(value_name = "COUNT", default_value = "16", value_parser = value::number::<u32>(1..=1000))]
    pub database_max_connections: u32,
    /// Where the account of a call is taken from: the settings `auth` and `jwt_*`.
    #[arg(skip)]
    pub auth: AuthMode,
    /// TLS, if it is served: the settings `tls_*`.
    #[arg(skip)]
    pub tls: Option<Tls>,
    /// The largest message received or sent, 65536 to 2147483647
    #[arg(
        value_name = "BYTES",
        default_value_t = DEFAULT_MAX_MESSAGE_BYTES as usize,
        value_parser = value::number::<usize>(MIN_MESSAGE_BYTES..=2_147_483_647)
    )]
    pub max_message_bytes: usize,
    /// The most bytes of calls in progress, 65536 to 1099511627776; a call beyond them is refused with RESOURCE_EXHAUSTED and may be repeated later
    #[arg(
        value_name = "BYTES",
        default_value = "536870912",
        value_parser = value::number::<usize>(MIN_MESSAGE_BYTES..=1_099_511_627_776)
    )]
    pub max_inflight_bytes: usize,
    /// How long a call may take, such as 500ms or 1m, at most 1day; a caller's shorter deadline wins
    #[arg(
        value_name = "DURATION",
        default_value = "30s",
        value_parser = value::duration(Duration::from_millis(1))
    )]
    pub request_timeout: Duration,
    /// How long calls in progress may go on after SIGTERM or SIGINT, at most 1day
    #[arg(
        value_name = "DURATION",
        default_value = "8s",
        value_parser = value::duration(Duration::ZERO)
    )]
    pub shutdown_grace: Duration,
    /// How many revisions of a guide are kept that were made without a request, 0 to 1000; 0 makes none
    #[arg(
        value_name = "COUNT",
        default_value = "50",
        value_parser = value::number::<usize>(0..=1_000)
    )]
    pub automatic_revisions: usize,
    /// How long the history of a deleted guide is kept, at most 3650days; 0s keeps none
    #[arg(
        value_name = "DURATION",
        default_value = "90days",
        value_parser = value::retention(Duration::ZERO, 3_650)
    )]
    pub deleted_task_retention: Duration,
    /// How long changes are kept for those who follow them, 1h to 365days
    #[arg(
        value_name = "DURATION",
        default_value = "7days",
        value_parser = value::retention(Duration::from_secs(60 * 60), 365)
    )]
    pub changes_retention: Duration,
    /// Serve gRPC reflection, for grpcurl and the like
    #[arg(
        value_name = "true|false",
        default_value = "true",
        action = clap::ArgAction::Set,
        value_parser = value::boolean
    )]
    pub reflection: bool,
    /// Serve /metrics, /healthz and /readyz over plain HTTP on this address, without credentials; port 0 picks a free one, which the start line names
    #[arg(value_name = "ADDRESS:PORT", value_parser = value::address(9464))]
    pub metrics_listen: Option<SocketAddr>,
    /// Send traces to the collector behind this http or https URL, over OTLP with gRPC, such as http://127.0.0.1:4317
    #[arg(value_name = "URL", value_parser = value::http_url)]
    pub otlp_endpoint: Option<Uri>,
    /// What is logged, and how.
    #[command(flatten)]
    pub log: LogConfig,
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Settings")]
pub struct LogConfig {
    /// off, error, warn, info, debug or trace, or by part, such as info,expertise::store=debug; messages of libraries below warn are left out, as they may hold texts and tokens
    #[arg(id = "log", value_name = "FILTER", default_value = "info", value_parser = value::log)]
    pub filter: Targets,
    /// The form of the log on standard error [default: text on a terminal, else json]
    #[arg(
        id = "log_format",
        value_name = "text|json",
        default_value_t = LogFormat::of_terminal(),
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub format: LogFormat,
}

/// Every setting of a server.
#[derive(Args)]
struct ServerSettings {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    auth: AuthSettings,
    #[command(flatten)]
    tls: TlsSettings,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object a line
    Json,
}

impl LogFormat {
    fn of_terminal() -> Self {
        if io::stderr().is_terminal() {
            Self::Text
        } else {
            Self::Json
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Json => f.write_str("json"),
        }
    }
}

/// How `migrate` lays out the tables of account data of a new database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableLayout {
    /// As they are.
    #[default]
    Plain,
    /// Distributed over the nodes of a Citus cluster by account.
    Distributed,
}

/// A subcommand.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Serve until a signal.
    Serve(Box<Config>),
    /// Bring the schema up to date, or create it with tables that are laid out in another way.
    Migrate {
        /// Where the database is; accounts and TLS are not read.
        config: Box<Config>,
        /// How the tables of account data are laid out in a new database.
        layout: TableLayout,
    },
    /// List the accounts of the database.
    Accounts(Box<Config>, Format),
    /// Delete an account from the database.
    DeleteAccount(Box<Config>, DeletedAccount, Format),
    /// Copy a database into that of the settings.
    Copy(Box<Config>, DatabaseUrl),
    /// Print the effective settings: a settings file, secrets masked, with the origin of each.
    Config(String),
    /// Check what a server needs.
    CheckConfig(Box<Config>),
    /// Sign a token and print it.
    Token(TokenSigning, TokenGrant),
    /// Translate what a running server has to translate.
    Translate(Box<TranslateConfig>),
    /// List what a running server has to translate.
    TranslationWork(Box<TranslateConfig>, Format),
    /// Run a command on guides.
    Client(Box<ClientCommandConfig>),
    /// Write a guide to start from.
    New(NewArgs),
    /// Check a server's health.
    Health(HealthConfig),
    /// Print a script that makes a shell complete the command line.
    Completions(Shell),
    /// Print the manual page of the program, or of this subcommand.
    Man(Option<String>),
}

/// The account that a command deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedAccount {
    /// The account.
    pub id: AccountId,
    /// Whether it is deleted without a question.
    pub force: bool,
}

impl Config {
    /// Defaults on a free loopback port with the database given.
    ///
    /// # Panics
    ///
    /// When the text is no database URL.
    pub fn for_tests(database_url: &str) -> Self {
        let args = [
            "expertise",
            "--listen=127.0.0.1:0",
            "--database-url",
            database_url,
        ];
        let read = Invocation::read(String::new(), args.map(OsString::from), []);
        match read.map(|invocation| invocation.command) {
            Ok(Command::Serve(config)) => *config,
            Ok(command) => panic!("{command:?}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Checks settings against each other.
    fn check(&self, given: &GivenSettings, environment: &Variables) -> Result<(), WrongSetting> {
        self.check_limits(given)?;
        self.check_ports(given)?;
        match self.postgres_parameters(environment) {
            Some(postgres) => postgres.check_values(given),
            None => Ok(()),
        }
    }

    /// Checks the files of connections to PostgreSQL.
    fn check_files(
        &self,
        given: &GivenSettings,
        environment: &Variables,
    ) -> Result<(), WrongSetting> {
        match self.postgres_parameters(environment) {
            Some(postgres) => postgres.check_files(given),
            None => Ok(()),
        }
    }

    /// The parameters of a PostgreSQL database.
    fn postgres_parameters<'a>(
        &'a self,
        environment: &'a Variables,
    ) -> Option<PostgresParameters<'a>> {
        match &self.database {
            DatabaseUrl::SqliteFile(_) | DatabaseUrl::SqliteMemory => None,
            DatabaseUrl::Postgres(url) => Some(PostgresParameters {
                key: "database_url",
                url,
                environment,
            }),
        }
    }

    /// Refuses one port for calls and metrics.
    fn check_ports(&self, given: &GivenSettings) -> Result<(), WrongSetting> {
        match self.metrics_listen {
            Some(metrics) if is_same_port(self.listen, metrics) => {
                let (port, name) = (self.listen.port(), given.name("listen"));
                let expected = format!("another port than {port}, where calls are served ({name})");
                Err(given.wrong("metrics_listen", expected))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses less memory for calls in progress than the largest message takes: the server
    /// would refuse every message of that size.
    fn check_limits(&self, given: &GivenSettings) -> Result<(), WrongSetting> {
        const MESSAGE: &str = "max_message_bytes";
        const INFLIGHT: &str = "max_inflight_bytes";
        let (largest, inflight) = (self.max_message_bytes, self.max_inflight_bytes);
        if inflight >= largest {
            return Ok(());
        }
        let (message_name, inflight_name) = (given.name(MESSAGE), given.name(INFLIGHT));
        // The error is about the setting that was given, or about the smaller one of two.
        Err(match given.named(INFLIGHT) {
            Some(_) => given.wrong(
                INFLIGHT,
                format!("at least {largest}, the largest message ({message_name})"),
            ),
            None => given.wrong(
                MESSAGE,
                format!("at most {inflight}, or {inflight_name} must be at least {largest}"),
            ),
        })
    }
}

impl ServerSettings {
    /// The settings of a server, checked but for the files of connections to PostgreSQL.
    fn for_serving(
        self,
        given: &GivenSettings,
        environment: &Variables,
    ) -> Result<Config, WrongSetting> {
        self.config.check(given, environment)?;
        Ok(Config {
            auth: self.auth.for_serving(given, self.config.listen)?,
            tls: self.tls.tls(given)?,
            ..self.config
        })
    }
}

/// Whether only one of the addresses can be listened on. 0.0.0.0 takes the port on all IPv4
/// addresses, `[::]` on all addresses.
fn is_same_port(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |all: SocketAddr, address: SocketAddr| {
        all.ip().is_unspecified() && (all.is_ipv6() || address.is_ipv4())
    };
    let is_same_host = one.ip() == other.ip() || covers(one, other) || covers(other, one);
    one.port() != 0 && one.port() == other.port() && is_same_host
}

#[cfg(test)]
mod tests;
