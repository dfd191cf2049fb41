//! `expertise translate`.

use std::process::ExitCode;

use super::{
    CliError, Format, guides,
    out::{self, print_list},
    wording,
};
use crate::{
    client::Client,
    config::{TaskRef, TranslateConfig},
    domain::{caller::Scope, ids::TaskId},
    proto::v1::{TranslationState, TranslationWork},
    translate,
};

/// Translates, and prints a summary even if the run ends early.
pub async fn translate(settings: &TranslateConfig) -> Result<ExitCode, CliError> {
    let (client, task) = connect(settings).await?;
    let run = translate::run(client, settings, task).await;
    let (summary, outcome) = run.map_err(CliError::Failed)?;
    let _ = out::print(&format!("{summary}\n"));
    outcome.map_err(CliError::Failed)?;
    Ok(match summary.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Lists missing and outdated texts.
pub async fn list_translation_work(
    settings: &TranslateConfig,
    format: Format,
) -> Result<(), CliError> {
    let (client, task) = connect(settings).await?;
    let listed = translate::list_work(&client, settings, task).await;
    let listed = listed.map_err(CliError::Failed)?;
    let is_outdated = |work: &&TranslationWork| work.state() == TranslationState::Outdated;
    let outdated = listed.iter().filter(is_outdated).count();
    let missing = listed.len() - outdated;
    let columns = ["STATE", "LANGUAGE", "KIND", "GUID", "TITLE"];
    print_list(format, "TranslationWork", &listed, columns, row)?;
    if format == Format::Text {
        out::print_error(&format!("{missing} missing, {outdated} outdated"));
    }
    Ok(())
}

/// A client, and the task that the settings name, if any.
async fn connect(settings: &TranslateConfig) -> Result<(Client, Option<TaskId>), CliError> {
    let task = &settings.translation.task;
    let scopes: &[Scope] = match task {
        Some(TaskRef::Name(_)) => &[Scope::Read, Scope::Translate],
        Some(TaskRef::Id(_)) | None => &[Scope::Translate],
    };
    let client = Client::new(&settings.connection, scopes)?;
    let task = match task {
        Some(task) => Some(guides::find(&client, task).await?),
        None => None,
    };
    Ok((client, task))
}

fn row(work: &TranslationWork) -> [String; 5] {
    let source = work.source.as_ref();
    let title = source.and_then(|source| source.title.as_ref().or(source.name.as_ref()));
    [
        wording::name(work.state().as_str_name(), "TRANSLATION_STATE_"),
        work.language.clone(),
        wording::name(work.kind().as_str_name(), "TRANSLATION_KIND_"),
        work.guid.clone(),
        title.cloned().unwrap_or_default(),
    ]
}
