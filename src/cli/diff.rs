//! `expertise diff`.

use std::process::ExitCode;

use console::Term;
use serde_json::json;

use super::{
    CliError,
    changes::{self, Change},
    field_line::SentText,
    findings::Findings,
    ignored_step_fields::ignored_lines,
    out::{escape_formatting, print, print_error, sanitize},
    transfer::{self, ApplyAdvice},
};
use crate::{
    client::Client,
    config::{DiffArgs, Format},
    proto::v1::{AbsentSteps, ImportTaskRequest},
};

/// Exit code when an import would change something.
const EXIT_CHANGED: u8 = 1;

/// Exit code when it is not known what an import would change.
pub(super) const EXIT_FAILED: u8 = 2;

/// Shows what an import of a document would change. The exit code says whether it would
/// change anything.
pub(super) async fn diff(
    client: &Client,
    args: &DiffArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let (text, document) = transfer::read_text_and_document(&args.file)?;
    let guid = transfer::guid(&document).to_owned();
    let stored = match guid.as_str() {
        "" => None,
        guid => Some(transfer::export(client, guid).await.map_err(|error| {
            let apply = ApplyAdvice {
                command: "apply DIR --dry-run",
                effect: "compares it with the task of its name",
            };
            transfer::with_advice(client, error, guid, &apply)
        })?),
    };
    let message = ImportTaskRequest {
        document: Some(document.clone()),
        // Without the flag, steps that are left out are shown as deleted.
        absent_steps: args.absent_steps.unwrap_or(AbsentSteps::Delete).into(),
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
    let name = transfer::name(&planned);
    match format {
        Format::Json => {
            let report = json!({
                "guid": guid,
                "name": name,
                "created": stored.is_none(),
                "changes": changes,
                "ignored_paths": answer.ignored_paths,
                "findings": findings.as_ref().ok(),
                "counts": findings.as_ref().ok().map(Findings::counts),
                "analysis_error": findings.as_ref().err(),
            });
            print(&escape_formatting(&format!("{report}\n")))?;
        }
        Format::Text => {
            if stored.is_none() {
                print(&format!("+ task {}, with every step\n", sanitize(name)))?;
            }
            print(&changes::text(&changes, &Term::stdout(), 0))?;
            if args.absent_steps.is_none() && changes.iter().any(Change::removes_step) {
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
    Ok(match stored.is_none() || !changes.is_empty() {
        true => ExitCode::from(EXIT_CHANGED),
        false => ExitCode::SUCCESS,
    })
}
