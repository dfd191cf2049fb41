//! `expertise diff`.

use std::{path::Path, process::ExitCode};

use clap::{Args, ValueHint};
use serde_json::json;

use super::{
    CliError, Format,
    changes::{self, Change},
    document,
    findings::{self, Findings},
    guide_file::GuideFile,
    guide_ref::{GuideArg, GuideRef},
    guides::{self, FoundGuide},
    imported::print_ignored,
    out::{print_either, print_error, print_json, print_note, print_text, sanitize, with_members},
    pairing::refuse_fixed_fields,
};
use crate::{
    client::Client,
    proto::v1::{AbsentSteps, ImportTaskRequest},
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct DiffArgs {
    /// A document, - for standard input, or a revision of a stored guide, by guid or name
    #[arg(
        value_name = "FILE|GUIDE@REVISION",
        value_hint = ValueHint::FilePath
    )]
    pub base: GuideArg,
    /// The state to compare with: the guide, or another revision of it [default: the current state of the guide]
    #[arg(value_name = "GUIDE[@REVISION]")]
    pub target: Option<GuideRef>,
    /// What an import would do with steps of the task that the document leaves out [default: refuse the document]
    #[arg(long, ignore_case = true)]
    pub absent_steps: Option<AbsentSteps>,
}

/// The exit code if an import would change something.
const EXIT_CHANGED: u8 = 1;

/// The exit code if the comparison failed.
pub(super) const EXIT_FAILED: u8 = 2;

/// Shows what an import of a document would change, or how two states of a stored guide differ. The
/// exit code says whether there are differences.
pub(super) async fn diff(
    client: &Client,
    args: &DiffArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let differs = match (&args.base, &args.target, args.absent_steps) {
        (GuideArg::File(file), None, absent_steps) => {
            diff_file(client, file, absent_steps, format).await?
        }
        (
            GuideArg::Stored(GuideRef {
                task,
                revision: None,
            }),
            None,
            _,
        ) => {
            return Err(CliError::Argument(format!(
                "there is no file {task}; to compare a revision of a guide with its current state, \
                 add the number or alias, such as @3"
            )));
        }
        (GuideArg::Stored(base), target, None) => {
            diff_stored(client, base, target.as_ref(), format).await?
        }
        (GuideArg::File(_), Some(_), _) | (GuideArg::Stored(_), _, Some(_)) => {
            return Err(CliError::Argument(
                "diff compares one document, possibly with --absent-steps, with the guide that it \
                 would change, or a revision with another state of its guide"
                    .to_owned(),
            ));
        }
    };
    Ok(match differs {
        true => ExitCode::from(EXIT_CHANGED),
        false => ExitCode::SUCCESS,
    })
}

/// Compares two states of a guide, by default with its current state.
async fn diff_stored(
    client: &Client,
    base: &GuideRef,
    target: Option<&GuideRef>,
    format: Format,
) -> Result<bool, CliError> {
    let base = guides::find_guide(client, base).await?;
    let target = match target {
        Some(target) => guides::find_guide(client, target).await?,
        None => FoundGuide::now(base.task),
    };
    if base.task != target.task {
        return Err(CliError::Argument(format!(
            "diff compares two states of one guide, but {} and {} are different guides",
            base.task, target.task
        )));
    }
    let before = base.read(client).await?.document;
    let after = target.read(client).await?.document;
    let changes = changes::between(&before, &after);
    let json = json!({
        "guid": base.task.to_string(),
        "name": guides::name(&after),
        "base": base.revision,
        "target": target.revision,
        "changes": changes,
    });
    print_either(format, &changes::text(&changes, 0), &json)?;
    Ok(!changes.is_empty())
}

async fn diff_file(
    client: &Client,
    path: &Path,
    absent_steps: Option<AbsentSteps>,
    format: Format,
) -> Result<bool, CliError> {
    let file = GuideFile::read(path)?;
    let stored = guides::read_imported(client, &file.document).await?;
    if let Some(stored) = &stored {
        refuse_fixed_fields(&file.document, &stored.document)?;
    }
    let message = ImportTaskRequest {
        document: Some(file.document.clone()),
        // Without the flag, omitted steps are shown as deleted.
        absent_steps: absent_steps.unwrap_or(AbsentSteps::Delete).into(),
        match_external_ids: true,
        ..ImportTaskRequest::default()
    };
    let mut answer = guides::dry_run(client, message).await?;
    let planned = answer.document.take().unwrap_or_default();
    let changes = match &stored {
        Some(stored) => changes::between(&stored.document, &planned),
        None => Vec::new(),
    };
    let found = match &stored {
        Some(_) => Findings::compared(client, planned.clone()).await,
        None => Findings::for_import(client, file.document.clone()).await,
    };
    let found = Some(found);
    if format == Format::Json {
        let response = document::json("ImportTaskResponse", &answer);
        let guid = stored.as_ref().map(|it| guides::guid(&it.document));
        let response = with_members(response, json!({"guid": guid, "changes": changes}));
        print_json(&with_members(response, findings::json(&found)))?;
        return Ok(stored.is_none() || !changes.is_empty());
    }
    if stored.is_none() {
        let name = sanitize(guides::name(&planned));
        print_text(&format!("+ task {name}, with every step\n"))?;
    }
    print_text(&changes::text(&changes, 0))?;
    if absent_steps.is_none() && changes.iter().any(Change::removes_step) {
        print_error(
            "an import refuses this document because it leaves out steps: use --absent-steps keep \
             or --absent-steps delete",
        );
    }
    print_ignored(&answer.ignored_paths);
    print_note(&findings::text(&found));
    Ok(stored.is_none() || !changes.is_empty())
}
