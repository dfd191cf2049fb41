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

/// Translates, and prints the summary of a run that has begun, also if it ends early.
pub async fn translate(settings: &TranslateConfig) -> Result<ExitCode, CliError> {
    let task = find_task(settings).await?;
    let (summary, outcome) = translate::run(settings, task).await?;
    let _ = out::print(&format!("{summary}\n"));
    outcome?;
    Ok(match summary.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Lists what is to be translated.
pub async fn list_translation_work(
    settings: &TranslateConfig,
    format: Format,
) -> Result<(), CliError> {
    let task = find_task(settings).await?;
    let listed = translate::list_work(settings, task).await?;
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

/// The task that the settings name, if any.
async fn find_task(settings: &TranslateConfig) -> Result<Option<TaskId>, CliError> {
    Ok(match &settings.translation.task {
        Some(TaskRef::Id(task)) => Some(*task),
        Some(task @ TaskRef::Name(_)) => {
            let client = Client::connect(&settings.connection, &[Scope::Read]).await?;
            Some(guides::find(&client, task).await?)
        }
        None => None,
    })
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
