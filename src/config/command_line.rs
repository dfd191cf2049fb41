//! The command line: its subcommands and their arguments.

use std::{any::TypeId, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{
    Arg, Args, CommandFactory, Parser, Subcommand, ValueEnum, builder::PossibleValue, value_parser,
};
use clap_complete::Shell;
use http::Uri;
use tracing_subscriber::filter::Targets;

use super::{
    ClientCommandConfig, Config, DatabaseCommandConfig, DatabaseUrl, Format, HealthConfig,
    TokenGrant, TokenSigning, TranslateConfig, Valid, client_command::OutputFormat,
    examples::with_examples, value,
};
use crate::domain::ids::AccountId;

#[derive(Parser)]
#[command(
    name = "expertise",
    about,
    args_conflicts_with_subcommands = true,
    after_help = "Flags win over the environment, the environment over the file, the file over defaults."
)]
pub(super) struct CommandLine {
    #[command(flatten)]
    server: Valid<Config>,
    #[command(subcommand)]
    command: Option<Command>,
}

impl CommandLine {
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.server))
    }
}

/// A subcommand with its arguments and settings.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Serve; what is done without a subcommand
    Serve(Valid<Config>),
    /// Bring the database's schema up to date and end
    Migrate {
        /// Distribute the tables of a new database over the nodes of a Citus cluster, by account
        #[arg(long)]
        distribute: bool,
        #[command(flatten)]
        config: Valid<DatabaseCommandConfig>,
    },
    /// List the accounts of the database: tasks, steps, bytes, last change; or delete one
    Accounts {
        /// Delete the account with this ID and all that it has, after a question
        #[arg(requires = "id")]
        action: Option<AccountsAction>,
        /// The account
        #[arg(value_name = "ID", value_parser = value::account)]
        id: Option<AccountId>,
        /// Delete without asking
        #[arg(long, requires = "action")]
        force: bool,
        #[command(flatten)]
        output: OutputFormat,
        #[command(flatten)]
        config: Valid<DatabaseCommandConfig>,
    },
    /// Copy another database into the empty one of the settings, such as SQLite to PostgreSQL: ids, etags, revisions and all else stay
    Copy {
        /// The database to copy; a password is better kept in a file (PGPASSFILE), as other users of the machine see flags
        #[arg(long, value_name = "URL", value_parser = DatabaseUrl::parse)]
        from: DatabaseUrl,
        #[command(flatten)]
        config: Valid<DatabaseCommandConfig>,
    },
    /// Print the effective settings, secrets masked, and where each comes from
    Config {
        /// Check instead whether a server with these settings can start, and change nothing: exit code 0, or 2 with each reason
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        config: Valid<Config>,
        /// The settings as a file, secrets masked.
        #[arg(skip)]
        effective: String,
    },
    /// Sign a token with EXPERTISE_JWT_SECRET, or with a private key, and print it
    Token {
        #[command(flatten)]
        grant: TokenGrant,
        #[command(flatten)]
        signing: Valid<TokenSigning>,
    },
    /// Translate what is missing or outdated on a running server, and end; or list it
    Translate {
        /// List what is missing or outdated, and translate nothing: no engine is called
        #[arg(long)]
        list: bool,
        /// The form of the list: text is for people, json for scripts
        #[arg(long, default_value = "text", requires = "list")]
        format: Format,
        #[command(flatten)]
        config: Valid<TranslateConfig>,
    },
    #[command(flatten)]
    Client(Box<ClientCommandConfig>),
    /// Write a small guide to start from, as a JSON document
    New(NewArgs),
    /// Ask a server for its health: exit code 0 if it is SERVING, else 1
    Health {
        #[command(flatten)]
        output: OutputFormat,
        #[command(flatten)]
        config: Valid<HealthConfig>,
    },
    /// Print a script that makes a shell complete this command line
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page, for man to show
    Man {
        /// The subcommand that the page is about [default: all of them in short]
        #[arg(value_parser = subcommand)]
        command: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NewArgs {
    /// The product that the guide is about
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = value::number(1..=i64::MAX))]
    pub product_id: i64,
    /// The file to write, which must not exist; - is standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccountsAction {
    Delete,
}

/// What the variable of every setting begins with.
pub(super) const PREFIX: &str = "EXPERTISE_";

/// The command line of this program; `--version` prints the version.
pub fn command_line(version: String) -> clap::Command {
    let program = CommandLine::command().version(version).arg(settings_file());
    with_examples(program)
        .mut_args(uniform)
        .mut_subcommands(|command| {
            let reads_file = FILE_COMMANDS.contains(&command.get_name());
            let command = command.mut_args(uniform);
            match reads_file {
                true => command.arg(settings_file()),
                false => command,
            }
        })
}

/// Gives an argument what all of its kind have. A setting, which is marked by `env`, has one name:
/// the key `max_message_bytes` of a settings file is the flag `--max-message-bytes` and the
/// variable `EXPERTISE_MAX_MESSAGE_BYTES`. A choice shows its values in place of a unit.
fn uniform(mut argument: Arg) -> Arg {
    if argument.get_env().is_some() {
        let key = argument.get_id().to_string();
        argument = argument
            .long(key.replace('_', "-"))
            .env(format!("{PREFIX}{}", key.to_uppercase()))
            .hide_env_values(true);
        if let Some(unit) = unit(&argument) {
            argument = argument.value_name(unit);
        }
    }
    let choices = argument.get_possible_values();
    let names: Vec<&str> = choices.iter().map(PossibleValue::get_name).collect();
    match argument.get_action().takes_values() && !names.is_empty() {
        true => argument
            .value_name(names.join("|"))
            .hide_possible_values(true),
        false => argument,
    }
}

/// The unit of a setting, if it follows from the type of its value.
fn unit(setting: &Arg) -> Option<&'static str> {
    let is_size = setting.get_id().as_str().ends_with("_bytes");
    let number = if is_size { "BYTES" } else { "COUNT" };
    let units = [
        (TypeId::of::<Duration>(), "DURATION"),
        (TypeId::of::<PathBuf>(), "PATH"),
        (TypeId::of::<SocketAddr>(), "ADDRESS:PORT"),
        (TypeId::of::<Targets>(), "FILTER"),
        (TypeId::of::<Uri>(), "URL"),
        (TypeId::of::<u32>(), number),
        (TypeId::of::<usize>(), number),
    ];
    let value_type = setting.get_value_parser().type_id();
    let mut fitting = units.iter().filter(|(id, _)| value_type == *id);
    fitting.next().map(|(_, unit)| *unit)
}

/// The commands that read the settings file of a server.
const FILE_COMMANDS: [&str; 7] = [
    "serve", "migrate", "accounts", "copy", "config", "token", "health",
];

fn settings_file() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("A TOML file of settings; its keys are the flags with _ for -")
        .help_heading(None::<&str>)
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
