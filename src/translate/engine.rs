//! Translation engines, requests to them, and the meaning of their failures.

use std::time::Duration;

use reqwest::{RequestBuilder, Response, StatusCode, header::RETRY_AFTER};
use serde::de::DeserializeOwned;

use crate::{client, http_client, terminal::sanitize};

/// The largest answer that is read. A translation of one request is far smaller.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The longest pause that an engine may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// The most characters that a message repeats of an engine's explanation.
const MAX_EXPLANATION_CHARS: usize = 200;

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

/// Sends a request whose answer does not matter.
pub(super) async fn probe(request: RequestBuilder) -> Result<(), EngineError> {
    request.send().await.map(drop).map_err(unavailable)
}

/// Sends a request and reads the answer. `explanation` finds the engine's explanation in
/// an error.
pub(super) async fn send<T: DeserializeOwned>(
    request: RequestBuilder,
    explanation: impl Fn(&serde_json::Value) -> Option<String>,
) -> Result<T, EngineError> {
    let response = request.send().await.map_err(unavailable)?;
    let status = response.status();
    let temporary = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT;
    if temporary {
        return Err(EngineError::Unavailable {
            reason: format!("status {status}"),
            retry_after: retry_after(&response),
        });
    }
    let answer = http_client::read(response, MAX_ANSWER_BYTES).await;
    let answer = answer.map_err(unavailable)?;
    let answer = answer.ok_or(EngineError::Unusable("it is too large"))?;
    if status.is_success() {
        return serde_json::from_slice(&answer)
            .map_err(|_| EngineError::Unusable("it is not JSON of the expected form"));
    }
    let answer = serde_json::from_slice::<serde_json::Value>(&answer).ok();
    Err(EngineError::Refused(
        match answer.as_ref().and_then(explanation) {
            Some(text) => format!("status {status}: {}", shortened(&text)),
            None => format!("status {status}"),
        },
    ))
}

fn unavailable(error: reqwest::Error) -> EngineError {
    let error = error.without_url();
    let reason = if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        shortened(&client::root_cause(&error).to_string())
    };
    EngineError::Unavailable {
        reason,
        retry_after: None,
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let pause = Duration::from_secs(seconds.parse().ok()?);
    Some(pause.min(MAX_RETRY_AFTER))
}

fn shortened(text: &str) -> String {
    let start: String = text.chars().take(MAX_EXPLANATION_CHARS).collect();
    sanitize(&start)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;

    #[test]
    fn a_pause_that_an_engine_asks_for_is_a_minute_at_most() {
        for (asked, kept) in [
            ("30", Some(30)),
            ("60", Some(60)),
            ("1000000", Some(60)),
            ("soon", None),
        ] {
            let answer = http::Response::builder().header(RETRY_AFTER, asked);
            let answer = answer.body("").expect("an answer");
            let pause = retry_after(&answer.into());
            assert_eq!(pause, kept.map(Duration::from_secs), "{asked}");
        }
    }
}
