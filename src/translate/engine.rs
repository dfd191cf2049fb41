//! Translation engines.

use std::time::Duration;

/// A translation engine.
#[tonic::async_trait]
pub trait Engine: Send + Sync {
    /// How many texts a request may carry, at least one.
    fn texts_per_request(&self) -> usize;

    /// Asks the engine something cheap, once. Any answer shows that it is there.
    async fn probe(&self) -> Result<(), EngineError>;

    /// Translates plain texts from one language into another, both BCP-47 tags. The
    /// answer has as many texts, in the same order.
    async fn translate(
        &self,
        texts: &[String],
        from: &str,
        to: &str,
    ) -> Result<Vec<String>, EngineError>;
}

/// Why a request failed. It is displayed on one line, without the texts, the API key or the
/// address of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It is down, slow or busy. A retry may succeed.
    #[error("the engine does not answer: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
        /// The pause that the engine requests.
        retry_after: Option<Duration>,
    },
    /// The answer is not a translation.
    #[error("the engine's answer cannot be used: {0}")]
    Unusable(&'static str),
    /// A retry would get the same answer.
    #[error("the engine refuses: {0}")]
    Refused(String),
}

/// Checks an answer: a text for each text, none of them blank or with U+0000.
pub(super) fn check_answer(asked: &[String], answered: &[String]) -> Result<(), EngineError> {
    if answered.len() != asked.len() {
        return Err(EngineError::Unusable("it has another number of texts"));
    }
    if answered.iter().any(|text| text.trim().is_empty()) {
        return Err(EngineError::Unusable("it has an empty text"));
    }
    if answered.iter().any(|text| text.contains('\0')) {
        return Err(EngineError::Unusable("it has U+0000 in a text"));
    }
    Ok(())
}
