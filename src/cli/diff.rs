//! `expertise diff`.

use std::{path::Path, process::ExitCode};

use console::Term;
use serde_json::json;

use super::{
    CliError,
    changes::{self, Change},
    field_line::SentText,
    findings::Findings,
    ignored_step_fields::ignored_lines,
    import::has_same_paths,
    out::{escape_formatting, print, print_error, sanitize},
    revisions,
    tasks::{self, FoundGuide},
    transfer::{self, ApplyAdvice},
};
use crate::{
    client::Client,
    config::{DiffArgs, Format, GuideArg, GuideRef},
    proto::v1::{AbsentSteps, ImportTaskRequest},
};

/// Exit code when an import would change something.
const EXIT_CHANGED: u8 = 1;

/// Exit code when it is not known what an import would change.
pub(super) const EXIT_FAILED: u8 = 2;

/// Shows what an import of a document would change, or how two states of a stored guide
/// differ. The exit code says whether there are differences.
pub(super) async fn diff(
    client: &Client,
    args: &DiffArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let DiffArgs {
        base,
        target,
        absent_steps,
    } = args;
    match (base, target, absent_steps) {
        (GuideArg::File(file), None, absent_steps) => {
            diff_file(client, file, *absent_steps, format).await
        }
        (GuideArg::Stored(GuideRef::Now(task)), None, _) => Err(CliError::Argument(format!(
            "there is no file {task}; to compare a revision of a guide with what it is now, add \
             its number or alias, such as @3"
        ))),
        (GuideArg::Stored(base), target, None) => {
            diff_stored(client, base, target.as_ref(), format).await
        }
        (GuideArg::File(_), Some(_), _) | (GuideArg::Stored(_), _, Some(_)) => {
            Err(CliError::Argument(
                "a document is compared with the guide that an import of it would change, and a \
                 guide with a revision of it, which takes no --absent-steps"
                    .to_owned(),
            ))
        }
    }
}

/// Compares two states of a guide, by default with the one that it is in now.
async fn diff_stored(
    client: &Client,
    base: &GuideRef,
    target: Option<&GuideRef>,
    format: Format,
) -> Result<ExitCode, CliError> {
    let base = tasks::find_guide(client, base).await?;
    let target = match target {
        Some(target) => tasks::find_guide(client, target).await?,
        None => FoundGuide::now(base.task),
    };
    if base.task != target.task {
        return Err(CliError::Argument(format!(
            "two states of one guide are compared, and {} and {} are two guides",
            base.task, target.task
        )));
    }
    let before = revisions::document(client, &base).await?;
    let after = revisions::document(client, &target).await?;
    let changes = changes::between(&before, &after)?;
    match format {
        Format::Json => print_json(&json!({
            "guid": base.task.to_string(),
            "name": transfer::name(&after),
            "base": base.revision,
            "target": target.revision,
            "changes": changes,
        }))?,
        Format::Text => print(&changes::text(&changes, &Term::stdout(), 0))?,
    }
    Ok(exit_code(!changes.is_empty()))
}

fn print_json(report: &serde_json::Value) -> Result<(), CliError> {
    print(&escape_formatting(&format!("{report}\n")))
}

fn exit_code(differs: bool) -> ExitCode {
    match differs {
        true => ExitCode::from(EXIT_CHANGED),
        false => ExitCode::SUCCESS,
    }
}

async fn diff_file(
    client: &Client,
    file: &Path,
    absent_steps: Option<AbsentSteps>,
    format: Format,
) -> Result<ExitCode, CliError> {
    let (text, document) = transfer::read_text_and_document(file)?;
    let guid = tasks::guid_of_imported(client, &document).await?;
    let stored = match guid.as_str() {
        "" => None,
        guid => Some(transfer::export(client, guid).await.map_err(|error| {
            let apply = ApplyAdvice {
                command: "apply DIR --dry-run",
                effect: "compares it with the task that has its external id or its name",
            };
            transfer::with_advice(client, error, guid, &apply)
        })?),
    };
    let message = ImportTaskRequest {
        document: Some(document.clone()),
        // Without the flag, steps that are left out are shown as deleted.
        absent_steps: absent_steps.unwrap_or(AbsentSteps::Delete).into(),
        match_external_ids: true,
        ..ImportTaskRequest::default()
    };
    let sent = SentText {
        text: &text,
        document: &document,
    };
    let answer = transfer::dry_run(client, message).await;
    let answer = answer.map_err(|error| sent.with_places(error))?;
    let planned = answer.document.unwrap_or_default();
    let changes = match &stored {
        Some(stored) => changes::between(stored, &planned)?,
        None => Vec::new(),
    };
    let findings = match &stored {
        Some(_) => Findings::compared(client, planned.clone()).await,
        None => Findings::of(client, document.clone()).await,
    };
    let findings = match stored.is_none() || has_same_paths(&planned, &document) {
        true => findings.map(|found| found.with_places_in(sent)),
        false => findings,
    };
    let name = transfer::name(&planned);
    match format {
        Format::Json => {
            print_json(&json!({
                "guid": guid,
                "name": name,
                "created": stored.is_none(),
                "changes": changes,
                "ignored_paths": answer.ignored_paths,
                "findings": findings.as_ref().ok(),
                "counts": findings.as_ref().ok().map(Findings::counts),
                "analysis_error": findings.as_ref().err(),
            }))?;
        }
        Format::Text => {
            if stored.is_none() {
                print(&format!("+ task {}, with every step\n", sanitize(name)))?;
            }
            print(&changes::text(&changes, &Term::stdout(), 0))?;
            if absent_steps.is_none() && changes.iter().any(Change::removes_step) {
                print_error(
                    "an import refuses this document, as it leaves out steps: use --absent-steps \
                     keep or --absent-steps delete",
                );
            }
            for line in ignored_lines(&answer.ignored_paths, &document, &planned) {
                print_error(&format!("ignored: {line}"));
            }
            match &findings {
                Ok(findings) => findings.text(&Term::stderr()).lines().for_each(print_error),
                Err(error) => print_error(&format!("not analysed: {error}")),
            }
        }
    }
    Ok(exit_code(stored.is_none() || !changes.is_empty()))
}
