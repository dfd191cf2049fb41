//! The command line: its subcommands and their arguments.

use std::{env, ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use super::{
    ApplyArgs, ClientCommand, ClientCommandConfig, Command, Config, ConfigError, DeleteArgs,
    DiffArgs, EditArgs, ExportArgs, HealthConfig, ImportArgs, LintArgs, ListFilters, LogConfig,
    OutputFormat, PreviewArgs, ReferencesArgs, ServerSettings, ShowArgs, TokenGrant,
    TranslateConfig, WrongSetting,
    client_command::ClientArgs,
    examples::with_examples,
    health::HealthSettings,
    names::Variables,
    settings::{Environment, Flags, SettingValues, value_error},
    translate::TranslateSettings,
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
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(2..=1024))]
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
    /// Import guides, each file a JSON document, into a running server
    Import(ClientArgs<ImportArgs>),
    /// Export a guide as a JSON document that can be imported unchanged
    Export(ClientArgs<ExportArgs>),
    /// Show a guide as a tree: steps in their order, conditions, languages, linked tasks
    Show(ClientArgs<ShowArgs>),
    /// List the account's tasks
    List(ClientArgs<ListFilters>),
    /// Edit a guide as a JSON document in an editor, and import it
    Edit(ClientArgs<EditArgs>),
    /// Show what an import would change: exit code 0 if nothing, 1 if something, 2 after a failure
    Diff(ClientArgs<DiffArgs>),
    /// Make the account's guides match a directory: create, update, and delete with --prune
    Apply(ClientArgs<ApplyArgs>),
    /// Delete tasks with their steps
    Delete(ClientArgs<DeleteArgs>),
    /// Check guides, stored ones or documents in files: exit code 1 if there is an error
    Lint(ClientArgs<LintArgs>),
    /// Show which steps a user sees with these answers
    Preview(ClientArgs<PreviewArgs>),
    /// List what refers to a task, or sets and reads a variable
    References(ClientArgs<ReferencesArgs>),
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
            .map_err(wrong_argument)?;
        let CommandLine {
            server: program,
            command,
        } = CommandLine::from_arg_matches(&matches)?;
        let server = |own: &ServerFlags| server_values(&program, own, environment);
        let client = |config: Result<ClientCommandConfig, ConfigError>| {
            program.refuse(matches.subcommand_name().unwrap_or_default())?;
            Ok::<_, ConfigError>((Command::Client(Box::new(config?)), SettingValues::default()))
        };
        let command = command.unwrap_or_else(|| CommandArgs::Serve(ServerFlags::default()));
        let (command, mut values) = match command {
            CommandArgs::Serve(own) => (Command::Serve, server(&own)),
            CommandArgs::Migrate {
                partitions,
                server: own,
            } => (Command::Migrate { partitions }, server(&own)),
            CommandArgs::Config(own) => (Command::Config, server(&own)),
            CommandArgs::Token { grant, server: own } => (Command::Token(grant), server(&own)),
            CommandArgs::Translate(flags) => {
                program.refuse_all_but::<LogConfig>("translate")?;
                let translate = TranslateConfig::read(&program.settings, &flags, environment)?;
                (
                    Command::Translate(Box::new(translate)),
                    SettingValues::default(),
                )
            }
            CommandArgs::Import(args) => client(args.read(ClientCommand::Import, environment))?,
            CommandArgs::Export(args) => client(args.read(ClientCommand::Export, environment))?,
            CommandArgs::Show(args) => client(args.read(ClientCommand::Show, environment))?,
            CommandArgs::List(args) => client(args.read(ClientCommand::List, environment))?,
            CommandArgs::Edit(args) => {
                let args = args.with_editor_of(environment);
                client(args.read(ClientCommand::Edit, environment))?
            }
            CommandArgs::Diff(args) => client(args.read(ClientCommand::Diff, environment))?,
            CommandArgs::Apply(args) => client(args.read(ClientCommand::Apply, environment))?,
            CommandArgs::Delete(args) => client(args.read(ClientCommand::Delete, environment))?,
            CommandArgs::Lint(args) => {
                program.refuse("lint")?;
                let lint = Box::new(args.read_lint(environment)?);
                (Command::Lint(lint), SettingValues::default())
            }
            CommandArgs::Preview(args) => client(args.read(ClientCommand::Preview, environment))?,
            CommandArgs::References(args) => {
                client(args.read(ClientCommand::References, environment))?
            }
            CommandArgs::Health {
                format,
                health,
                config,
            } => {
                let mut values = SettingValues::default();
                if let Some(path) = config.or(program.config) {
                    values.take_file::<ServerSettings>(path);
                }
                values.take_environment::<HealthSettings>(environment);
                values.take_flags::<HealthSettings, _>(&program.settings);
                values.take_flags::<HealthSettings, _>(&health);
                let health = HealthConfig::read(&mut values, format)?;
                (Command::Health(health), SettingValues::default())
            }
            CommandArgs::Completions { shell } => {
                program.refuse("completions")?;
                (Command::Completions(shell), SettingValues::default())
            }
            CommandArgs::Man { command } => {
                program.refuse("man")?;
                (
                    Command::Man(manual_page(command)?),
                    SettingValues::default(),
                )
            }
        };
        Ok(Self {
            config: Config::read(&mut values, &command)?,
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

impl ServerFlags {
    /// Refuses settings of the server before a command that does not read them.
    fn refuse(&self, command: &str) -> Result<(), WrongSetting> {
        self.refuse_all_but::<NoSettings>(command)
    }

    /// Refuses settings of the server before a command that reads those of `A` only.
    fn refuse_all_but<A: Args>(&self, command: &str) -> Result<(), WrongSetting> {
        let file = self.config.as_ref().map(|_| "--config".to_owned());
        match file.or_else(|| self.settings.first_beyond::<A>()) {
            Some(flag) => Err(WrongSetting::NotOfCommand {
                flag,
                command: command.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// What a command reads that has no setting of the server.
#[derive(Args)]
struct NoSettings {}

/// The settings of a server: flags after the subcommand over flags before it over the
/// environment over the file.
fn server_values(
    program: &ServerFlags,
    own: &ServerFlags,
    environment: Environment<'_>,
) -> SettingValues {
    let mut values = SettingValues::default();
    if let Some(path) = own.config.as_ref().or(program.config.as_ref()) {
        values.take_file::<ServerSettings>(path.clone());
    }
    values.take_environment::<ServerSettings>(environment);
    values.take_flags::<ServerSettings, _>(&program.settings);
    values.take_flags::<ServerSettings, _>(&own.settings);
    values
}

/// Names the variables that look like settings and that nothing reads, for commands that
/// read the settings of a server.
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
