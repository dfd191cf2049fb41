//! The automatic translation process: lists what a server has to translate,
//! asks an engine, writes back.
//!
//! *Invariant:* an item is written whole or not at all, and never over a lock:
//! whether it may be written is the server's to say, in the transaction that
//! writes it. So a run may be ended at any moment, and two may run at once.

mod apertium;
mod engine;
mod entity;
pub mod html;
mod http;
mod instruction;
mod libretranslate;
mod passage;
mod progress;
mod run;
mod service;
mod summary;
mod translator;
mod work;

use tokio::signal;

use self::{
    apertium::Apertium, libretranslate::LibreTranslate, run::Run, service::Service,
    translator::Translator,
};
pub use self::{
    engine::{Engine, EngineError},
    instruction::TEXT_MEMBERS,
    progress::{Progress, of_standard_error},
    summary::{Failure, Summary},
};
use crate::{
    client::UnusableService,
    config::{EngineKind, TranslateConfig},
};

/// Why a run ended before the work list did. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server cannot be called.
    #[error(transparent)]
    Service(#[from] UnusableService),
    /// The engine cannot be called.
    #[error("the engine cannot be called: {0}")]
    Engine(#[from] reqwest::Error),
    /// The server does not say what there is to do.
    #[error("the server does not list the work: {0}")]
    List(String),
    /// The server takes no translation from this caller.
    #[error("the server takes no translations: {0}")]
    Write(String),
    /// The engine is down.
    #[error("the engine did not answer for {0} items in a row: the rest is left for the next run")]
    EngineSilent(u32),
    /// Somebody ended it.
    #[error("interrupted: the rest is left for the next run")]
    Interrupted,
}

/// Translates what there is to translate. Everything that became of it is in
/// the summary, when the run ends early too.
pub async fn run(
    config: &TranslateConfig,
    summary: &mut Summary,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let mut run = Run {
        service: Service::new(config)?,
        translator: Translator::new(
            engine(config)?,
            config.source_language.as_str(),
            config.parallel,
            config.connection.retry,
        ),
        parallel: config.parallel,
        summary,
        progress,
    };
    tokio::select! {
        outcome = run.finish() => outcome,
        Ok(()) = signal::ctrl_c() => Err(RunError::Interrupted),
    }
}

fn engine(config: &TranslateConfig) -> Result<Box<dyn Engine>, reqwest::Error> {
    let (url, timeout) = (config.engine_url.as_str(), config.timeout);
    Ok(match config.engine {
        EngineKind::LibreTranslate => {
            let key = config.engine_api_key.clone();
            Box::new(LibreTranslate::new(url, key, timeout)?)
        }
        EngineKind::Apertium => Box::new(Apertium::new(url, timeout)?),
    })
}
