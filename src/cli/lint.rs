//! `expertise lint`.

mod local;
mod report;

use std::{path::Path, process::ExitCode};

use clap::{Args, ValueEnum, ValueHint};

pub(super) use self::local::unreachable_paths;
use self::{
    local::{check_files, decoded},
    report::LintReport,
};
use super::{
    CliError, Format,
    findings::Findings,
    guide_file::{FilesByTask, GuideFile, files_in},
    guide_ref::{GuideArg, GuideRef},
    guides,
};
use crate::{
    client::{Client, MAX_MESSAGE_BYTES},
    config::value,
    domain::{misspelling::closest, translation::Language, validation::Rule},
    proto::v1::{RuleSetting, Severity, ValidationOptions},
};

#[derive(Clone, Debug, PartialEq, Args)]
pub struct LintArgs {
    /// Documents, directories with documents, - for standard input, or guids or unique names of stored tasks, with @ and a number or alias for a revision
    #[arg(
        required = true,
        value_name = "FILE|DIR|GUIDE[@REVISION]",
        value_hint = ValueHint::FilePath
    )]
    pub guides: Vec<GuideArg>,
    /// Also check files against the account: its other guides, and the tasks that subtask steps refer to
    #[arg(long)]
    pub online: bool,
    /// Treat the files as all guides that exist: variables that none of them sets are warnings, and tasks that none of them has are errors
    #[arg(long, conflicts_with = "online")]
    pub closed: bool,
    /// The minimum severity of findings that cause exit code 1
    #[arg(long, default_value = "error", ignore_case = true)]
    pub fail_on: Severity,
    /// Turn a rule off, or change its severity: off, info, warning or error
    #[arg(long = "rule", value_name = "RULE=SEVERITY", value_parser = rule_setting)]
    pub rules: Vec<RuleSetting>,
    /// Hide findings below this severity
    #[arg(long, ignore_case = true)]
    pub min_severity: Option<Severity>,
    /// A variable that players set themselves; NAME.* covers all names that begin with NAME and a dot
    #[arg(long = "variable", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Check translations into this language [default: each language that the guide is translated into]
    #[arg(long = "language", value_parser = value::language)]
    pub languages: Vec<Language>,
    /// Treat unpublished tasks and steps as published
    #[arg(long)]
    pub include_unpublished: bool,
}

impl LintArgs {
    /// Whether a server is called: files can be checked without one.
    pub fn needs_server(&self) -> bool {
        let is_stored = |guide: &GuideArg| matches!(guide, GuideArg::Stored(_));
        self.online || self.guides.iter().any(is_stored)
    }
}

fn rule_setting(text: &str) -> Result<RuleSetting, String> {
    const FORM: &str =
        "the id of a rule and off, info, warning or error, such as observation/unused=off";
    let (rule, severity) = text.split_once('=').ok_or(FORM)?;
    if Rule::parse(rule).is_none() {
        let ids = Rule::ALL.iter().map(|rule| rule.text().id);
        let meant = match closest(rule, ids) {
            Some(id) => format!(" (did you mean {id}?)"),
            None => String::new(),
        };
        return Err(format!(
            "RULE=SEVERITY with a rule of docs/analysis.md; {rule:?} is not one{meant}"
        ));
    }
    let severity = match severity.eq_ignore_ascii_case("off") {
        true => Severity::Off,
        false => <Severity as ValueEnum>::from_str(severity, true).map_err(|_| {
            format!("the rule with off, info, warning or error after the =, not {severity:?}")
        })?,
    };
    Ok(RuleSetting {
        rule: rule.to_owned(),
        severity: severity.into(),
    })
}

enum LintedGuide<'a> {
    Stored(&'a GuideRef),
    File(Box<GuideFile>),
}

/// Fails if `--closed` is used with a stored guide.
pub(super) fn check(lint: &LintArgs) -> Result<(), CliError> {
    let stored = lint.guides.iter().find_map(|guide| match guide {
        GuideArg::Stored(guide) => Some(guide),
        GuideArg::File(_) => None,
    });
    match stored.filter(|_| lint.closed) {
        Some(guide) => Err(CliError::Argument(format!(
            "--closed takes the files of all guides, and {guide} is a stored one"
        ))),
        None => Ok(()),
    }
}

/// Checks each guide, and continues after failures. Fails if a guide has a finding with the
/// severity of `--fail-on`, or cannot be checked.
pub(super) async fn lint(
    client: Option<&Client>,
    lint: &LintArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let options = options(lint);
    let mut known = FilesByTask::default();
    let guides = lint.guides.iter().flat_map(find_guides);
    let guides = guides.map(|(name, guide)| {
        let guide = guide.and_then(|guide| {
            if let LintedGuide::File(file) = &guide {
                known.add(file)?;
            }
            Ok(guide)
        });
        (name, guide)
    });
    let guides: Vec<_> = guides.collect();
    let files = guides.iter().filter_map(|(_, guide)| match guide {
        Ok(LintedGuide::File(file)) if !lint.online => Some(&**file),
        _ => None,
    });
    let local = check_files(&files.collect::<Vec<_>>(), &options, lint.closed)?;
    let (mut report, is_local) = (LintReport::new(format), !local.is_empty());
    let mut local = local.into_iter();
    for (name, guide) in guides {
        let checked = match guide {
            Ok(LintedGuide::Stored(guide)) => check_stored(client, guide, options.clone()).await,
            Ok(LintedGuide::File(file)) if lint.online => {
                check_online(client, *file, options.clone()).await
            }
            Ok(LintedGuide::File(_)) => match local.next() {
                Some(checked) => checked,
                None => return Err(CliError::Failed(format!("{name} was not checked"))),
            },
            Err(error) => Err(CliError::Failed(error)),
        };
        report.add(&name, checked)?;
    }
    report.end(lint, is_local)
}

/// The guide or the guides of a directory with their names, or why they cannot be read.
fn find_guides(guide: &GuideArg) -> Vec<(String, Result<LintedGuide<'_>, String>)> {
    let path = match guide {
        GuideArg::Stored(guide) => {
            return vec![(guide.to_string(), Ok(LintedGuide::Stored(guide)))];
        }
        GuideArg::File(path) => path,
    };
    let name = |path: &Path| path.display().to_string();
    match files_in(path) {
        Err(error) => vec![(name(path), Err(error.to_string()))],
        Ok(files) if files.is_empty() => {
            vec![(name(path), Err("it has no .json files".to_owned()))]
        }
        Ok(files) => {
            let read = files.iter().map(|path| {
                let file = GuideFile::read_up_to(path, MAX_MESSAGE_BYTES as u64);
                let file = file.map(|file| LintedGuide::File(Box::new(file)));
                (name(path), file)
            });
            read.collect()
        }
    }
}

fn options(lint: &LintArgs) -> ValidationOptions {
    ValidationOptions {
        rules: lint.rules.clone(),
        suppress: Vec::new(),
        known_variables: lint.variables.clone(),
        languages: lint.languages.iter().map(ToString::to_string).collect(),
        include_unpublished: lint.include_unpublished,
        min_severity: i32::from(lint.min_severity.unwrap_or_default()),
    }
}

async fn check_stored(
    client: Option<&Client>,
    guide: &GuideRef,
    options: ValidationOptions,
) -> Result<Findings, CliError> {
    let client = client.ok_or_else(needs_server)?;
    let guide = guides::find_guide_or_file(client, guide).await?;
    let found = match guide.revision {
        Some(_) => {
            let document = guide.read(client).await?.document;
            Findings::for_document(client, document, options).await
        }
        None => Findings::for_stored(client, &guide.task.to_string(), options).await,
    };
    Ok(found?)
}

async fn check_online(
    client: Option<&Client>,
    file: GuideFile,
    options: ValidationOptions,
) -> Result<Findings, CliError> {
    let client = client.ok_or_else(needs_server)?;
    decoded(&file)?;
    let found = Findings::for_document(client, file.document, options).await?;
    let file = file.text;
    Ok(Findings { file, ..found })
}

pub(super) fn needs_server() -> CliError {
    CliError::Failed("it cannot be checked without a server: set --server".to_owned())
}
