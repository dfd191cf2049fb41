//! The automatic translation process: lists what a server has to translate, translates
//! it with an engine, and writes it back.
//!
//! *Invariant:* an item is written whole or not at all, and never over a lock: the server
//! checks that in the transaction that writes it. So a run may be interrupted at any
//! time, and two may run at once.

mod character_reference;
mod chunking;
mod engine;
pub mod html;
mod instruction;
mod progress;
mod run;
mod translator;
mod work;

use tokio::signal;

pub use self::{engine::EngineError, instruction::TEXT_MEMBERS, progress::TranslateSummary};
use self::{
    progress::TranslateProgress,
    run::{TranslateRun, WorkList},
    translator::Translator,
};
use crate::{
    client::ConnectError,
    config::{EngineKind, TranslateConfig},
    domain::ids::TaskId,
    proto::v1::TranslationWork,
};

/// Why a run ended before the work list did. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum TranslateError {
    /// The server cannot be called.
    #[error(transparent)]
    Service(#[from] ConnectError),
    #[error("the engine cannot be called: {0}")]
    Engine(#[from] reqwest::Error),
    #[error("{reason}: start {start} at {url}, or set another URL with --engine-url")]
    NoEngine {
        reason: EngineError,
        /// What to start.
        start: &'static str,
        url: String,
    },
    #[error("the server does not list the work: {0}")]
    List(String),
    #[error("the server refuses translations of this caller: {0}")]
    Write(String),
    #[error("the engine did not answer for {0} items in a row: the rest is left for the next run")]
    EngineUnavailable(u32),
    /// SIGINT ended it.
    #[error("interrupted: the rest is left for the next run")]
    Interrupted,
}

impl TranslateError {
    /// Whether no run is possible until a setting is changed.
    pub fn is_wrong_setting(&self) -> bool {
        matches!(self, Self::Service(error) if error.is_wrong_setting())
    }
}

/// Translates what there is to translate, of this task if there is one. Returns all results, and why
/// the run ended early, if it did. Fails if it cannot begin.
pub async fn run(
    config: &TranslateConfig,
    task: Option<TaskId>,
) -> Result<(TranslateSummary, Result<(), TranslateError>), TranslateError> {
    let list = WorkList::new(config, task)?;
    let translator = Translator::new(config)?;
    let probed = translator.engine.probe().await;
    probed.map_err(|reason| TranslateError::NoEngine {
        reason,
        start: match config.translation.engine {
            EngineKind::LibreTranslate => {
                "LibreTranslate (`libretranslate`, or its container image \
                 libretranslate/libretranslate)"
            }
            EngineKind::Apertium => "Apertium's APY (`apertium-apy`)",
        },
        url: config.translation.engine_url().to_owned(),
    })?;
    let mut run = TranslateRun {
        list,
        translator,
        parallel: config.translation.parallel,
        progress: TranslateProgress::new(),
    };
    let outcome = tokio::select! {
        outcome = run.translate_all() => outcome,
        Ok(()) = signal::ctrl_c() => Err(TranslateError::Interrupted),
    };
    Ok((run.progress.summary, outcome))
}

/// Lists what there is to translate, of this task if there is one. No engine is needed.
pub async fn list_work(
    config: &TranslateConfig,
    task: Option<TaskId>,
) -> Result<Vec<TranslationWork>, TranslateError> {
    let mut list = WorkList::new(config, task)?;
    let mut listed = Vec::new();
    while let Some(page) = list.next_page().await? {
        listed.extend(page);
    }
    Ok(listed)
}
