//! The command line: its subcommands and their arguments.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint,
    error::{ContextKind, ContextValue},
};
use clap_complete::Shell;

use super::{
    Command, Config, ConfigError, DatabaseUrl, DeletedAccount, Format, HealthConfig, OutputFormat,
    ServerSettings, TableLayout, TokenGrant, TranslateConfig, WrongSetting,
    client_command::ClientCommandArgs,
    connection::ConnectionSettings,
    examples::with_examples,
    health::HealthSettings,
    names::Variables,
    settings::{Flags, GivenSettings, key, settings},
    translate::TranslateSettings,
    value,
};
use crate::domain::ids::AccountId;

#[derive(Parser)]
#[command(
    name = "expertise",
    about,
    args_conflicts_with_subcommands = true,
    after_help = "Flags win over the environment, the environment over the file, the file over defaults."
)]
struct CommandLine {
    #[command(flatten)]
    server: ServerFlags,
    #[command(subcommand)]
    command: Option<CommandArgs>,
}

/// The settings of a server.
#[derive(Args)]
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
        /// Distribute the tables of a new database over the nodes of a Citus cluster, by account
        #[arg(long)]
        distribute: bool,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// List the accounts of the database: tasks, steps, bytes, last change; or delete one
    Accounts {
        /// Delete the account with this ID and all that it has, after a question
        #[arg(value_name = "delete", requires = "id", hide_possible_values = true)]
        action: Option<AccountsAction>,
        /// The account
        #[arg(value_name = "ID", value_parser = value::account)]
        id: Option<AccountId>,
        /// Delete without asking
        #[arg(long, requires = "action")]
        force: bool,
        #[command(flatten)]
        format: OutputFormat,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Copy another database into the empty one of the settings, such as SQLite to PostgreSQL: ids, etags, revisions and all else stay
    Copy {
        /// The database to copy; a password is better kept in a file (PGPASSFILE), as other users of the machine see flags
        #[arg(long, value_name = "URL", value_parser = DatabaseUrl::parse)]
        from: DatabaseUrl,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Print the effective settings, secrets masked, and where each comes from
    Config {
        /// Check instead whether a server with these settings can start, and change nothing: exit code 0, or 2 with each reason
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Sign a token with EXPERTISE_JWT_SECRET, or with a private key, and print it
    Token {
        /// Sign with this private key in PEM (RS256, ES256 or EdDSA, depending on its type), which EXPERTISE_JWT_PUBLIC_KEY_FILE or a key set of the server verifies
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = value::path)]
        private_key_file: Option<PathBuf>,
        #[command(flatten)]
        grant: TokenGrant,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Translate what is missing or outdated on a running server, and end; or list it
    Translate {
        /// List what is missing or outdated, and translate nothing: no engine is called
        #[arg(long)]
        list: bool,
        /// The form of the list: text is for people, json for scripts
        #[arg(
            long,
            value_name = "text|json",
            default_value = "text",
            hide_possible_values = true,
            requires = "list"
        )]
        format: Format,
        #[command(flatten)]
        settings: Flags<TranslateSettings>,
    },
    #[command(flatten)]
    Client(ClientCommandArgs),
    /// Write a small guide to start from, as a JSON document
    New(NewArgs),
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

/// The guide that `new` writes.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NewArgs {
    /// The product that the guide is about
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "1",
        value_parser = value::number(1..=i64::MAX)
    )]
    pub product_id: i64,
    /// The file to write, which must not exist; - is standard output [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// What `accounts` does with an account.
#[derive(Clone, Copy, ValueEnum)]
enum AccountsAction {
    Delete,
}

/// The command line of this program; `--version` prints the version.
pub fn command_line(version: String) -> clap::Command {
    with_examples(CommandLine::command().version(version))
}

/// A parsed command line with its settings.
pub struct Invocation {
    /// The subcommand.
    pub command: Command,
    /// What may be a mistake in the settings of a server, a line each.
    pub warnings: Vec<String>,
    given: GivenSettings,
}

impl Invocation {
    /// Reads command line, environment and file of this process.
    pub fn of_process(version: String) -> Result<Self, ConfigError> {
        Self::read(version, env::args_os(), env::vars_os())
    }

    /// Reads a command line with this environment, and the file that it names.
    pub fn read(
        version: String,
        args: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let environment = Variables::new(variables);
        let args = Vec::from_iter(args);
        let program = command_line(version);
        let mut given = GivenSettings::default();
        // The flags say which settings are read, and from which file.
        let flags = match program.clone().try_get_matches_from(&args) {
            Ok(matches) => CommandLine::from_arg_matches(&matches)?.command_args(),
            Err(error) => return Err(given.refusal(with_tip(error))),
        };
        let settings = flags.settings();
        if let Some(path) = flags.file() {
            given.take_file(path, &settings)?;
        }
        given.take_environment(&environment, &settings)?;
        let read = |given: &GivenSettings| {
            let program = given.as_defaults(program.clone());
            let program = program.mut_subcommands(|command| given.as_defaults(command));
            program.try_get_matches_from(&args)
        };
        let matches = match read(&given) {
            Ok(matches) => matches,
            Err(error) if matches!(flags, CommandArgs::Config { check: true, .. }) => {
                return Err(given.every_refusal(error, read));
            }
            Err(error) => return Err(given.refusal(error)),
        };
        let of_command = matches
            .subcommand()
            .map_or(&matches, |(_, matches)| matches);
        given.take_flags(of_command, &settings);
        let args = CommandLine::from_arg_matches(&matches)?.command_args();
        Ok(Self {
            warnings: match args.reads_server() {
                true => warnings(&environment),
                false => Vec::new(),
            },
            command: args.read(&given, &environment)?,
            given,
        })
    }

    /// A message in which each setting of the server is named as it was given: by its flag,
    /// its variable, or its key in the file.
    pub fn with_names_as_given(&self, message: &str) -> String {
        self.given.with_names_as_given(message)
    }
}

impl CommandLine {
    fn command_args(self) -> CommandArgs {
        self.command.unwrap_or(CommandArgs::Serve(self.server))
    }
}

impl CommandArgs {
    /// Whether the command reads the settings of a server.
    fn reads_server(&self) -> bool {
        match self {
            Self::Serve(_)
            | Self::Migrate { .. }
            | Self::Accounts { .. }
            | Self::Copy { .. }
            | Self::Config { .. }
            | Self::Token { .. } => true,
            Self::Translate { .. }
            | Self::Client(_)
            | Self::New(_)
            | Self::Health { .. }
            | Self::Completions { .. }
            | Self::Man { .. } => false,
        }
    }

    /// The settings that the command takes from the environment and the file.
    fn settings(&self) -> Vec<Arg> {
        match self {
            Self::Serve(_) | Self::Config { .. } | Self::Token { .. } => {
                settings::<ServerSettings>()
            }
            Self::Migrate { .. } | Self::Accounts { .. } | Self::Copy { .. } => {
                let mut settings = settings::<ServerSettings>();
                settings.retain(|setting| MIGRATE_SETTINGS.contains(&key(setting)));
                settings
            }
            Self::Translate { .. } => settings::<TranslateSettings>(),
            Self::Client(command) if command.is_offline() => Vec::new(),
            Self::Client(_) => settings::<ConnectionSettings>(),
            Self::Health { .. } => settings::<HealthSettings>(),
            Self::New(_) | Self::Completions { .. } | Self::Man { .. } => Vec::new(),
        }
    }

    fn file(&self) -> Option<&Path> {
        match self {
            Self::Serve(server)
            | Self::Migrate { server, .. }
            | Self::Accounts { server, .. }
            | Self::Copy { server, .. }
            | Self::Config { server, .. }
            | Self::Token { server, .. } => server.config.as_deref(),
            Self::Health { config, .. } => config.as_deref(),
            Self::Translate { .. }
            | Self::Client(_)
            | Self::New(_)
            | Self::Completions { .. }
            | Self::Man { .. } => None,
        }
    }

    fn read(self, given: &GivenSettings, environment: &Variables) -> Result<Command, WrongSetting> {
        Ok(match self {
            Self::Serve(ServerFlags { settings, .. }) => {
                let config = settings.0.for_serving(given, environment)?;
                config.check_files(given, environment)?;
                Command::Serve(Box::new(config))
            }
            Self::Migrate { distribute, server } => Command::Migrate {
                config: server.for_database(given, environment)?,
                layout: match distribute {
                    true => TableLayout::Distributed,
                    false => TableLayout::Plain,
                },
            },
            Self::Accounts {
                action,
                id,
                force,
                format: OutputFormat { format },
                server,
            } => {
                let config = server.for_database(given, environment)?;
                match (action, id) {
                    (Some(AccountsAction::Delete), Some(id)) => {
                        Command::DeleteAccount(config, DeletedAccount { id, force }, format)
                    }
                    (Some(AccountsAction::Delete), None) | (None, _) => {
                        Command::Accounts(config, format)
                    }
                }
            }
            Self::Copy { from, server } => {
                Command::Copy(server.for_database(given, environment)?, from)
            }
            Self::Config { check, server } => {
                let config = server.settings.0.for_serving(given, environment)?;
                match check {
                    true => {
                        config.check_files(given, environment)?;
                        Command::CheckConfig(Box::new(config))
                    }
                    false => Command::Config(given.effective(&config.auth)),
                }
            }
            Self::Token {
                private_key_file,
                grant,
                server,
            } => {
                let ServerSettings { config, auth, tls } = server.settings.0;
                config.check(given, environment)?;
                tls.tls(given)?;
                Command::Token(auth.for_signing(given, private_key_file)?, grant)
            }
            Self::Translate {
                list,
                format,
                settings: Flags(settings),
            } => {
                let config = Box::new(TranslateConfig::read(settings, given)?);
                match list {
                    true => Command::TranslationWork(config, format),
                    false => Command::Translate(config),
                }
            }
            Self::Client(args) => Command::Client(Box::new(args.read(given, environment)?)),
            Self::New(args) => Command::New(args),
            Self::Health { format, health, .. } => {
                Command::Health(HealthConfig::read(health.0, given, format)?)
            }
            Self::Completions { shell } => Command::Completions(shell),
            Self::Man { command } => Command::Man(manual_page(command)?),
        })
    }
}

impl ServerFlags {
    /// The settings of a command on the database.
    fn for_database(
        self,
        given: &GivenSettings,
        environment: &Variables,
    ) -> Result<Box<Config>, WrongSetting> {
        let config = self.settings.0.config;
        config.check(given, environment)?;
        config.check_files(given, environment)?;
        Ok(Box::new(config))
    }
}

/// The settings that commands on the database need. Others are not checked.
const MIGRATE_SETTINGS: [&str; 5] = [
    "database_url",
    "database_max_connections",
    "migrate",
    "log",
    "log_format",
];

/// Names the variables that look like settings and that nothing reads.
fn warnings(environment: &Variables) -> Vec<String> {
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
    if is_of_command && usage.is_some_and(|usage| usage.contains("<COMMAND>")) {
        let tip = format!("it belongs behind the command, such as `expertise list {flag} …`");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
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
