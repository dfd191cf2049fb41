//! What became of the work.

use std::fmt;

use crate::proto::v1::TranslationResult;

/// How many items ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Written.
    pub written: u64,
    /// Left alone, as a person has locked the language since the list was made.
    pub locked: u64,
    /// Left for the next run, as the source text has changed meanwhile.
    pub stale: u64,
    /// Deleted meanwhile.
    pub not_found: u64,
    /// Not translated or not taken by the service.
    pub failed: u64,
}

impl Summary {
    /// Counts an answer of the service; `false` when it is none.
    pub(super) fn count(&mut self, result: TranslationResult) -> bool {
        let counter = match result {
            TranslationResult::Written => &mut self.written,
            TranslationResult::SkippedLocked => &mut self.locked,
            TranslationResult::Stale => &mut self.stale,
            TranslationResult::NotFound => &mut self.not_found,
            TranslationResult::Unspecified => return false,
        };
        *counter += 1;
        true
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            written,
            locked,
            stale,
            not_found,
            failed,
        } = self;
        write!(
            f,
            "written {written}, skipped as locked {locked}, stale {stale}, \
             not found {not_found}, failed {failed}"
        )
    }
}

/// An item that was not translated. A display is one line without its texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed {guid} {language}: {reason}")]
pub struct Failure {
    /// The task or step.
    pub guid: String,
    /// The language that it is still missing.
    pub language: String,
    /// Why.
    pub reason: String,
}
