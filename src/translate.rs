//! The automatic translation process: lists what a server has to translate, translates
//! it with an engine, and writes it back.
//!
//! *Invariant:* an item is written whole or not at all, and never over a lock: the server
//! checks that in the transaction that writes it. So a run may be interrupted at any
//! time, and two may run at once.

mod apertium;
mod character_reference;
mod chunking;
mod engine;
pub mod html;
mod instruction;
mod libretranslate;
mod progress;
mod run;
mod service;
mod translator;
mod work;

use tokio::signal;

use self::{
    apertium::Apertium, libretranslate::LibreTranslate, run::TranslateRun,
    service::TranslationClient, translator::Translator,
};
pub use self::{
    engine::{Engine, EngineError},
    instruction::TEXT_MEMBERS,
    progress::{TranslateFailure, TranslateProgress, TranslateSummary, progress_on_standard_error},
};
use crate::{
    client::ConnectError,
    config::{EngineKind, TranslateConfig, TranslationConfig},
    domain::ids::TaskId,
    proto::v1::TranslationWork,
};

/// Why a run ended before the work list did. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum TranslateError {
    /// The server cannot be called.
    #[error(transparent)]
    Service(#[from] ConnectError),
    /// The engine cannot be called.
    #[error("the engine cannot be called: {0}")]
    Engine(#[from] reqwest::Error),
    /// The engine is not there.
    #[error("{reason}: start {start} at {url}, or set another URL with --engine-url")]
    NoEngine {
        /// What happened.
        reason: EngineError,
        /// What to start.
        start: &'static str,
        /// Where it is expected.
        url: String,
    },
    /// The work list cannot be read.
    #[error("the server does not list the work: {0}")]
    List(String),
    /// The server refuses translations of this caller.
    #[error("the server refuses translations of this caller: {0}")]
    Write(String),
    /// The engine is down.
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

    /// Whether nothing was read or written yet.
    pub fn is_before_run(&self) -> bool {
        match self {
            Self::Service(_) | Self::Engine(_) | Self::NoEngine { .. } => true,
            Self::List(_) | Self::Write(_) | Self::EngineUnavailable(_) | Self::Interrupted => {
                false
            }
        }
    }
}

/// Translates what there is to translate, of this task if there is one. The summary has all
/// results, also when the run ends early.
pub async fn run(
    config: &TranslateConfig,
    task: Option<TaskId>,
    summary: &mut TranslateSummary,
    progress: &mut dyn TranslateProgress,
) -> Result<(), TranslateError> {
    let translation = &config.translation;
    let mut run = TranslateRun {
        client: TranslationClient::new(config, task)?,
        translator: Translator::new(
            engine(translation)?,
            translation.source_language.as_str(),
            translation.parallel,
            config.connection.retry,
        ),
        parallel: translation.parallel,
        summary,
        progress,
    };
    let probed_run = async {
        run.translator
            .probe()
            .await
            .map_err(|reason| TranslateError::NoEngine {
                reason,
                start: program(translation.engine),
                url: translation.engine_url().to_owned(),
            })?;
        run.translate_all().await
    };
    tokio::select! {
        outcome = probed_run => outcome,
        Ok(()) = signal::ctrl_c() => Err(TranslateError::Interrupted),
    }
}

/// Lists what there is to translate, of this task if there is one, page by page. No engine is
/// needed.
pub async fn list_work<E: From<TranslateError>>(
    config: &TranslateConfig,
    task: Option<TaskId>,
    mut handle: impl FnMut(Vec<TranslationWork>) -> Result<(), E>,
) -> Result<(), E> {
    let client = TranslationClient::new(config, task).map_err(TranslateError::from)?;
    let mut page_token = String::new();
    loop {
        let page = client.list(&page_token).await;
        let page = page.map_err(|status| TranslateError::List(service::describe(&status)))?;
        handle(page.work)?;
        if page.next_page_token.is_empty() {
            return Ok(());
        }
        page_token = page.next_page_token;
    }
}

/// The program of an engine, and how it is started.
fn program(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::LibreTranslate => {
            "LibreTranslate (`libretranslate`, or its container image libretranslate/libretranslate)"
        }
        EngineKind::Apertium => "Apertium's APY (`apertium-apy`)",
    }
}

fn engine(config: &TranslationConfig) -> Result<Box<dyn Engine>, reqwest::Error> {
    let (url, timeout) = (config.engine_url(), config.timeout);
    Ok(match config.engine {
        EngineKind::LibreTranslate => {
            let key = config.engine_api_key.clone();
            Box::new(LibreTranslate::new(url, key, timeout)?)
        }
        EngineKind::Apertium => Box::new(Apertium::new(url, timeout)?),
    })
}
