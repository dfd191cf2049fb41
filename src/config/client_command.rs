//! The commands on guides, most of which people and scripts send to a running server.

mod guide_changes;
mod history;

use std::{fmt, path::PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};

pub(super) use self::history::guide_ref;
pub use self::{
    guide_changes::{ApplyArgs, DeleteArgs, DiffArgs, EditArgs},
    history::{
        AliasArgs, ChangesArgs, ChangesStart, GuideRef, HistoryArgs, KeepArgs, RestoreArgs,
        RevisionRef,
    },
};
use super::{
    ConnectionConfig, DEFAULT_MAX_MESSAGE_BYTES, Valid,
    analysis_command::{GraphArgs, GuideArg, LintArgs, PreviewArgs, ReferencesArgs},
    value,
};
use crate::{
    domain::{
        ids::{RequestId, TaskId},
        translation::Language,
    },
    proto::v1::{AbsentSteps, AccessLevel, TaskType},
};

/// A command on guides, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCommandConfig {
    /// `None` if the command calls no server.
    pub connection: Option<ConnectionConfig>,
    pub format: Format,
    pub command: ClientCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For scripts
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct OutputFormat {
    /// The form of the output: text is for people, json for scripts; documents are always JSON
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Each command has the settings of a connection and, unless it has its own, `--format`.
impl Subcommand for ClientCommandConfig {
    fn augment_subcommands(program: Command) -> Command {
        let commands = ClientCommand::augment_subcommands(Command::new("commands"));
        program.subcommands(commands.get_subcommands().cloned().map(|command| {
            let has_own_format = command.get_arguments().any(|it| it.get_id() == "format");
            let command = match has_own_format {
                true => command,
                false => OutputFormat::augment_args(command),
            };
            // Among those of the program, not among these.
            Valid::<ConnectionConfig>::augment_args(command.display_order(None))
        }))
    }

    fn augment_subcommands_for_update(program: Command) -> Command {
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
        let connection = match command.needs_server() {
            true => Some(*Valid::from_arg_matches(shared)?.0),
            false => None,
        };
        Ok(Self {
            connection,
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

#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum ClientCommand {
    /// Import guides, each file a JSON document, into a running server
    Import(ImportArgs),
    /// Export a guide as a JSON document of what people write, whose import changes nothing
    Export(ExportArgs),
    /// Show a guide as a tree: steps in their order, conditions, languages, linked tasks
    Show(ShowArgs),
    /// List the account's tasks
    List(ListFilters),
    /// Edit a guide as a JSON document in an editor, and import it
    Edit(EditArgs),
    /// Show what an import would change, or how a revision differs: exit code 0 if nothing, 1 if something, 2 after a failure
    Diff(DiffArgs),
    /// Make the account's guides match a directory: create, update, and delete with --prune
    Apply(ApplyArgs),
    /// Delete tasks with their steps
    Delete(DeleteArgs),
    /// List the revisions of a guide, the newest first, or the deleted guides
    History(HistoryArgs),
    /// Keep a guide as it is now, as a revision
    Keep(KeepArgs),
    /// Make a guide what a revision of it says, also after it was deleted
    Restore(RestoreArgs),
    /// Name a revision, show which one a name is of, or remove the name
    Alias(AliasArgs),
    /// List what has changed in the account or a guide, and by whom, the oldest first; with --follow, what comes
    Changes(ChangesArgs),
    /// Check guides, stored ones or documents in files and directories: exit code 1 if there is an error
    Lint(LintArgs),
    /// Show which steps a user sees with these answers
    Preview(PreviewArgs),
    /// List what refers to a task, or sets and reads a variable
    References(ReferencesArgs),
    /// Draw a guide: its steps in order, what each answer shows, subtasks, and what nobody comes to
    Graph(GraphArgs),
}

impl ClientCommand {
    /// Whether a server is called: files can be checked and drawn without one.
    fn needs_server(&self) -> bool {
        match self {
            Self::Lint(lint) => lint.needs_server(),
            Self::Graph(graph) => matches!(graph.guide, GuideArg::Stored(_)),
            _ => true,
        }
    }
}

/// A task as the user of a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRef {
    /// By its guid.
    Id(TaskId),
    /// By a name that no other task of the account has.
    Name(String),
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(task) => task.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct ImportArgs {
    /// A document as `export` writes it or examples/guides holds it; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Create new tasks; ignore the documents' task.guid and task.externalId
    #[arg(long)]
    pub as_new: bool,
    /// What to do with stored steps that the document leaves out [default: refuse the document]
    #[arg(long, ignore_case = true)]
    pub absent_steps: Option<AbsentSteps>,
    /// Only if the guide has this etag, as `export --format json` prints it; for one file. A guide
    /// that is named by its external id alone is created if there is none
    #[arg(
        long,
        value_name = "GUIDE_ETAG",
        value_parser = value::text,
        // Every 64th etag begins with a hyphen.
        allow_hyphen_values = true,
        conflicts_with = "as_new"
    )]
    pub if_unchanged: Option<String>,
    /// Leave translations unlocked whose texts the documents change
    #[arg(long)]
    pub keep_unlocked: bool,
    /// Check everything and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The largest file that is read, 1 to 2147483647; the server accepts no more than its EXPERTISE_MAX_MESSAGE_BYTES
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = DEFAULT_MAX_MESSAGE_BYTES.into(),
        value_parser = value::number::<u64>(1..=2_147_483_647)
    )]
    pub max_file_bytes: u64,
    /// Id of the run: repeating it with this id within a day imports nothing twice [default: a new one]
    #[arg(long, value_name = "UUID", value_parser = value::request_id)]
    pub request_id: Option<RequestId>,
    /// Print failures and counts only
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExportArgs {
    /// The guid of the task, or its name if no other task has it; with @ and a number or alias, a revision of it
    #[arg(
        value_name = "GUIDE[@REVISION]",
        value_parser = guide_ref,
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub guide: Option<GuideRef>,
    /// Export every guide of the account, each to a file of its own
    #[arg(long, requires = "out")]
    pub all: bool,
    /// The file to write, - is standard output; with --all the directory [default: standard output]
    #[arg(short, long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Write what the system sets, too: etags, times, and the fields of the index
    #[arg(long)]
    pub full: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowArgs {
    /// The guid of the task, or its name if no other task has it; with @ and a number or alias, a revision of it
    #[arg(value_name = "GUIDE[@REVISION]", value_parser = guide_ref)]
    pub guide: GuideRef,
    /// Print the texts of steps and their instructions
    #[arg(long)]
    pub full: bool,
    /// Show texts in this language; a text without a translation is marked as the source
    #[arg(long, value_name = "TAG", value_parser = value::language)]
    pub language: Option<Language>,
}

/// Which tasks are listed. An absent filter lets all of them pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ListFilters {
    /// Only tasks of this product
    #[arg(long, value_name = "NUMBER", value_parser = value::number(1..=i64::MAX))]
    pub product_id: Option<i64>,
    /// Only tasks with this value: 0 is hidden, 1 published
    #[arg(long, value_name = "NUMBER", value_parser = value::number(0..=i32::MAX))]
    pub published: Option<i32>,
    /// Only tasks that this access level may see
    #[arg(long, ignore_case = true)]
    pub role: Option<AccessLevel>,
    /// Only tasks of this type
    #[arg(long = "type", ignore_case = true)]
    pub task_type: Option<TaskType>,
}
