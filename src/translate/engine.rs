//! What translates texts.

use std::time::Duration;

/// A machine that translates texts.
#[tonic::async_trait]
pub trait Engine: Send + Sync {
    /// How many texts a request may carry, at least one.
    fn texts_per_request(&self) -> usize;

    /// Translates plain texts from one language into another, both BCP-47 tags:
    /// as many texts as there were, in their order. One call is one request.
    async fn translate(
        &self,
        texts: &[String],
        from: &str,
        to: &str,
    ) -> Result<Vec<String>, EngineError>;
}

/// Why a request brought no translation. A display is one line without the
/// texts, the key of the engine or its address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It is down, slow or busy; another time it may answer.
    #[error("the engine does not answer: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
        /// How long the engine asks to be left alone.
        pause: Option<Duration>,
    },
    /// It answered nonsense.
    #[error("the engine's answer cannot be used: {0}")]
    Unusable(&'static str),
    /// It will answer no other way when asked again.
    #[error("the engine refuses: {0}")]
    Refused(String),
}

/// Checks what every engine has to keep: a text for each text, none without
/// words.
pub(super) fn check(asked: &[String], answered: &[String]) -> Result<(), EngineError> {
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
