//! The subcommands, and the arguments that they share.

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::{
    Format,
    apply::ApplyArgs,
    change_feed::ChangesArgs,
    delete::DeleteArgs,
    diff::DiffArgs,
    edit::EditArgs,
    examples::with_examples,
    export::ExportArgs,
    graph::GraphArgs,
    guide_ref::GuideArg,
    history::{AliasArgs, HistoryArgs, KeepArgs},
    import::ImportArgs,
    lint::LintArgs,
    list::ListFilters,
    new::NewArgs,
    out::OutputFormat,
    preview::PreviewArgs,
    references::ReferencesArgs,
    restore::RestoreArgs,
    show::ShowArgs,
};
use crate::{
    config::{
        self, ConfigError, ConnectionConfig, DatabaseCommandConfig, DatabaseUrl, HealthConfig,
        ServerSettings, SigningSettings, TokenGrant, TranslateConfig, value,
    },
    domain::ids::AccountId,
};

#[derive(Parser)]
#[command(
    name = "expertise",
    about,
    args_conflicts_with_subcommands = true,
    after_help = "Flags override environment variables, variables override the settings file, and the file overrides defaults."
)]
struct CommandLine {
    #[command(flatten)]
    server: Box<ServerSettings>,
    #[command(subcommand)]
    command: Option<Command>,
}

/// A subcommand with its arguments and settings. Settings that depend on each other are not checked
/// yet.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Run the server, which is also the default without a subcommand
    Serve(Box<ServerSettings>),
    /// Bring the database schema up to date, then exit
    Migrate {
        /// Distribute the tables of a new database over the nodes of a Citus cluster, by account
        #[arg(long)]
        distribute: bool,
        #[command(flatten)]
        settings: Box<DatabaseCommandConfig>,
    },
    /// List the accounts of the database with their tasks, steps, bytes and last change, or delete an account
    Accounts {
        /// Delete the account with this ID and all its data, after confirmation
        #[arg(requires = "id")]
        action: Option<AccountsAction>,
        /// The account
        #[arg(value_parser = value::account)]
        id: Option<AccountId>,
        /// Delete without asking
        #[arg(long, requires = "action")]
        force: bool,
        #[command(flatten)]
        output: OutputFormat,
        #[command(flatten)]
        settings: Box<DatabaseCommandConfig>,
    },
    /// Copy another database into the empty configured one, for example from SQLite to PostgreSQL, with all IDs, etags and revisions
    Copy {
        /// The database to copy; keep its password in a file (PGPASSFILE), because other users of the machine can see flags
        #[arg(long)]
        from: DatabaseUrl,
        #[command(flatten)]
        settings: Box<DatabaseCommandConfig>,
    },
    /// Print the effective settings, with secrets masked
    Config {
        /// Check whether a server with these settings can start, and change nothing: exit code 0 if it can, otherwise 2 and one line per problem
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        settings: Box<ServerSettings>,
        /// The settings as a file, with secrets masked.
        #[arg(skip)]
        effective: String,
    },
    /// Sign a token with EXPERTISE_JWT_SECRET or a private key, and print it
    Token {
        #[command(flatten)]
        grant: TokenGrant,
        #[command(flatten)]
        settings: Box<SigningSettings>,
    },
    /// Translate missing and outdated texts on a running server, or list them
    Translate {
        /// List missing and outdated texts without translating them
        #[arg(long)]
        list: bool,
        /// The format of the list: text for people, json for scripts
        #[arg(long, default_value = "text", requires = "list")]
        format: Format,
        #[command(flatten)]
        settings: Box<TranslateConfig>,
    },
    #[command(flatten)]
    Client(Box<ClientCommandConfig>),
    /// Write a small guide to start from, as a JSON document
    New(NewArgs),
    /// Check the health of a server: exit code 0 if it is SERVING, otherwise 1
    Health {
        #[command(flatten)]
        output: OutputFormat,
        #[command(flatten)]
        settings: Box<HealthConfig>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page in the format of man
    Man {
        /// The subcommand [default: an overview of all]
        #[arg(value_parser = subcommand)]
        command: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccountsAction {
    Delete,
}

/// A command on guides, and the connection to the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCommandConfig {
    connection: ConnectionConfig,
    pub format: Format,
    pub command: ClientCommand,
}

#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum ClientCommand {
    /// Import guides from JSON documents into a running server
    Import(ImportArgs),
    /// Export a guide as a JSON document that can be edited and imported again
    Export(ExportArgs),
    /// Show a guide as a tree, with its steps in order, conditions, languages and linked tasks
    Show(ShowArgs),
    /// List the account's tasks
    List(ListFilters),
    /// Edit a guide as a JSON document in an editor, then import it
    Edit(EditArgs),
    /// Show what an import would change, or how a revision differs: exit code 0 without differences, 1 with differences, 2 on failure
    Diff(DiffArgs),
    /// Make the account's guides match a directory: create, update, and delete with --prune
    Apply(ApplyArgs),
    /// Delete tasks with their steps
    Delete(DeleteArgs),
    /// List the revisions of a guide, the newest first, or the deleted guides
    History(HistoryArgs),
    /// Save the current state of a guide as a revision
    Keep(KeepArgs),
    /// Restore a guide to a revision, even if the guide was deleted
    Restore(RestoreArgs),
    /// Set, show or remove an alias of a revision
    Alias(AliasArgs),
    /// List changes to the account or a guide with their authors, the oldest first; with --follow, wait for new ones
    Changes(ChangesArgs),
    /// Check stored guides, or documents in files and directories: exit code 1 if there is an error
    Lint(LintArgs),
    /// Show which steps a user sees after certain answers
    Preview(PreviewArgs),
    /// List references to a task, or what sets and reads a variable
    References(ReferencesArgs),
    /// Draw a guide: its steps in order, what each answer shows, its subtasks, and its unreachable steps
    Graph(GraphArgs),
}

impl Command {
    /// Reads the command line, environment and settings file of this process.
    pub fn from_process(version: String) -> Result<Self, ConfigError> {
        let matches = config::read(command_line(version))?;
        let CommandLine { server, command } = CommandLine::from_arg_matches(&matches)?;
        let mut command = command.unwrap_or(Self::Serve(server));
        if let (Self::Config { effective, .. }, Some((_, matches))) =
            (&mut command, matches.subcommand())
        {
            *effective = config::effective_settings(matches);
        }
        Ok(command)
    }
}

impl ClientCommandConfig {
    /// The connection to the server; `None` if the command only works on files.
    pub fn connection(&self) -> Result<Option<ConnectionConfig>, ConfigError> {
        let needs_server = match &self.command {
            ClientCommand::Lint(lint) => lint.needs_server(),
            ClientCommand::Graph(graph) => matches!(graph.guide, GuideArg::Stored(_)),
            _ => true,
        };
        match needs_server {
            true => self.connection.clone().check().map(Some),
            false => Ok(None),
        }
    }
}

/// Each command has the connection settings, and `--format` unless it defines its own.
impl Subcommand for ClientCommandConfig {
    fn augment_subcommands(program: clap::Command) -> clap::Command {
        let commands = ClientCommand::augment_subcommands(clap::Command::new("commands"));
        program.subcommands(commands.get_subcommands().cloned().map(|command| {
            let has_own_format = command.get_arguments().any(|it| it.get_id() == "format");
            let command = match has_own_format {
                true => command,
                false => OutputFormat::augment_args(command),
            };
            // Keeps the order of the commands in help.
            ConnectionConfig::augment_args(command.display_order(None))
        }))
    }

    fn augment_subcommands_for_update(program: clap::Command) -> clap::Command {
        Self::augment_subcommands(program)
    }

    fn has_subcommand(name: &str) -> bool {
        ClientCommand::has_subcommand(name)
    }
}

impl FromArgMatches for ClientCommandConfig {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = ClientCommand::from_arg_matches(matches)?;
        let shared = matches.subcommand().map_or(matches, |(_, shared)| shared);
        Ok(Self {
            connection: ConnectionConfig::from_arg_matches(shared)?,
            format: match command {
                ClientCommand::Graph(_) => Format::Text,
                _ => OutputFormat::from_arg_matches(shared)?.format,
            },
            command,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The command line of this program; `--version` prints the version.
pub fn command_line(version: String) -> clap::Command {
    let program = with_examples(CommandLine::command().version(version));
    config::with_uniform_names(program)
}

fn subcommand(name: &str) -> Result<String, String> {
    match CommandLine::command().find_subcommand(name) {
        Some(_) => Ok(name.to_owned()),
        None => Err("a subcommand, which `expertise --help` lists".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command_line(String::new()).debug_assert();
    }
}
