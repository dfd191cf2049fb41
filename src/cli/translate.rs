//! `expertise translate`.

use std::process::ExitCode;

use super::out;
use crate::{
    config::TranslateConfig,
    translate::{self, RunError, Summary},
};

/// Translates; the summary is said however the run ends.
pub async fn translate(settings: &TranslateConfig) -> Result<ExitCode, RunError> {
    let mut summary = Summary::default();
    let mut progress = translate::of_standard_error();
    let outcome = translate::run(settings, &mut summary, &mut *progress).await;
    drop(progress);
    out::say(&format!("{summary}\n"));
    outcome?;
    Ok(if summary.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
