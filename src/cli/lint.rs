//! `expertise lint`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, ValueEnum, ValueHint};
use console::{Term, style};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    CliError, Format, PAGE_SIZE, document,
    guide_file::{FieldLines, GuideFile, files_in},
    guide_ref::{GuideArg, GuideRef},
    guides,
    layout::{with_hanging_indent, with_hanging_indent_on},
    out::{self, Results, print_error, sanitize},
    place::{DOCUMENT, GuidePlace},
    wording,
};
use crate::{
    client::{CallError, Client, MAX_MESSAGE_BYTES},
    config::value,
    domain::{
        Error,
        decide::WriteContext,
        ids::AccountId,
        import::Document,
        misspelling::closest,
        time::Timestamp,
        translation::Language,
        validation::{
            AllGuides, FindingsAlone, OneOfAllGuides, Rule, UncheckedVariable, validate_alone,
        },
        violation::Violations,
    },
    messages::{decode, encode},
    proto::v1::{
        Finding, FindingCounts, Place, RuleSetting, Severity, TaskDocument, ValidateTaskRequest,
        ValidationOptions, validate_task_request::Source,
    },
};

#[derive(Clone, Debug, PartialEq, Args)]
pub struct LintArgs {
    /// A document as `export` writes it, a directory with documents, - for standard input, or a stored task: its guid, or its name if no other task has it, and with @ and a number or alias a revision of it
    #[arg(
        required = true,
        value_name = "FILE|DIR|GUIDE[@REVISION]",
        value_hint = ValueHint::FilePath
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
    #[arg(long = "rule", value_name = "RULE=SEVERITY", value_parser = rule_setting)]
    pub rules: Vec<RuleSetting>,
    /// Leave out findings below this severity
    #[arg(long, ignore_case = true)]
    pub min_severity: Option<Severity>,
    /// A variable that players set themselves; NAME.* declares all below the name
    #[arg(long = "variable", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Check translations into this language [default: each language that the guide is translated into]
    #[arg(long = "language", value_parser = value::language)]
    pub languages: Vec<Language>,
    /// Treat unpublished tasks and steps like published ones
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

/// What a check without a server leaves out.
const CHECKED_ALONE_NOTE: &str = "checked without the account: rules about its other guides are \
                                  left out, and tasks outside the files are not followed; --online \
                                  checks them too";

/// The same for files that are all guides.
const CHECKED_AS_ALL_NOTE: &str = "checked as all guides of the account: the steps of the tasks \
                                   that subtask steps refer to in other files are not followed";

/// The indentation of the text of a finding.
const INDENT: &str = "    ";

/// A guide to check.
enum Subject<'a> {
    Stored(&'a GuideRef),
    File(PathBuf, Box<Result<GuideFile, String>>),
}

/// What was found in a guide.
#[derive(Default)]
struct Checked {
    findings: Vec<Finding>,
    counts: FindingCounts,
    /// Variables that look misspelt, but that another guide of the account may set.
    unchecked: Vec<UncheckedVariable>,
    /// The guide; empty if it cannot be read.
    document: TaskDocument,
    /// The text of its file.
    text: String,
}

/// Fails where a stored guide is to be checked among files that are all guides.
pub(super) fn check(lint: &LintArgs) -> Result<(), CliError> {
    let mut stored = lint.guides.iter().filter_map(|guide| match guide {
        GuideArg::Stored(guide) => Some(guide),
        GuideArg::File(_) => None,
    });
    match stored.next().filter(|_| lint.closed) {
        Some(guide) => Err(CliError::Argument(format!(
            "--closed takes the files of all guides, and {guide} is a stored one"
        ))),
        None => Ok(()),
    }
}

/// Checks each guide, and continues after one that cannot be checked. Fails if one has a finding of
/// the severity that counts, or cannot be checked.
pub(super) async fn lint(
    client: Option<&Client>,
    lint: &LintArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let options = options(lint);
    let subjects = subjects(&lint.guides);
    let all = lint.closed.then(|| all_guides(&subjects));
    let count = subjects.len();
    let mut report = LintReport::new(lint, format);
    for (index, subject) in subjects.into_iter().enumerate() {
        let (name, checked) = match subject {
            Subject::Stored(guide) => {
                let checked = check_stored(client, guide, &options).await;
                (guide.to_string(), checked)
            }
            Subject::File(path, file) => {
                let checked = match *file {
                    Err(error) => Err(CliError::Failed(error)),
                    Ok(file) if lint.online => check_online(client, file, &options).await,
                    Ok(file) => {
                        let among = all.as_ref().map(|all| OneOfAllGuides { all, index });
                        let checked = check_locally(&file, &options, among);
                        report.some_checked_alone |= checked.is_ok();
                        checked
                    }
                };
                (path.display().to_string(), checked)
            }
        };
        report.add(&sanitize(&name), checked)?;
    }
    report.end(count)
}

/// The guides of the command line, with those in its directories.
fn subjects(guides: &[GuideArg]) -> Vec<Subject<'_>> {
    let mut subjects = Vec::new();
    for guide in guides {
        let path = match guide {
            GuideArg::Stored(guide) => {
                subjects.push(Subject::Stored(guide));
                continue;
            }
            GuideArg::File(path) => path,
        };
        let files = match path.is_dir() {
            true => files_in(path).map_err(|error| error.to_string()),
            false => Ok(vec![path.clone()]),
        };
        let failed = |error| Subject::File(path.clone(), Box::new(Err(error)));
        match files {
            Ok(files) if files.is_empty() => {
                subjects.push(failed("it has no .json files".to_owned()));
            }
            Ok(files) => subjects.extend(files.into_iter().map(|path| {
                let read = GuideFile::read_up_to(&path, MAX_MESSAGE_BYTES as u64);
                Subject::File(path, Box::new(read))
            })),
            Err(error) => subjects.push(failed(error)),
        }
    }
    subjects
}

/// The documents as all guides that there are.
fn all_guides(subjects: &[Subject<'_>]) -> AllGuides {
    let mut all = AllGuides::default();
    for (index, subject) in subjects.iter().enumerate() {
        if let Subject::File(_, file) = subject
            && let Ok(file) = file.as_ref()
        {
            // What is wrong with it is said when it is checked.
            let mut violations = Violations::new();
            let document = decode::document::unstored(file.document.clone(), &mut violations);
            document.iter().for_each(|it| all.add(index, it));
        }
    }
    all
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

/// The paths of the steps and tasks of a document that nobody comes to.
pub(super) fn unreachable_paths(file: &GuideFile) -> Result<BTreeSet<String>, CliError> {
    let options = ValidationOptions {
        min_severity: Severity::Error.into(),
        ..ValidationOptions::default()
    };
    let rules = [Rule::Unreachable, Rule::NeverVisible].map(|rule| rule.text().id);
    let findings = check_locally(file, &options, None)?.findings.into_iter();
    let unreachable = findings.filter(|finding| rules.contains(&finding.rule.as_str()));
    // That of a task is about its dependencies.
    let paths = unreachable.map(|finding| finding.path.replace(".dependencies", ""));
    Ok(paths.collect())
}

/// Checks a document by itself or among all guides, without a server.
fn check_locally(
    file: &GuideFile,
    options: &ValidationOptions,
    among: Option<OneOfAllGuides<'_>>,
) -> Result<Checked, CliError> {
    let options = decode::all(|violations: &mut Violations| {
        let field = violations.at("options");
        Some(decode::options::options(Some(options.clone()), field))
    })
    .map_err(|violations| invalid("the options are refused", &violations, file))?;
    let context = WriteContext {
        account: AccountId::parse("lint").ok_or(document::DocumentError::Contract)?,
        subject: String::new(),
        now: Timestamp(0),
        new_id: Uuid::now_v7,
        max_message_bytes: MAX_MESSAGE_BYTES,
        automatic_revisions: 0,
        keeps_deleted_tasks: false,
    };
    let FindingsAlone {
        findings,
        counts,
        unchecked,
    } = match validate_alone(decoded(file)?, options, among, &context) {
        Ok(found) => found,
        Err(Error::Invalid(violations)) => return Err(refused(&violations, file)),
        Err(error) => return Err(CliError::Failed(error.to_string())),
    };
    Ok(Checked {
        findings: findings.into_iter().map(encode::finding).collect(),
        counts: encode::finding_counts(counts),
        unchecked,
        document: file.document.clone(),
        text: file.text.clone(),
    })
}

/// The document, which has no id twice.
fn decoded(file: &GuideFile) -> Result<Document, CliError> {
    decode::all(|violations: &mut Violations| {
        decode::document::unstored(file.document.clone(), violations)
    })
    .and_then(|decoded| decoded.check_ids().map(|_| decoded))
    .map_err(|violations| refused(&violations, file))
}

/// Why an import would refuse the document.
fn refused(violations: &Violations, file: &GuideFile) -> CliError {
    invalid("an import would refuse it", violations, file)
}

/// An error with a line for each violation.
fn invalid(error: &str, violations: &Violations, file: &GuideFile) -> CliError {
    let kept = violations.kept().iter();
    let lines = kept.map(|violation| {
        let (path, description) = (&violation.path, &violation.description);
        let place = match file.place_of(path).as_str() {
            "" => String::new(),
            place => format!("{place}: "),
        };
        sanitize(&format!("  {place}{path}: {description}"))
    });
    let mut lines: Vec<String> = lines.collect();
    match violations.total() - violations.kept().len() {
        0 => {}
        more => lines.push(format!("  and {more} more")),
    }
    CliError::Failed(format!("{error}:\n{}", lines.join("\n")))
}

async fn check_stored(
    client: Option<&Client>,
    guide: &GuideRef,
    options: &ValidationOptions,
) -> Result<Checked, CliError> {
    let client = client.ok_or_else(needs_server)?;
    let guide = guides::find_guide_or_file(client, guide).await?;
    if guide.revision.is_some() {
        let document = guide.read(client).await?.document;
        let source = Source::Document(document.clone());
        return Ok(Checked {
            document,
            ..validate(client, source, options).await?
        });
    }
    let source = Source::Guid(guide.task.to_string());
    let mut checked = validate(client, source, options).await?;
    if !checked.findings.is_empty() {
        // For titles and conditions; the findings are complete without them.
        let stored = guide.read(client).await.ok();
        checked.document = stored.map(|stored| stored.document).unwrap_or_default();
    }
    Ok(checked)
}

async fn check_online(
    client: Option<&Client>,
    file: GuideFile,
    options: &ValidationOptions,
) -> Result<Checked, CliError> {
    let client = client.ok_or_else(needs_server)?;
    let source = Source::Document(file.document.clone());
    let checked = validate(client, source, options).await;
    let checked = checked.map_err(|error| file.locate(error))?;
    decoded(&file)?;
    Ok(Checked {
        document: file.document,
        text: file.text,
        ..checked
    })
}

pub(super) fn needs_server() -> CliError {
    CliError::Failed("it cannot be checked without a server: set --server".to_owned())
}

/// Has a server check a guide.
async fn validate(
    client: &Client,
    source: Source,
    options: &ValidationOptions,
) -> Result<Checked, CallError> {
    let message = ValidateTaskRequest {
        replaces_stored: matches!(source, Source::Document(_)),
        source: Some(source),
        options: Some(options.clone()),
        page_size: PAGE_SIZE,
        ..ValidateTaskRequest::default()
    };
    let mut checked = Checked::default();
    for page in client.pages(message).await? {
        checked.findings.extend(page.findings);
        checked.counts = page.counts.unwrap_or_default();
    }
    Ok(checked)
}

/// The findings of the guides, for people and for scripts.
struct LintReport<'a> {
    lint: &'a LintArgs,
    results: Results,
    has_failed: bool,
    some_checked_alone: bool,
    totals: FindingCounts,
    /// The hints that were printed.
    hints: BTreeSet<String>,
}

impl<'a> LintReport<'a> {
    fn new(lint: &'a LintArgs, format: Format) -> Self {
        Self {
            lint,
            results: Results::new(format),
            has_failed: false,
            some_checked_alone: false,
            totals: FindingCounts::default(),
            hints: BTreeSet::new(),
        }
    }

    fn add(&mut self, guide: &str, checked: Result<Checked, CliError>) -> Result<(), CliError> {
        let checked = match checked {
            Ok(checked) => checked,
            Err(error) => {
                self.has_failed = true;
                let json = json!({"guide": guide, "error": out::error_json(&error)});
                return self
                    .results
                    .add_failure(&format!("failed {guide}: {error}"), &json);
            }
        };
        let FindingCounts {
            errors,
            warnings,
            infos,
            undecided,
            ..
        } = checked.counts;
        self.totals.errors += errors;
        self.totals.warnings += warnings;
        self.totals.infos += infos;
        self.totals.undecided += undecided;
        let text = self.text(guide, &checked);
        self.results.add(&text, &json(guide, &checked)?)
    }

    fn text(&mut self, guide: &str, checked: &Checked) -> String {
        let unchecked = match checked.unchecked.len() {
            0 => String::new(),
            1 => ", 1 variable not checked".to_owned(),
            count => format!(", {count} variables not checked"),
        };
        let counts = counts(&checked.counts);
        let mut text = format!("{}: {counts}{unchecked}\n", style(guide).bold());
        let lines = FieldLines::new(&checked.text);
        let unknown_rule = Rule::UnknownVariable.text().id;
        let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in checked.findings.iter().filter(|it| it.rule == unknown_rule) {
            *unknown.entry(&finding.message).or_default() += 1;
        }
        for finding in &checked.findings {
            let places = match finding.rule == unknown_rule {
                true => unknown.remove(finding.message.as_str()),
                false => Some(1),
            };
            // One of the same variable has been printed.
            if let Some(places) = places {
                text.push_str(&self.finding_text(finding, places, checked, &lines));
            }
        }
        for UncheckedVariable { name, suggestion } in &checked.unchecked {
            let line = format!(
                "not checked without the account: whether an observation sets {name}; is \
                 {suggestion} meant?"
            );
            text.push_str(&with_hanging_indent("  ", &sanitize(&line)));
        }
        text
    }

    fn finding_text(
        &mut self,
        finding: &Finding,
        places: usize,
        checked: &Checked,
        lines: &FieldLines<'_>,
    ) -> String {
        let severity = style(wording::severity(finding.severity()));
        let severity = match finding.severity() {
            Severity::Error => severity.red(),
            Severity::Warning => severity.yellow(),
            Severity::Info | Severity::Off | Severity::Unspecified => severity.cyan(),
        };
        let rule = style(sanitize(&finding.rule)).bold();
        let mut text = format!("  {} {rule}\n", severity.bold());
        let mut line = |lead: &str, line: &str| {
            let lead = format!("{INDENT}{lead}");
            text.push_str(&with_hanging_indent(&lead, &sanitize(line)));
        };
        let Finding {
            task,
            step,
            path,
            language,
            ..
        } = finding;
        let at = match step.as_str() {
            _ if path.starts_with(DOCUMENT) => checked.in_file(path, lines),
            "" => format!("task {task} {path}"),
            step => format!("step {step} {path}"),
        };
        match places {
            1 => line("at ", at.trim_end()),
            count => line(
                "at ",
                &format!("{}, and in {} more places", at.trim_end(), count - 1),
            ),
        }
        if let Some(label) = checked.find(path, (task, step)).and_then(|it| it.label()) {
            line("in ", &label);
        }
        match (language.as_str(), self.lint.languages.is_empty()) {
            ("", _) => {}
            (language, false) => line("language ", language),
            (language, true) => {
                line(
                    "language ",
                    &format!("{language}, which the guide is translated into"),
                );
            }
        }
        line("", &finding.message);
        let answers = finding.example.iter().map(|answer| {
            let value = answer.value.as_ref().map(wording::target);
            format!("{} = {}", answer.name, value.unwrap_or_default())
        });
        let answers: Vec<String> = answers.collect();
        if !answers.is_empty() {
            line("for example with ", &answers.join(", "));
        }
        if !finding.related.is_empty() {
            line("", related_heading(&finding.rule));
        }
        for place in &finding.related {
            line("  ", &checked.related_place(place, finding, lines));
        }
        // The hint names the field of the contract, which is a flag here.
        let hint = finding.hint.replace("`known_variables`", "`--variable`");
        if self.hints.insert(hint.clone()) {
            line("to do: ", &hint);
        }
        text
    }

    fn end(self, guides: usize) -> Result<ExitCode, CliError> {
        if self.results.is_text() && guides > 1 {
            print_error(&format!("{guides} guides: {}", counts(&self.totals)));
        }
        if self.results.is_text() && self.some_checked_alone {
            let note = match self.lint.closed {
                true => CHECKED_AS_ALL_NOTE,
                false => CHECKED_ALONE_NOTE,
            };
            print_error(with_hanging_indent_on(&Term::stderr(), "", note).trim_end());
        }
        self.results.end()?;
        let FindingCounts {
            errors,
            warnings,
            infos,
            ..
        } = self.totals;
        let counted = match self.lint.fail_on {
            Severity::Error => errors,
            Severity::Warning => errors + warnings,
            Severity::Info => errors + warnings + infos,
            Severity::Off | Severity::Unspecified => 0,
        };
        Ok(match self.has_failed || counted > 0 {
            false => ExitCode::SUCCESS,
            true => ExitCode::FAILURE,
        })
    }
}

fn json(guide: &str, checked: &Checked) -> Result<Value, CliError> {
    let findings = checked
        .findings
        .iter()
        .map(|it| document::json("Finding", it));
    let findings = findings.collect::<Result<Value, _>>()?;
    let unchecked = checked.unchecked.iter();
    let unchecked = unchecked.map(|UncheckedVariable { name, suggestion }| {
        json!({"variable": name, "suggestion": suggestion})
    });
    Ok(json!({
        "guide": guide,
        "findings": findings,
        "counts": document::json("FindingCounts", &checked.counts)?,
        "unchecked_variables": unchecked.collect::<Value>(),
    }))
}

/// `2 errors, 1 warning`, or that there is nothing.
fn counts(counts: &FindingCounts) -> String {
    let count = |number: i32, one: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {one}s")),
    };
    let undecided = match counts.undecided {
        0 => None,
        1 => Some("1 question undecided".to_owned()),
        number => Some(format!("{number} questions undecided")),
    };
    let parts = [
        count(counts.errors, "error"),
        count(counts.warnings, "warning"),
        count(counts.infos, "info"),
        undecided,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.as_slice() {
        [] => "no findings".to_owned(),
        parts => parts.join(", "),
    }
}

impl Checked {
    fn find(&self, path: &str, ids: (&str, &str)) -> Option<GuidePlace<'_>> {
        GuidePlace::find(&self.document, path, ids)
    }

    /// A path in a document as its file has it, after the line where that is known.
    fn in_file(&self, path: &str, lines: &FieldLines<'_>) -> String {
        let place = self.find(path, ("", ""));
        lines.with_line(&place.map_or_else(|| path.to_owned(), |it| it.path_as_written(path)))
    }

    /// The place, the condition there, if any, and the title of its step, unless the finding is in
    /// the same step.
    fn related_place(&self, place: &Place, finding: &Finding, lines: &FieldLines<'_>) -> String {
        let Place {
            task,
            step,
            path,
            title,
        } = place;
        let id = if step.is_empty() { task } else { step };
        let mut text = match path.starts_with(DOCUMENT) {
            true => self.in_file(path, lines),
            false => format!("{id} {path}").trim().to_owned(),
        };
        let at = self.find(path, (task, step));
        if let Some(condition) = at.and_then(|place| place.condition(path)) {
            text.push_str(&format!(": {condition}"));
        }
        if !title.is_empty() && *step != finding.step {
            text.push_str(&format!(" in \"{title}\""));
        }
        text
    }
}

/// What the related places of a finding are.
fn related_heading(rule: &str) -> &'static str {
    match rule {
        "step/unreachable" | "task/never-visible" => "these conditions cannot hold together:",
        "subtask/cycle" => "the steps of the cycle:",
        "condition/set-elsewhere" | "condition/answered-later" => "it is set by:",
        _ => "see also:",
    }
}
