//! The command line: its subcommands and their arguments.

use std::{env, ffi::OsString, path::PathBuf};

use clap::{
    Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint,
    error::{ContextKind, ContextValue},
};
use clap_complete::Shell;

use super::{
    Command, Config, ConfigError, HealthConfig, LogConfig, OutputFormat, ServerSettings,
    TokenGrant, TranslateConfig, WrongSetting,
    client_command::ClientCommandArgs,
    examples::with_examples,
    flags::Flags,
    health::HealthSettings,
    names::Variables,
    settings::{Environment, SettingValues, value_error},
    translate::TranslateSettings,
    value,
};

#[derive(Parser)]
#[command(
    name = "expertise",
    about,
    after_help = "Flags win over the environment, the environment over the file, the file over defaults."
)]
struct CommandLine {
    #[command(flatten)]
    server: ServerFlags,
    #[command(subcommand)]
    command: Option<CommandArgs>,
}

/// The settings of a server. They may stand before or after a subcommand that reads them.
#[derive(Args, Default)]
struct ServerFlags {
    /// A TOML file of settings; its keys are the flags with _ for -
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Flags<ServerSettings>,
}

#[derive(Subcommand)]
enum CommandArgs {
    /// Serve; what is done without a subcommand
    Serve(ServerFlags),
    /// Bring the database's schema up to date and end
    Migrate {
        /// Create the tables of a new PostgreSQL database in this many partitions, by account
        #[arg(long, value_name = "NUMBER", value_parser = value::number(2..=1024_u16))]
        partitions: Option<u16>,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Print the effective settings, secrets masked, and where each comes from
    Config(ServerFlags),
    /// Sign a token with EXPERTISE_JWT_SECRET and print it
    Token {
        #[command(flatten)]
        grant: TokenGrant,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Translate what is missing or outdated on a running server, and end
    Translate(Flags<TranslateSettings>),
    #[command(flatten)]
    Client(ClientCommandArgs),
    /// Ask a server for its health: exit code 0 if it is SERVING, else 1
    Health {
        #[command(flatten)]
        format: OutputFormat,
        #[command(flatten)]
        health: Flags<HealthSettings>,
        /// The TOML file of the server's settings
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
    },
    /// Print a script that makes a shell complete this command line
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page, for man to show
    Man {
        /// The subcommand that the page is about [default: all of them in short]
        command: Option<String>,
    },
}

/// The command line of this program; `--version` prints the version.
pub fn command_line(version: String) -> clap::Command {
    with_examples(CommandLine::command().version(version))
}

/// A parsed command line with its settings.
pub struct Invocation {
    /// The subcommand.
    pub command: Command,
    /// The effective settings of a server. A command that does not read them has the
    /// defaults here, and wrong settings do not keep it from running.
    pub config: Config,
    /// What may be a mistake in the settings of a server, a line each.
    pub warnings: Vec<String>,
    values: SettingValues,
}

impl Invocation {
    /// Reads command line, environment and file of this process.
    pub fn of_process(version: String) -> Result<Self, ConfigError> {
        Self::read(
            command_line(version),
            env::args_os(),
            &Variables::of_process(),
        )
    }

    pub(super) fn read(
        command_line: clap::Command,
        args: impl IntoIterator<Item = OsString>,
        environment: Environment<'_>,
    ) -> Result<Self, ConfigError> {
        let matches = command_line
            .try_get_matches_from(args)
            .map_err(with_tip)
            .map_err(wrong_argument)?;
        let CommandLine {
            server: program_flags,
            command,
        } = CommandLine::from_arg_matches(&matches)?;
        let name = matches.subcommand_name().unwrap_or_default();
        let (command, mut values) = match command {
            Some(command) => command.read(name, program_flags, environment)?,
            None => {
                let values = server_values(&program_flags, &ServerFlags::default(), environment);
                (Command::Serve, values)
            }
        };
        Ok(Self {
            config: Config::read(&mut values, &command, environment)?,
            warnings: warnings(&command, environment),
            command,
            values,
        })
    }

    /// The effective settings as a settings file, secrets masked, with the origin of
    /// each. What is unset is left out.
    pub fn effective(&self) -> String {
        self.values.effective::<ServerSettings>(&self.config.auth)
    }

    /// A message in which each setting of the server is named as it was given: by its flag,
    /// its variable, or its key in the file.
    pub fn with_names_as_given(&self, message: &str) -> String {
        self.values.with_names_as_given(message)
    }
}

impl CommandArgs {
    /// The command, and the settings of a server if it reads them.
    fn read(
        self,
        name: &str,
        program_flags: ServerFlags,
        environment: Environment<'_>,
    ) -> Result<(Command, SettingValues), ConfigError> {
        let server =
            |command_flags: &ServerFlags| server_values(&program_flags, command_flags, environment);
        let no_values = SettingValues::default();
        Ok(match self {
            Self::Serve(command_flags) => (Command::Serve, server(&command_flags)),
            Self::Migrate {
                partitions,
                server: command_flags,
            } => {
                let mut values = server(&command_flags);
                values.retain(&MIGRATE_SETTINGS);
                (Command::Migrate { partitions }, values)
            }
            Self::Config(command_flags) => (Command::Config, server(&command_flags)),
            Self::Token {
                grant,
                server: command_flags,
            } => (Command::Token(grant), server(&command_flags)),
            Self::Translate(flags) => {
                program_flags.refuse_all_but::<LogConfig>(name)?;
                let translate =
                    TranslateConfig::read(&program_flags.settings, &flags, environment)?;
                (Command::Translate(Box::new(translate)), no_values)
            }
            Self::Client(args) => {
                program_flags.refuse(name)?;
                (args.read(environment)?, no_values)
            }
            Self::Health {
                format,
                health,
                config,
            } => {
                let config = config.or(program_flags.config);
                let mut values = values_of::<HealthSettings>(config, environment);
                values.take_flags::<HealthSettings, _>(&program_flags.settings);
                values.take_flags::<HealthSettings, _>(&health);
                let health = HealthConfig::read(&mut values, format)?;
                (Command::Health(health), no_values)
            }
            Self::Completions { shell } => {
                program_flags.refuse(name)?;
                (Command::Completions(shell), no_values)
            }
            Self::Man { command } => {
                program_flags.refuse(name)?;
                (Command::Man(manual_page(command)?), no_values)
            }
        })
    }
}

impl ServerFlags {
    /// Refuses settings of the server before a command that does not read them.
    fn refuse(&self, command: &str) -> Result<(), WrongSetting> {
        self.refuse_all_but::<NoSettings>(command)
    }

    /// Refuses settings of the server before a command that reads those of `A` only.
    fn refuse_all_but<A: Args>(&self, command: &str) -> Result<(), WrongSetting> {
        let file = self.config.as_ref().map(|_| "--config".to_owned());
        match file.or_else(|| self.settings.first_not_of::<A>()) {
            Some(flag) => Err(WrongSetting::NotOfCommand {
                flag,
                command: command.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// The settings of a command that reads none of the server.
#[derive(Args)]
struct NoSettings {}

/// The settings that `migrate` needs. Others are not checked.
const MIGRATE_SETTINGS: [&str; 6] = [
    "database_url",
    "database_read_url",
    "database_max_connections",
    "migrate",
    "log",
    "log_format",
];

/// The settings of a server: flags after the subcommand over flags before it over the
/// environment over the file.
fn server_values(
    program_flags: &ServerFlags,
    command_flags: &ServerFlags,
    environment: Environment<'_>,
) -> SettingValues {
    let file = command_flags
        .config
        .as_ref()
        .or(program_flags.config.as_ref());
    let mut values = values_of::<ServerSettings>(file.cloned(), environment);
    values.take_flags::<ServerSettings, _>(&program_flags.settings);
    values.take_flags::<ServerSettings, _>(&command_flags.settings);
    values
}

/// The settings of `A` from the environment, over those of a server from its file.
fn values_of<A: Args>(file: Option<PathBuf>, environment: Environment<'_>) -> SettingValues {
    let mut values = SettingValues::default();
    if let Some(path) = file {
        values.take_file::<ServerSettings>(path);
    }
    values.take_environment::<A>(environment);
    values
}

/// Names the variables that look like settings and that nothing reads, for commands that read
/// the settings of a server.
fn warnings(command: &Command, environment: Environment<'_>) -> Vec<String> {
    match command {
        Command::Serve | Command::Migrate { .. } | Command::Config | Command::Token(_) => {}
        Command::Translate(_)
        | Command::Client(_)
        | Command::Lint(_)
        | Command::Health(_)
        | Command::Completions(_)
        | Command::Man(_) => return Vec::new(),
    }
    let unknown = environment.unknown().into_iter();
    let warnings = unknown.map(|(name, _)| {
        let name = name.escape_debug();
        format!("{name} is not a setting and is ignored: `expertise --help` lists them")
    });
    warnings.collect()
}

/// Adds a tip to the error about a short flag that stands before its command.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let is_of_command = ["-a", "-s"].contains(&flag.as_str());
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    if is_of_command && usage.is_some_and(|usage| usage.contains("[COMMAND]")) {
        let tip = format!("it belongs behind the command, such as `expertise list {flag} …`");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

fn wrong_argument(error: clap::Error) -> ConfigError {
    match value_error(&error) {
        Some((setting, text, expected)) => ConfigError::from(WrongSetting::Value {
            setting,
            value: format!("{text:?}"),
            expected,
        }),
        None => ConfigError::Usage(error),
    }
}

/// Checks the subcommand of a manual page.
fn manual_page(name: Option<String>) -> Result<Option<String>, WrongSetting> {
    match name {
        Some(name) if CommandLine::command().find_subcommand(&name).is_none() => {
            Err(WrongSetting::NoCommand(name))
        }
        name => Ok(name),
    }
}
