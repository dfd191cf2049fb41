//! Settings: the only reader of the environment and of the settings file.
//!
//! Flags win over the environment, the environment over the file, the file over
//! defaults. A wrong value stops the start with one line.

mod auth;
mod connection;
mod database_url;
mod errand;
mod health;
mod secret;
mod sources;
mod table;
mod tls;
mod token;
mod translate;
mod value;

use std::{
    env,
    ffi::OsString,
    fmt,
    io::{self, IsTerminal},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};

use clap::ArgMatches;
use clap_complete::Shell;
use http::Uri;
use tracing_subscriber::filter::Targets;

pub use self::{
    auth::{AuthMode, KeySource, SigningSecret, TokenRules},
    connection::{Connection, Credentials, RetrySettings, Trust},
    database_url::{DatabaseUrl, MASK, PostgresUrl},
    errand::{Errand, ErrandConfig, Filters, Import, Intent, Output},
    health::HealthConfig,
    secret::Secret,
    tls::Tls,
    token::TokenGrant,
    translate::{EngineKind, TranslateConfig},
};
use self::{sources::Values, table::Setting};

/// The settings of a server, every one valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The database.
    pub database: DatabaseUrl,
    /// A replica of it for reads that may lag, on PostgreSQL alone.
    pub database_read: Option<PostgresUrl>,
    /// Whether a start brings the schema up to date.
    pub migrate: bool,
    /// PostgreSQL connections at most, 1 to 1,000.
    pub database_max_connections: u32,
    /// Where accounts come from.
    pub auth: AuthMode,
    /// TLS, if it is served.
    pub tls: Option<Tls>,
    /// The largest message taken or sent, in bytes, 1 KiB to 2 GiB - 1.
    pub max_message_bytes: usize,
    /// Bytes of calls at hand at most, 1 KiB to 1 TiB.
    pub max_inflight_bytes: usize,
    /// How long a call may take, 1 ms to 1 day.
    pub request_timeout: Duration,
    /// How long a shutdown may take, up to 1 day.
    pub shutdown_grace: Duration,
    /// Whether reflection is served.
    pub reflection: bool,
    /// Where metrics are served, if they are.
    pub metrics_listen: Option<SocketAddr>,
    /// The collector that traces are sent to, if they are.
    pub otlp_endpoint: Option<Uri>,
    /// What is logged.
    pub log: Targets,
    /// The form of the log.
    pub log_format: LogFormat,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Json => f.write_str("json"),
        }
    }
}

/// What the command line asks for.
pub struct Invocation {
    /// The subcommand.
    pub command: Command,
    /// The effective settings of a server; the defaults for a command that does
    /// not look at them, as what is wrong with them is none of its business.
    pub config: Config,
    values: Values,
}

/// A subcommand.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Serve until a signal.
    Serve,
    /// Bring the schema up to date.
    Migrate,
    /// Print the effective settings.
    Config,
    /// Sign a token and print it.
    Token(TokenGrant),
    /// Translate what a running server has to translate.
    Translate(Box<TranslateConfig>),
    /// Ask something of a running server.
    Errand(Box<ErrandConfig>),
    /// Ask a server whether it is well.
    Health(HealthConfig),
    /// Print what makes a shell complete the command line.
    Completions(Shell),
    /// Print the manual page of the program, or of this subcommand.
    Man(Option<String>),
}

/// Why nothing was started. A display is one line, but for [`Self::Usage`].
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line cannot be read, or asks for help or the version.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] WrongSetting),
}

/// What is wrong with a setting. A display is one line without secrets.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongSetting {
    /// The value is not one of those allowed.
    #[error("{setting} is {value}: it must be {expected}")]
    Value {
        /// The setting as the user named it.
        setting: String,
        /// The value, quoted, secrets masked.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A setting of the server was given to a command that is none.
    #[error("{flag} is a setting of the server: leave it out of `{command}`")]
    Stray {
        /// The flag.
        flag: String,
        /// The subcommand.
        command: String,
    },
    /// A page of the manual that there is not.
    #[error("{0:?} is no subcommand: `expertise --help` lists them")]
    NoCommand(String),
    /// A key of the file that names no setting.
    #[error("{0} is no setting: `expertise --help` lists them")]
    Unknown(String),
    /// The file cannot be read.
    #[error("--config is {path:?}: it must be a readable TOML file: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
}

impl Invocation {
    /// Reads command line, environment and file of this process.
    pub fn of_process(version: String) -> Result<Self, ConfigError> {
        Self::read(version, env::args_os(), &|name| env::var_os(name))
    }

    fn read(
        version: String,
        args: impl IntoIterator<Item = OsString>,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        let matches = command_line(version).try_get_matches_from(args)?;
        let (name, flags) = matches.subcommand().unwrap_or(("serve", &matches));
        let command = match name {
            table::MIGRATE_COMMAND => Command::Migrate,
            table::CONFIG_COMMAND => Command::Config,
            translate::COMMAND => {
                Command::Translate(Box::new(TranslateConfig::read(flags, environment)?))
            }
            table::TOKEN_COMMAND => Command::Token(token::read(flags)?),
            health::COMMAND => Command::Health(HealthConfig::read(&matches, flags, environment)?),
            table::COMPLETIONS_COMMAND => match flags.get_one(table::SHELL) {
                Some(shell) => Command::Completions(*shell),
                None => Command::Serve,
            },
            table::MAN_COMMAND => Command::Man(page(flags)?),
            name => match ErrandConfig::read(name, flags, environment)? {
                Some(errand) => Command::Errand(Box::new(errand)),
                None => Command::Serve,
            },
        };
        let values = match command {
            Command::Serve
            | Command::Migrate
            | Command::Config
            | Command::Token(_)
            | Command::Translate(_) => Values::gather(&[&matches, flags], environment)?,
            Command::Health(_) => Values::none(),
            Command::Errand(_) | Command::Completions(_) | Command::Man(_) => {
                sources::refuse_settings(&matches, name)?;
                Values::none()
            }
        };
        let config = Config::read(&values, &command)?;
        Ok(Self {
            command,
            config,
            values,
        })
    }

    /// The effective settings as a settings file, secrets masked, with the
    /// source of each. What is unset is left out.
    pub fn effective(&self) -> String {
        let set = self.config.entries().into_iter();
        let set = set.filter_map(|(setting, value)| Some((setting, value?)));
        let lines = set.map(|(setting, value)| {
            let assignment = format!("{} = {value}", setting.key);
            match self.values.origin(&setting) {
                Some(origin) => format!("{assignment:<50} # {origin}\n"),
                None => format!("{assignment:<50} # default\n"),
            }
        });
        lines.collect()
    }
}

/// The command line, every subcommand and flag of it; `--version` prints the version.
pub fn command_line(version: String) -> clap::Command {
    table::command().version(version)
}

/// The subcommand that a page of the manual is asked for.
fn page(flags: &ArgMatches) -> Result<Option<String>, WrongSetting> {
    let name = flags.get_one::<String>(table::PAGE).cloned();
    match name {
        Some(name) if table::command().find_subcommand(&name).is_none() => {
            Err(WrongSetting::NoCommand(name))
        }
        name => Ok(name),
    }
}

impl Config {
    /// Defaults on a free loopback port with the database given.
    ///
    /// # Panics
    ///
    /// When the text is no database URL.
    pub fn for_tests(database_url: &str) -> Self {
        let args = ["expertise", "--listen=127.0.0.1:0", "--database-url"]
            .map(OsString::from)
            .into_iter()
            .chain([OsString::from(database_url)]);
        match Invocation::read(String::new(), args, &|_| None) {
            Ok(invocation) => invocation.config,
            Err(error) => panic!("{error}"),
        }
    }

    fn read(values: &Values, command: &Command) -> Result<Self, WrongSetting> {
        let listen = values.read_or_default(&table::LISTEN, value::address)?;
        let database = values.read_or_default(&table::DATABASE_URL, DatabaseUrl::parse)?;
        Ok(Self {
            listen,
            database_read: read_replica(values, &database)?,
            database,
            migrate: values.read_or_default(&table::MIGRATE, value::truth)?,
            database_max_connections: values
                .read_or_default(&table::DATABASE_MAX_CONNECTIONS, value::number(1..=1000))?,
            auth: auth::read(values, listen, command)?,
            tls: tls::read(values)?,
            max_message_bytes: values.read_or_default(
                &table::MAX_MESSAGE_BYTES,
                value::number(1024..=2_147_483_647),
            )?,
            max_inflight_bytes: values.read_or_default(
                &table::MAX_INFLIGHT_BYTES,
                value::number(1024..=1_099_511_627_776),
            )?,
            request_timeout: values.read_or_default(
                &table::REQUEST_TIMEOUT,
                value::duration(Duration::from_millis(1)),
            )?,
            shutdown_grace: values
                .read_or_default(&table::SHUTDOWN_GRACE, value::duration(Duration::ZERO))?,
            reflection: values.read_or_default(&table::REFLECTION, value::truth)?,
            metrics_listen: values.read(&table::METRICS_LISTEN, value::address)?,
            otlp_endpoint: values.read(&table::OTLP_ENDPOINT, value::http_url)?,
            log: values.read_or_default(&table::LOG, value::log)?,
            log_format: values
                .read(&table::LOG_FORMAT, value::log_format)?
                .unwrap_or_else(LogFormat::of_terminal),
        })
    }

    /// Each setting with its value in TOML, secrets masked; `None` for one that
    /// is unset.
    fn entries(&self) -> Vec<(Setting, Option<String>)> {
        let Self {
            listen,
            database,
            database_read,
            migrate,
            database_max_connections,
            auth,
            tls,
            max_message_bytes,
            max_inflight_bytes,
            request_timeout,
            shutdown_grace,
            reflection,
            metrics_listen,
            otlp_endpoint,
            log,
            log_format,
        } = self;
        let quoted = |value: &dyn fmt::Display| Some(format!("{:?}", value.to_string()));
        let span = |time: &Duration| quoted(&humantime::format_duration(*time));
        let plain = |value: &dyn fmt::Display| Some(value.to_string());
        let optional = auth.entries().into_iter().chain(tls::entries(tls.as_ref()));
        let mut entries = vec![
            (table::LISTEN, quoted(listen)),
            (table::DATABASE_URL, quoted(database)),
            (
                table::DATABASE_READ_URL,
                database_read.as_ref().and_then(|url| quoted(url)),
            ),
            (table::MIGRATE, plain(migrate)),
            (
                table::DATABASE_MAX_CONNECTIONS,
                plain(database_max_connections),
            ),
            (table::AUTH, quoted(auth)),
        ];
        entries.extend(optional.map(|(setting, value)| {
            let value = value.and_then(|value| quoted(&value));
            (setting, value)
        }));
        entries.extend([
            (table::MAX_MESSAGE_BYTES, plain(max_message_bytes)),
            (table::MAX_INFLIGHT_BYTES, plain(max_inflight_bytes)),
            (table::REQUEST_TIMEOUT, span(request_timeout)),
            (table::SHUTDOWN_GRACE, span(shutdown_grace)),
            (table::REFLECTION, plain(reflection)),
            (
                table::METRICS_LISTEN,
                metrics_listen.as_ref().and_then(|at| quoted(at)),
            ),
            (
                table::OTLP_ENDPOINT,
                otlp_endpoint.as_ref().and_then(|at| quoted(at)),
            ),
            (table::LOG, quoted(log)),
            (table::LOG_FORMAT, quoted(log_format)),
        ]);
        entries
    }
}

/// The replica, which only PostgreSQL has.
fn read_replica(
    values: &Values,
    database: &DatabaseUrl,
) -> Result<Option<PostgresUrl>, WrongSetting> {
    let setting = table::DATABASE_READ_URL;
    let replica = values.read(&setting, PostgresUrl::parse)?;
    match database {
        DatabaseUrl::Postgres(_) => Ok(replica),
        DatabaseUrl::SqliteFile(_) | DatabaseUrl::SqliteMemory if replica.is_some() => {
            let database = table::DATABASE_URL.env();
            Err(values.wrong(
                &setting,
                format!("unset, as only PostgreSQL has replicas and {database} is SQLite"),
            ))
        }
        DatabaseUrl::SqliteFile(_) | DatabaseUrl::SqliteMemory => Ok(None),
    }
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

#[cfg(test)]
mod tests;
