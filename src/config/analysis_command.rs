//! The commands that analyse guides: `lint`, `preview`, `references` and `graph`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::{
    TaskRef,
    client_command::{GuideRef, guide_ref},
    value,
};
use crate::{
    domain::{
        analysis::MAX_SUBTASK_LEVELS, misspelling::closest, translation::Language, validation::Rule,
    },
    proto::v1::{AccessLevel, RuleSetting, Severity},
};

/// A guide of a command line: a stored one, or a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideArg {
    /// A stored one.
    Stored(GuideRef),
    /// The document in this file; `-` is standard input.
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct LintArgs {
    /// A document as `export` writes it, a directory with documents, - for standard input, or a stored task: its guid, or its name if no other task has it, and with @ and a number or alias a revision of it
    #[arg(
        required = true,
        value_name = "FILE|DIR|GUIDE[@REVISION]",
        value_hint = ValueHint::FilePath,
        value_parser = guide
    )]
    pub guides: Vec<GuideArg>,
    /// Check files against the account, too: its other guides and the tasks that subtask steps refer to
    #[arg(long)]
    pub online: bool,
    /// The files are all guides that there are: a variable that none of them sets is a warning, and a task that none of them has an error
    #[arg(long, conflicts_with = "online")]
    pub closed: bool,
    /// The least severity with which a finding makes the exit code 1
    #[arg(long, default_value = "error", ignore_case = true)]
    pub fail_on: Severity,
    /// Turn a rule off, or give it another severity: off, info, warning or error
    #[arg(long = "rule", value_name = "RULE=SEVERITY", value_parser = rule)]
    pub rules: Vec<RuleSetting>,
    /// Leave out findings below this severity
    #[arg(long, ignore_case = true)]
    pub min_severity: Option<Severity>,
    /// A variable that players set themselves; NAME.* declares all below the name
    #[arg(long = "variable", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Check translations into this language [default: each language that the guide is translated into]
    #[arg(long = "language", value_name = "TAG", value_parser = value::language)]
    pub languages: Vec<Language>,
    /// Treat unpublished tasks and steps like published ones
    #[arg(long)]
    pub include_unpublished: bool,
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct PreviewArgs {
    /// The guid of a stored task, or its name if no other task has it, and with @ and a number or alias a revision of it; a document as `export` writes it, or - for standard input
    #[arg(value_name = "GUIDE[@REVISION]|FILE", value_hint = ValueHint::FilePath, value_parser = guide)]
    pub guide: GuideArg,
    /// Access level of the viewer [default: ignore roles]
    #[arg(long, ignore_case = true)]
    pub level: Option<AccessLevel>,
    /// Show texts in this language; a text in another language is marked with that language or "source", and a translation older than its source with "outdated" [default: the language of the source]
    #[arg(long, value_name = "TAG", value_parser = value::language)]
    pub language: Option<Language>,
    /// The language of texts that have no translation into --language; may be repeated, the first one wins
    #[arg(long = "fallback-language", value_name = "TAG", value_parser = value::language)]
    pub fallback_languages: Vec<Language>,
    /// An answer: the name of an observation, or the full name of a variable, and the key of the answer; without a key the variable is known to be unanswered
    #[arg(long = "answer", value_name = "NAME=KEY", value_parser = answer)]
    pub answers: Vec<(String, String)>,
    /// A variable that players set themselves; NAME.* declares all below the name
    #[arg(long = "variable", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Say why each step is visible, hidden or undetermined
    #[arg(long)]
    pub explain: bool,
    /// Print the texts of steps
    #[arg(long)]
    pub full: bool,
    /// How many levels of subtasks are shown, 0 to 8
    #[arg(
        long,
        value_name = "LEVELS",
        default_value = "8",
        value_parser = value::number(0..=MAX_SUBTASK_LEVELS)
    )]
    pub subtask_depth: usize,
    /// Treat unpublished tasks and steps like published ones
    #[arg(long)]
    pub include_unpublished: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("subject").required(true).multiple(true).args(["task", "variable"]))]
pub struct ReferencesArgs {
    /// What refers to this task, named by its guid, or by its name if no other task has it; with --variable, only what is in this task
    #[arg(long, value_name = "GUID|NAME", value_parser = value::task_ref)]
    pub task: Option<TaskRef>,
    /// What sets and reads this variable, such as components.1204.charge_light
    #[arg(long, value_name = "NAME", value_parser = value::text)]
    pub variable: Option<String>,
    /// Only what has this answer, or compares with it
    #[arg(long, value_name = "KEY", requires = "variable", value_parser = value::text)]
    pub answer: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Text of Mermaid.
    Mermaid,
    /// Text of Graphviz.
    Dot,
    /// An image.
    Svg,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct GraphArgs {
    /// A document as `export` writes it, - for standard input, or a stored task: its guid, or its name if no other task has it, and with @ and a number or alias a revision of it
    #[arg(value_name = "FILE|GUIDE[@REVISION]", value_hint = ValueHint::FilePath, value_parser = guide)]
    pub guide: GuideArg,
    /// The form of the picture: mermaid and dot are texts that other programs draw, svg is an image
    #[arg(long, default_value = "mermaid")]
    pub format: GraphFormat,
    /// The file to write, - is standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl LintArgs {
    /// Whether a server is called: files can be checked without one.
    pub(super) fn needs_server(&self) -> bool {
        let is_stored = |guide: &GuideArg| matches!(guide, GuideArg::Stored(_));
        self.online || self.guides.iter().any(is_stored)
    }
}

/// A task by its guid; else a file, if there is one or the text has the form of a path; else a
/// task by its name.
pub(super) fn guide(text: &str) -> Result<GuideArg, String> {
    const PATH_STARTS: [&str; 3] = ["/", "./", "../"];
    let path = Path::new(text);
    let is_json = path
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("json"));
    let is_path = text == "-" || is_json || PATH_STARTS.iter().any(|it| text.starts_with(it));
    match guide_ref(text) {
        Ok(guide) if guide.has_id() => Ok(GuideArg::Stored(guide)),
        _ if is_path || path.exists() => Ok(GuideArg::File(path.to_owned())),
        Ok(name) => Ok(GuideArg::Stored(name)),
        Err(expected) => Err(format!("the path of a file, {expected}")),
    }
}

fn rule(text: &str) -> Result<RuleSetting, String> {
    const FORM: &str =
        "the id of a rule and off, info, warning or error, such as observation/unused=off";
    let (rule, severity) = text.split_once('=').ok_or(FORM)?;
    if Rule::parse(rule).is_none() {
        let ids = Rule::ALL.iter().map(|rule| rule.text().id);
        let meant = match closest(rule, ids) {
            Some(id) => format!(" (is {id} meant?)"),
            None => String::new(),
        };
        return Err(format!(
            "RULE=SEVERITY with a rule of docs/analysis.md; {rule:?} is not one{meant}"
        ));
    }
    let severity = match severity.eq_ignore_ascii_case("off") {
        true => Severity::Off,
        false => <Severity as ValueEnum>::from_str(severity, true).map_err(|_| {
            format!("the rule with off, info, warning or error behind the =, not {severity:?}")
        })?,
    };
    Ok(RuleSetting {
        rule: rule.to_owned(),
        severity: severity.into(),
    })
}

fn answer(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=');
    let pair = pair.map(|(name, key)| (name.trim(), key.trim()));
    let pair = pair.filter(|(name, _)| !name.is_empty());
    let (name, key) = pair.ok_or("a name and a key, such as charge_light=off")?;
    Ok((name.to_owned(), key.to_owned()))
}
