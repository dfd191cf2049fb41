//! The automatic translation process: lists what a server has to translate, translates
//! it with an engine, and writes it back.
//!
//! *Invariant:* an item is written whole or not at all, and never over a lock: the server
//! checks that in the transaction that writes it. So a run may be interrupted at any
//! time, and two may run at once.

mod engine;
mod html;
mod parts;
mod run;
mod work;

pub use self::{
    engine::EngineError,
    run::{TranslateSummary, list_work, run},
};
use crate::client::ConnectError;

/// Why a run ended before the work list did. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum TranslateError {
    #[error(transparent)]
    Service(#[from] ConnectError),
    #[error("the engine cannot be called: {0}")]
    Engine(#[from] reqwest::Error),
    #[error("{reason}: start {start} at {url}, or set another URL with --engine-url")]
    NoEngine {
        reason: EngineError,
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
