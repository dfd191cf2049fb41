//! Checks files without a server.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::{
    cli::{CliError, findings::Findings, guide_file::GuideFile, out::sanitize},
    client::MAX_MESSAGE_BYTES,
    domain::{
        Error,
        decide::WriteContext,
        ids::AccountId,
        import::Document,
        time::Timestamp,
        validation::{DocumentSet, Rule},
        violation::Violations,
    },
    messages::{decode, encode, sent_document::decode_unstored},
    proto::v1::{Severity, ValidationOptions},
};

/// Checks files. Subtask steps are followed between them.
pub(super) fn check_files(
    files: &[&GuideFile],
    options: &ValidationOptions,
    is_whole_account: bool,
) -> Result<Vec<Result<Findings, CliError>>, CliError> {
    let options = decode::all(|violations: &mut Violations| {
        let field = violations.at("options");
        Some(decode::options::options(Some(options.clone()), field))
    })
    .map_err(|violations| invalid("the options are refused", &violations, None))?;
    let context = WriteContext {
        account: AccountId::NONE,
        subject: String::new(),
        now: Timestamp(0),
        new_id: Uuid::now_v7,
        max_message_bytes: MAX_MESSAGE_BYTES,
        automatic_revisions: 0,
        keeps_deleted_tasks: false,
    };
    let mut documents = Vec::with_capacity(files.len());
    let decoded = files.iter().map(|file| {
        let name = file.path.display().to_string();
        decoded(file).map(|document| documents.push((name, document)))
    });
    let decoded: Vec<Result<(), CliError>> = decoded.collect();
    let (set, tasks) = DocumentSet::new(documents, is_whole_account, &context);
    let mut tasks = tasks.into_iter();
    let check = |file: &GuideFile, task: Result<_, Error>| {
        let found = task.and_then(|task| set.validate(task, options.clone()));
        let found = found.map_err(|error| match error {
            Error::Invalid(violations) => refused(&violations, file),
            error => CliError::Failed(error.to_string()),
        })?;
        Ok(Findings {
            document: file.document.clone(),
            file: file.text.clone(),
            listed: found.findings.into_iter().map(encode::finding).collect(),
            counts: encode::finding_counts(found.counts),
            unchecked: found.unchecked,
            ..Findings::default()
        })
    };
    let checked = files.iter().zip(decoded);
    let checked = checked.map_while(|(file, decoded)| match decoded {
        Ok(()) => Some(check(file, tasks.next()?)),
        Err(error) => Some(Err(error)),
    });
    Ok(checked.collect())
}

/// The document of a file, which has no duplicate ids.
pub(super) fn decoded(file: &GuideFile) -> Result<Document, CliError> {
    let decoded = decode_unstored(file.document.clone());
    let checked = decoded.check_ids();
    checked.map_err(|violations| refused(&violations, file))?;
    Ok(decoded)
}

/// Why an import would refuse the document.
fn refused(violations: &Violations, file: &GuideFile) -> CliError {
    invalid("an import would refuse it", violations, Some(file))
}

/// An error with one line per violation.
fn invalid(error: &str, violations: &Violations, file: Option<&GuideFile>) -> CliError {
    let kept = violations.kept();
    let lines = kept.iter().map(|violation| {
        let (path, description) = (&violation.path, &violation.description);
        let place = file
            .map(|file| file.describe_place(path))
            .unwrap_or_default();
        let colon = if place.is_empty() { "" } else { ": " };
        sanitize(&format!("  {place}{colon}{path}: {description}"))
    });
    let more = match violations.total() - kept.len() {
        0 => None,
        more => Some(format!("  and {more} more")),
    };
    let lines: Vec<String> = lines.chain(more).collect();
    CliError::Failed(format!("{error}:\n{}", lines.join("\n")))
}

/// The paths of the unreachable steps and tasks of a document.
pub(in crate::cli) fn unreachable_paths(file: &GuideFile) -> Result<BTreeSet<String>, CliError> {
    let options = ValidationOptions {
        min_severity: Severity::Error.into(),
        ..ValidationOptions::default()
    };
    let rules = [Rule::Unreachable, Rule::NeverVisible].map(|rule| rule.text().id);
    let mut paths = BTreeSet::new();
    for checked in check_files(&[file], &options, false)? {
        let findings = checked?.listed.into_iter();
        let unreachable = findings.filter(|finding| rules.contains(&finding.rule.as_str()));
        // The finding of a task is at its dependencies.
        paths.extend(unreachable.map(|finding| finding.path.replace(".dependencies", "")));
    }
    Ok(paths)
}
