//! `expertise diff`.

use std::process::ExitCode;

use console::Term;
use serde_json::json;

use super::{
    CliError,
    changes::{self, Change},
    field_line::SentText,
    findings::Findings,
    out::{escape_formatting, print, print_error, sanitize},
    plan::{
        IgnoredStepFields, LeftOutFields, Matching, Plan, TaskIds, match_to_stored,
        name_new_subtask_steps,
    },
    transfer::{self, ApplyAdvice},
};
use crate::{
    client::{CallError, Client},
    config::{DiffArgs, Format},
    proto::v1::{AbsentSteps, ImportTaskRequest, TaskDocument},
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
    if guid.is_empty() {
        let ignored_paths = check(client, args, &text, &document).await?;
        let mut planned = document.clone();
        name_new_subtask_steps(client, &mut planned).await;
        let difference = Difference {
            created: true,
            changes: Vec::new(),
            ignored_paths,
            ignored_of_steps: IgnoredStepFields::between(&document, None, &planned),
            planned,
            refuses_absent_steps: false,
        };
        return show(client, &difference, format).await;
    }
    let stored = transfer::export(client, &guid).await;
    let stored = stored.map_err(|error| {
        let apply = ApplyAdvice {
            command: "apply DIR --dry-run",
            effect: "compares it with the task of its name",
        };
        transfer::with_advice(client, error, &guid, &apply)
    })?;
    let mut matched = document.clone();
    match_to_stored(&mut matched, &stored, Matching::ById, &mut TaskIds::new());
    let plan = Plan {
        fields: LeftOutFields::Keep,
        // Without the flag, steps that are left out are shown as deleted.
        steps: args.absent_steps.unwrap_or_default(),
    };
    let mut planned = plan.apply(&matched, &stored);
    let ignored_paths = check(client, args, &text, &document).await?;
    name_new_subtask_steps(client, &mut planned).await;
    let changes = changes::between(&stored, &planned)?;
    let difference = Difference {
        created: false,
        changes,
        ignored_paths,
        ignored_of_steps: IgnoredStepFields::between(&matched, Some(&stored), &planned),
        planned,
        refuses_absent_steps: args.absent_steps.is_none(),
    };
    show(client, &difference, format).await
}

/// What an import would do.
struct Difference {
    created: bool,
    changes: Vec<Change>,
    planned: TaskDocument,
    ignored_paths: Vec<String>,
    /// What explains ignored fields of steps, in place of their paths.
    ignored_of_steps: IgnoredStepFields,
    /// Whether the import would refuse a document that leaves out steps.
    refuses_absent_steps: bool,
}

/// Has the server check the import, and returns what it would ignore. Without
/// `--absent-steps` the server keeps left-out steps, so that it does not refuse the check.
async fn check(
    client: &Client,
    args: &DiffArgs,
    text: &str,
    document: &TaskDocument,
) -> Result<Vec<String>, CallError> {
    let steps = args.absent_steps.unwrap_or(AbsentSteps::Keep);
    let message = ImportTaskRequest {
        document: Some(document.clone()),
        absent_steps: i32::from(steps),
        validate_only: true,
        ..ImportTaskRequest::default()
    };
    let sent = SentText { text, document };
    let checked = transfer::import(client, message).await;
    Ok(checked
        .map_err(|error| sent.with_places(error))?
        .ignored_paths)
}

async fn show(
    client: &Client,
    difference: &Difference,
    format: Format,
) -> Result<ExitCode, CliError> {
    let Difference {
        created,
        changes,
        planned,
        ignored_paths,
        ignored_of_steps,
        refuses_absent_steps,
    } = difference;
    let findings = match created {
        true => Findings::of(client, planned.clone()).await,
        false => Findings::compared(client, planned.clone()).await,
    };
    match format {
        Format::Json => {
            let report = json!({
                "guid": transfer::guid(planned),
                "name": transfer::name(planned),
                "created": created,
                "changes": changes,
                "ignored_paths": ignored_paths,
                "findings": findings.as_ref().ok(),
                "counts": findings.as_ref().ok().map(Findings::counts),
                "analysis_error": findings.as_ref().err(),
            });
            print(&escape_formatting(&format!("{report}\n")))?;
        }
        Format::Text => {
            if *created {
                let name = sanitize(transfer::name(planned));
                print(&format!("+ task {name}, with every step\n"))?;
            }
            print(&changes::text(changes, &Term::stdout(), 0))?;
            let leaves_out = changes.iter().any(Change::removes_step);
            if leaves_out && *refuses_absent_steps {
                print_error(
                    "an import refuses this document, as it leaves out steps: use --absent-steps \
                     keep or --absent-steps delete",
                );
            }
            for line in ignored_of_steps.lines(ignored_paths) {
                print_error(&format!("ignored: {line}"));
            }
            match &findings {
                Ok(findings) => findings.text(&Term::stderr()).lines().for_each(print_error),
                Err(error) => print_error(&format!("not analysed: {error}")),
            }
        }
    }
    Ok(match *created || !changes.is_empty() {
        true => ExitCode::from(EXIT_CHANGED),
        false => ExitCode::SUCCESS,
    })
}
