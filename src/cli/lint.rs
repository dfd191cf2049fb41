//! `expertise lint`.

mod report;

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

use console::Term;
use uuid::Uuid;

use self::report::LintReport;
use super::{
    CliError, PAGE_SIZE,
    directory::document_files,
    document,
    field_line::SentText,
    layout::with_hanging_indent_on,
    out::{self, JsonArray},
    revisions, tasks, transfer,
};
use crate::{
    client::{CallError, Client, MAX_MESSAGE_BYTES},
    config::{Format, GuideArg, GuideRef, LintArgs},
    domain::{
        Error,
        decide::WriteContext,
        ids::AccountId,
        import::Document,
        time::Timestamp,
        validation::{
            AllGuides, FindingsAlone, OneOfAllGuides, Rule, UncheckedVariable, validate_alone,
        },
        violation::Violations,
    },
    messages::{decode, encode},
    proto::v1::{
        Finding, FindingCounts, Severity, TaskDocument, ValidateTaskRequest, ValidationOptions,
        validate_task_request::Source,
    },
};

/// What was found in a guide.
struct LintFindings {
    findings: Vec<Finding>,
    counts: FindingCounts,
    /// Variables that look misspelt, but that another guide of the account may set.
    unchecked: Vec<UncheckedVariable>,
    /// The guide; `None` if it cannot be read.
    document: Option<TaskDocument>,
    /// The text of the file that the guide was read from.
    text: Option<String>,
    /// Whether the command line names the languages to check.
    names_languages: bool,
}

/// A guide to check.
enum LintSubject<'a> {
    Stored(&'a GuideRef),
    File(Box<LintFile>),
}

/// A file, with the text and the document in it.
struct LintFile {
    path: PathBuf,
    read: Result<(String, TaskDocument), CliError>,
}

impl LintSubject<'_> {
    fn file(path: PathBuf, read: Result<(String, TaskDocument), CliError>) -> Self {
        Self::File(Box::new(LintFile { path, read }))
    }

    fn name(&self) -> String {
        match self {
            Self::Stored(guide) => guide.to_string(),
            Self::File(file) => file.path.display().to_string(),
        }
    }
}

/// Fails where a stored guide is to be checked among files that are all guides.
pub(super) fn check(lint: &LintArgs) -> Result<(), CliError> {
    for guide in &lint.guides {
        if let GuideArg::Stored(guide) = guide
            && lint.closed
        {
            return Err(CliError::Argument(format!(
                "--closed takes the files of all guides, and {guide} is a stored one"
            )));
        }
    }
    Ok(())
}

/// Checks each guide, and continues after one that cannot be checked. Fails if one has a finding
/// of the severity that counts, or cannot be checked.
pub(super) async fn lint(
    client: Option<&Client>,
    lint: &LintArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let options = options(lint);
    let subjects = subjects(&lint.guides);
    let all = match lint.closed {
        true => Some(all_guides(&subjects)),
        false => None,
    };
    let mut failed = false;
    let mut some_checked_alone = false;
    let mut array = JsonArray::new();
    for (index, subject) in subjects.into_iter().enumerate() {
        let name = subject.name();
        let result = match subject {
            LintSubject::Stored(guide) => validate_stored(client, guide, &options).await,
            LintSubject::File(file) => match file.read {
                Ok((text, document)) if lint.online => {
                    validate_document_on_server(client, &text, document, &options).await
                }
                Ok((text, document)) => {
                    let among = all.as_ref().map(|all| OneOfAllGuides { all, index });
                    let checked = validate_locally(&text, document, &options, among);
                    some_checked_alone |= checked.is_ok();
                    checked
                }
                Err(error) => Err(error),
            },
        };
        let report = LintReport::new(&name, result);
        failed |= report.fails_on(lint.fail_on);
        match format {
            Format::Text => report.print()?,
            Format::Json => array.push(&report)?,
        }
    }
    if format == Format::Json {
        array.end()?;
    }
    if format == Format::Text && some_checked_alone {
        let note = match lint.closed {
            true => report::CHECKED_AS_ALL_NOTE,
            false => report::CHECKED_ALONE_NOTE,
        };
        out::print_error(with_hanging_indent_on(&Term::stderr(), "", note).trim_end());
    }
    Ok(match failed {
        false => ExitCode::SUCCESS,
        true => ExitCode::FAILURE,
    })
}

/// The guides of the command line, with those in its directories.
fn subjects(guides: &[GuideArg]) -> Vec<LintSubject<'_>> {
    let mut subjects = Vec::new();
    for guide in guides {
        let path = match guide {
            GuideArg::Stored(guide) => {
                subjects.push(LintSubject::Stored(guide));
                continue;
            }
            GuideArg::File(path) => path,
        };
        let files = match path.is_dir() {
            true => document_files(path),
            false => Ok(vec![path.clone()]),
        };
        match files {
            Ok(files) if files.is_empty() => {
                let error = CliError::Invalid("it has no .json files".to_owned());
                subjects.push(LintSubject::file(path.clone(), Err(error)));
            }
            Ok(files) => subjects.extend(files.into_iter().map(|file| {
                let read = transfer::read_text_and_document(&file);
                LintSubject::file(file, read)
            })),
            Err(error) => subjects.push(LintSubject::file(path.clone(), Err(error))),
        }
    }
    subjects
}

/// The documents as all guides that there are.
fn all_guides(subjects: &[LintSubject<'_>]) -> AllGuides {
    let mut all = AllGuides::default();
    for (index, subject) in subjects.iter().enumerate() {
        if let LintSubject::File(file) = subject
            && let Ok((_, document)) = &file.read
        {
            // What is wrong with it is said when it is checked.
            let mut violations = Violations::new();
            let document = decode::document::unstored(document.clone(), &mut violations);
            document.iter().for_each(|it| all.add(index, it));
        }
    }
    all
}

fn options(lint: &LintArgs) -> ValidationOptions {
    let LintArgs {
        guides: _,
        online: _,
        closed: _,
        fail_on: _,
        rules,
        min_severity,
        variables,
        languages,
        include_unpublished,
    } = lint;
    ValidationOptions {
        rules: rules.clone(),
        suppress: Vec::new(),
        known_variables: variables.clone(),
        languages: languages.iter().map(ToString::to_string).collect(),
        include_unpublished: *include_unpublished,
        min_severity: i32::from(min_severity.unwrap_or_default()),
    }
}

/// The paths of the steps and tasks of a document that nobody comes to.
pub(super) fn unreachable_paths(
    text: &str,
    document: TaskDocument,
) -> Result<BTreeSet<String>, CliError> {
    let options = ValidationOptions {
        min_severity: Severity::Error.into(),
        ..ValidationOptions::default()
    };
    let found = validate_locally(text, document, &options, None)?;
    let rules = [Rule::Unreachable, Rule::NeverVisible].map(|rule| rule.text().id);
    let findings = found.findings.into_iter();
    let unreachable = findings.filter(|finding| rules.contains(&finding.rule.as_str()));
    // That of a task is about its dependencies.
    let paths = unreachable.map(|finding| finding.path.replace(".dependencies", ""));
    Ok(paths.collect())
}

/// Checks a document by itself or among all guides, without a server.
fn validate_locally(
    text: &str,
    document: TaskDocument,
    options: &ValidationOptions,
    among: Option<OneOfAllGuides<'_>>,
) -> Result<LintFindings, CliError> {
    let sent = SentText {
        text,
        document: &document,
    };
    let names_languages = !options.languages.is_empty();
    let options = decode::all(|violations: &mut Violations| {
        let field = violations.at("options");
        Some(decode::options::options(Some(options.clone()), field))
    })
    .map_err(|violations| invalid("the options are refused", &violations, &sent))?;
    let refused = |violations| sent.refused(violations);
    let decoded = decoded(&sent)?;
    let account = AccountId::parse("lint").ok_or(document::DocumentError::Contract)?;
    let context = WriteContext {
        account,
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
    } = match validate_alone(decoded, options, among, &context) {
        Ok(found) => found,
        Err(Error::Invalid(violations)) => return Err(refused(violations)),
        Err(error) => return Err(CliError::Invalid(error.to_string())),
    };
    Ok(LintFindings {
        findings: findings.into_iter().map(encode::finding).collect(),
        counts: encode::finding_counts(counts),
        unchecked,
        names_languages,
        text: Some(text.to_owned()),
        document: Some(document),
    })
}

/// The document, which has no id twice.
fn decoded(sent: &SentText<'_>) -> Result<Document, CliError> {
    let decoded = decode::all(|violations: &mut Violations| {
        decode::document::unstored(sent.document.clone(), violations)
    });
    let decoded = decoded.map_err(|violations| sent.refused(violations))?;
    decoded
        .check_ids()
        .map_err(|violations| sent.refused(violations))?;
    Ok(decoded)
}

impl SentText<'_> {
    /// Why an import would refuse the document.
    fn refused(&self, violations: Violations) -> CliError {
        invalid("an import would refuse it", &violations, self)
    }
}

/// An error with a line for each violation.
fn invalid(error: &str, violations: &Violations, sent: &SentText<'_>) -> CliError {
    let kept = violations.kept().iter();
    let lines = kept.map(|violation| {
        let (path, description) = (&violation.path, &violation.description);
        let path = sent.with_place(path.clone());
        out::sanitize(&format!("  {path}: {description}"))
    });
    let mut lines: Vec<String> = lines.collect();
    match violations.total() - violations.kept().len() {
        0 => {}
        more => lines.push(format!("  and {more} more")),
    }
    CliError::Invalid(format!("{error}:\n{}", lines.join("\n")))
}

async fn validate_stored(
    client: Option<&Client>,
    guide: &GuideRef,
    options: &ValidationOptions,
) -> Result<LintFindings, CliError> {
    let client = client.ok_or_else(needs_server)?;
    let guide = tasks::find_guide_or_file(client, guide).await?;
    if guide.revision.is_some() {
        let document = revisions::document(client, &guide).await?;
        let source = Source::Document(document.clone());
        return Ok(LintFindings {
            document: Some(document),
            ..validate_on_server(client, source, options).await?
        });
    }
    let guid = guide.task.to_string();
    let source = Source::Guid(guid.clone());
    let mut found = validate_on_server(client, source, options).await?;
    if !found.findings.is_empty() {
        // For titles and conditions; the findings are complete without them.
        found.document = transfer::export(client, &guid).await.ok();
    }
    Ok(found)
}

async fn validate_document_on_server(
    client: Option<&Client>,
    text: &str,
    document: TaskDocument,
    options: &ValidationOptions,
) -> Result<LintFindings, CliError> {
    let client = client.ok_or_else(needs_server)?;
    let sent = SentText {
        text,
        document: &document,
    };
    let source = Source::Document(document.clone());
    let found = validate_on_server(client, source, options).await;
    let found = found.map_err(|error| sent.with_places(error))?;
    decoded(&sent)?;
    Ok(LintFindings {
        text: Some(text.to_owned()),
        document: Some(document),
        ..found
    })
}

pub(super) fn needs_server() -> CliError {
    CliError::Invalid("it cannot be checked without a server: set --server".to_owned())
}

/// Has a server check a guide, page by page.
async fn validate_on_server(
    client: &Client,
    source: Source,
    options: &ValidationOptions,
) -> Result<LintFindings, CallError> {
    let mut found = LintFindings {
        findings: Vec::new(),
        counts: FindingCounts::default(),
        unchecked: Vec::new(),
        document: None,
        text: None,
        names_languages: !options.languages.is_empty(),
    };
    let message = ValidateTaskRequest {
        replaces_stored: matches!(source, Source::Document(_)),
        source: Some(source),
        options: Some(options.clone()),
        page_size: PAGE_SIZE,
        page_token: String::new(),
        known_fingerprint: String::new(),
    };
    client
        .for_each_page(message, |page| {
            found.findings.extend(page.findings);
            found.counts = page.counts.unwrap_or_default();
            Ok::<_, CallError>(())
        })
        .await?;
    Ok(found)
}
