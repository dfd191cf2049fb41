//! What people and scripts ask of a running server.

use std::{ffi::OsString, path::PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use super::{
    WrongSetting,
    connection::{self, Connection},
    sources::Values,
    value,
};
use crate::{
    domain::ids::{RequestId, TaskId},
    proto::v1::{AbsentSteps, AccessLevel, TaskType},
};

/// An errand and what it needs, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrandConfig {
    /// Where the service is, and who asks.
    pub connection: Connection,
    /// For whom the answer is written.
    pub output: Output,
    /// What is asked.
    pub errand: Errand,
}

/// For whom an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// People.
    Text,
    /// Scripts.
    Json,
}

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Errand {
    /// To take documents.
    Import(Import),
    /// To give one.
    Export {
        /// The task.
        task: TaskId,
        /// The file to write, or standard output.
        out: Option<PathBuf>,
    },
    /// To show a guide.
    Show(TaskId),
    /// To list the tasks of the account.
    List(Filters),
}

/// Documents to take, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Files, in their order; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Whether a document makes a new task even where it names one.
    pub intent: Intent,
    /// What becomes of steps that a document leaves out.
    pub absent_steps: AbsentSteps,
    /// Whether everything is checked and nothing stored.
    pub dry_run: bool,
    /// Names the run; repeated under the same name, what was done is not done again.
    pub request_id: Option<RequestId>,
}

/// Which task a document is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The one that it names; a new one where it names none.
    AsWritten,
    /// A new one.
    New,
}

/// Which tasks are listed; an absent filter lets all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Of this product.
    pub product_id: Option<i64>,
    /// With this value of `published`.
    pub published: Option<i32>,
    /// That this access level may see.
    pub role: Option<AccessLevel>,
    /// Of this type.
    pub task_type: Option<TaskType>,
}

/// The names of the subcommands.
pub(super) const IMPORT: &str = "import";
pub(super) const EXPORT: &str = "export";
pub(super) const SHOW: &str = "show";
pub(super) const LIST: &str = "list";

const FILES: &str = "files";
const GUID: &str = "guid";
const OUT: &str = "out";
pub(super) const OUTPUT: &str = "output";
const AS_NEW: &str = "as-new";
const ABSENT_STEPS: &str = "absent-steps";
const DRY_RUN: &str = "dry-run";
const REQUEST_ID: &str = "request-id";
const PRODUCT_ID: &str = "product-id";
const PUBLISHED: &str = "published";
const ROLE: &str = "role";
const TYPE: &str = "type";

/// The subcommands.
pub(super) fn commands() -> [Command; 4] {
    let guid = || {
        Arg::new(GUID)
            .required(true)
            .value_name("GUID")
            .help("The guid of the task; `expertise list` lists them")
    };
    let import = Command::new(IMPORT)
        .about("Import guides, each file a JSON document, on a running server")
        .arg(
            Arg::new(FILES)
                .required(true)
                .num_args(1..)
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("A document as `export` writes it or examples/guides holds it; - is standard input"),
        )
        .arg(flag(AS_NEW, "Make new tasks, also of documents that name the task that they are of"))
        .arg(
            option(ABSENT_STEPS, "keep|delete", "What becomes of steps that a task has and its document leaves out [default: the document is refused]"),
        )
        .arg(flag(DRY_RUN, "Check everything and store nothing"))
        .arg(
            option(REQUEST_ID, "UUID", "Names the run: repeated under the same name within a day, it does nothing twice [default: a new one]"),
        );
    let export = Command::new(EXPORT)
        .about("Export a guide as a JSON document that imports as it stands")
        .arg(guid())
        .arg(
            Arg::new(OUT)
                .long(OUT)
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The file to write [default: standard output]"),
        );
    let show = Command::new(SHOW)
        .about("Show a guide as a tree: steps in their order, conditions, languages, linked tasks")
        .arg(guid());
    let list = Command::new(LIST)
        .about("List the account's tasks")
        .arg(option(PRODUCT_ID, "NUMBER", "Only tasks of this product"))
        .arg(option(PUBLISHED, "NUMBER", "Only tasks with this value: 0 is hidden, 1 published"))
        .arg(option(ROLE, "LEVEL", "Only tasks that this access level may see: user, user2, user3, tech, tech2, tech3 or expert"))
        .arg(option(TYPE, "standard|linked", "Only tasks of this type"));
    [import, export, show, list].map(|command| command.arg(output()).args(connection::args()))
}

/// The flag that says for whom to write.
pub(super) fn output() -> Arg {
    option(OUTPUT, "text|json", "For people or for scripts").default_value("text")
}

fn option(name: &'static str, unit: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(unit).help(help)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

impl ErrandConfig {
    /// Reads the arguments of a subcommand; `None` when it is no errand.
    pub(super) fn read(
        name: &str,
        flags: &ArgMatches,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, WrongSetting> {
        let errand = match name {
            IMPORT => Errand::Import(import(flags)?),
            EXPORT => Errand::Export {
                task: guid(flags)?,
                out: flags.get_one::<PathBuf>(OUT).cloned(),
            },
            SHOW => Errand::Show(guid(flags)?),
            LIST => Errand::List(filters(flags)?),
            _ => return Ok(None),
        };
        let values = Values::without_file(connection::ALL.into_iter(), flags, environment)?;
        Ok(Some(Self {
            errand,
            output: read_output(flags)?,
            connection: Connection::read(&values)?,
        }))
    }
}

fn import(flags: &ArgMatches) -> Result<Import, WrongSetting> {
    let absent_steps = argument(flags, ABSENT_STEPS, |text| match text {
        "keep" => Ok(AbsentSteps::Keep),
        "delete" => Ok(AbsentSteps::Delete),
        _ => Err("keep or delete"),
    })?;
    Ok(Import {
        files: flags
            .get_many::<PathBuf>(FILES)
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
        intent: match flags.get_flag(AS_NEW) {
            true => Intent::New,
            false => Intent::AsWritten,
        },
        absent_steps: absent_steps.unwrap_or(AbsentSteps::Unspecified),
        dry_run: flags.get_flag(DRY_RUN),
        request_id: argument(flags, REQUEST_ID, |text| {
            RequestId::parse(text).ok_or("a hyphenated UUID")
        })?,
    })
}

fn filters(flags: &ArgMatches) -> Result<Filters, WrongSetting> {
    Ok(Filters {
        product_id: argument(flags, PRODUCT_ID, value::number(1..=i64::MAX))?,
        published: argument(flags, PUBLISHED, value::number(0..=i32::MAX))?,
        role: argument(flags, ROLE, |text| {
            let name = format!("ACCESS_LEVEL_{}", text.to_ascii_uppercase());
            AccessLevel::from_str_name(&name)
                .ok_or("user, user2, user3, tech, tech2, tech3 or expert")
        })?,
        task_type: argument(flags, TYPE, |text| match text {
            "standard" => Ok(TaskType::Standard),
            "linked" => Ok(TaskType::Linked),
            _ => Err("standard or linked"),
        })?,
    })
}

fn guid(flags: &ArgMatches) -> Result<TaskId, WrongSetting> {
    let text = flags.get_one::<String>(GUID).map_or("", String::as_str);
    value::task(text).map_err(|expected| wrong("GUID".to_owned(), text, expected))
}

pub(super) fn read_output(flags: &ArgMatches) -> Result<Output, WrongSetting> {
    let output = argument(flags, OUTPUT, |text| match text {
        "text" => Ok(Output::Text),
        "json" => Ok(Output::Json),
        _ => Err("text or json"),
    })?;
    Ok(output.unwrap_or(Output::Text))
}

/// Reads an argument that was given. `parse` says what would be right.
fn argument<T, E: ToString>(
    flags: &ArgMatches,
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, WrongSetting> {
    let text = flags.get_one::<String>(name);
    text.map(|text| parse(text).map_err(|expected| wrong(format!("--{name}"), text, expected)))
        .transpose()
}

fn wrong(setting: String, text: &str, expected: impl ToString) -> WrongSetting {
    WrongSetting::Value {
        setting,
        value: format!("{text:?}"),
        expected: expected.to_string(),
    }
}
