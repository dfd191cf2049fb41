//! `expertise translate`.

use std::process::ExitCode;

use super::{CliError, out, tasks};
use crate::{
    client::Client,
    config::{TaskRef, TranslateConfig},
    domain::caller::Scope,
    translate::{self, TranslateError, TranslateSummary},
};

/// Translates. If the run has begun, prints its summary, also after an error.
pub async fn translate(settings: &TranslateConfig) -> Result<ExitCode, CliError> {
    let task = match &settings.task {
        Some(TaskRef::Id(task)) => Some(*task),
        Some(task @ TaskRef::Name(_)) => {
            let client = Client::connect(&settings.connection, &[Scope::Read]).await?;
            Some(tasks::find(&client, task).await?)
        }
        None => None,
    };
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
