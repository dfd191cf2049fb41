//! `expertise translate`.

use std::process::ExitCode;

use super::out;
use crate::{
    config::TranslateConfig,
    translate::{self, TranslateError, TranslateSummary},
};

/// Translates, and prints the summary however the run ends.
pub async fn translate(settings: &TranslateConfig) -> Result<ExitCode, TranslateError> {
    let mut summary = TranslateSummary::default();
    let mut progress = translate::progress_on_standard_error();
    let outcome = translate::run(settings, &mut summary, &mut *progress).await;
    drop(progress);
    let _ = out::print(&format!("{summary}\n"));
    outcome?;
    Ok(if summary.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
