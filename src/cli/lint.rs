//! `expertise lint`.

mod report;

use std::process::ExitCode;

use console::Term;
use uuid::Uuid;

use self::report::LintReport;
use super::{
    CliError, PAGE_SIZE, document,
    field_line::SentText,
    layout::with_hanging_indent_on,
    out::{self, JsonArray},
    revisions, tasks, transfer,
};
use crate::{
    client::{CallError, Client, MAX_MESSAGE_BYTES},
    config::{Format, GuideArg, GuideRef, LintArgs, LintConfig},
    domain::{
        Error,
        caller::Scope,
        decide::WriteContext,
        ids::AccountId,
        import::Document,
        time::Timestamp,
        validation::{FindingsAlone, UncheckedVariable, validate_alone},
        violation::Violations,
    },
    messages::{decode, encode},
    proto::v1::{
        Finding, FindingCounts, TaskDocument, ValidateTaskRequest, ValidationOptions,
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

/// Checks each guide, and continues after one that cannot be checked. Fails if one has an
/// error or cannot be checked.
pub async fn lint(config: &LintConfig) -> Result<ExitCode, CliError> {
    let LintConfig {
        lint,
        format,
        connection,
    } = config;
    let client = match connection {
        Some(connection) => Some(Client::connect(connection, &[Scope::Read]).await?),
        None => None,
    };
    let client = client.as_ref();
    let options = options(lint);
    let mut failed = false;
    let mut some_checked_alone = false;
    let mut array = JsonArray::new();
    for guide in &lint.guides {
        let result = match guide {
            GuideArg::File(file) => match transfer::read_text_and_document(file) {
                Ok((text, document)) if lint.online => {
                    validate_document_on_server(client, &text, document, &options).await
                }
                Ok((text, document)) => {
                    let checked = validate_locally(&text, document, &options);
                    some_checked_alone |= checked.is_ok();
                    checked
                }
                Err(error) => Err(error),
            },
            GuideArg::Stored(guide) => validate_stored(client, guide, &options).await,
        };
        let report = LintReport::new(&tasks::guide_name(guide), result);
        failed |= report.has_failed();
        match format {
            Format::Text => report.print()?,
            Format::Json => array.push(&report)?,
        }
    }
    if *format == Format::Json {
        array.end()?;
    }
    if *format == Format::Text && some_checked_alone {
        out::print_error(
            with_hanging_indent_on(&Term::stderr(), "", report::CHECKED_ALONE_NOTE).trim_end(),
        );
    }
    Ok(match failed {
        false => ExitCode::SUCCESS,
        true => ExitCode::FAILURE,
    })
}

fn options(lint: &LintArgs) -> ValidationOptions {
    let LintArgs {
        guides: _,
        online: _,
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

/// Checks a document by itself, without a server.
fn validate_locally(
    text: &str,
    document: TaskDocument,
    options: &ValidationOptions,
) -> Result<LintFindings, CliError> {
    let sent = SentText {
        text,
        document: &document,
    };
    let names_languages = !options.languages.is_empty();
    let options = decode::all(|violations: &mut Violations| {
        let field = decode::Field::root("options", violations);
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
    } = match validate_alone(decoded, options, &context) {
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

fn needs_server() -> CliError {
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
    let mut message = ValidateTaskRequest {
        replaces_stored: matches!(source, Source::Document(_)),
        source: Some(source),
        options: Some(options.clone()),
        page_size: PAGE_SIZE,
        page_token: String::new(),
        known_fingerprint: String::new(),
    };
    loop {
        let page = client
            .call_analysis(message.clone(), |mut analysis, request| async move {
                analysis.validate_task(request).await
            })
            .await?;
        found.findings.extend(page.findings);
        found.counts = page.counts.unwrap_or_default();
        if page.next_page_token.is_empty() {
            return Ok(found);
        }
        message.page_token = page.next_page_token;
    }
}
