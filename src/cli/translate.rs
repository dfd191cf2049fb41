//! `expertise translate`.

use std::process::ExitCode;

use super::{
    CliError, Format, document, guides,
    layout::{TableColumn, table},
    out::{self, print_array},
    wording,
};
use crate::{
    client::Client,
    config::{TaskRef, TranslateConfig},
    domain::{caller::Scope, ids::TaskId},
    proto::v1::{TranslationState, TranslationWork},
    translate::{self, TranslateError, TranslateSummary},
};

/// Translates. If the run has begun, prints its summary, also after an error.
pub async fn translate(settings: &TranslateConfig) -> Result<ExitCode, CliError> {
    let task = find_task(settings).await?;
    let mut summary = TranslateSummary::default();
    let mut progress = translate::progress_on_standard_error();
    let outcome = translate::run(settings, task, &mut summary, &mut *progress).await;
    drop(progress);
    if !outcome.as_ref().is_err_and(TranslateError::is_before_run) {
        let _ = out::print(&format!("{summary}\n"));
    }
    outcome?;
    Ok(if summary.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Lists what is to be translated.
pub async fn list_translation_work(
    settings: &TranslateConfig,
    format: Format,
) -> Result<(), CliError> {
    let task = find_task(settings).await?;
    let mut listed = Vec::new();
    translate::list_work(settings, task, |page| {
        listed.extend(page);
        Ok::<_, CliError>(())
    })
    .await?;
    if format == Format::Json {
        let listed = listed
            .iter()
            .map(|work| document::json("TranslationWork", work));
        return print_array(listed.collect::<Result<Vec<_>, _>>()?);
    }
    let is_outdated = |work: &&TranslationWork| work.state() == TranslationState::Outdated;
    let outdated = listed.iter().filter(is_outdated).count();
    let missing = listed.len() - outdated;
    if !listed.is_empty() {
        out::print(&table(COLUMNS, listed.iter().map(row).collect()))?;
    }
    out::print_error(&format!("{missing} missing, {outdated} outdated"));
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

const COLUMNS: [TableColumn; 5] = [
    TableColumn::Text("STATE"),
    TableColumn::Text("LANGUAGE"),
    TableColumn::Text("KIND"),
    TableColumn::Whole("GUID"),
    TableColumn::Text("TITLE"),
];

fn row(work: &TranslationWork) -> [String; 5] {
    let source = work.source.as_ref();
    let title = source.and_then(|source| source.title.as_ref().or(source.name.as_ref()));
    [
        wording::name(work.state().as_str_name(), "TRANSLATION_STATE_"),
        work.language.clone(),
        wording::name(work.kind().as_str_name(), "TRANSLATION_KIND_"),
        work.guid.clone(),
        title.map_or_else(String::new, |title| out::sanitize(title)),
    ]
}
