//! Requests to an engine: their size, how many run at once, and retries.

use std::collections::HashMap;

use backon::Retryable;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;

use super::{
    chunking::MAX_REQUEST_CHARS,
    engine::{Engine, EngineError},
};
use crate::{
    client,
    config::{RetrySettings, TranslateConfig},
};

/// An engine with limits on its requests.
pub(super) struct Translator {
    pub engine: Engine,
    from: String,
    parallel: usize,
    /// While a request waits for a retry, another one may use its place.
    requests: Semaphore,
    retry: RetrySettings,
}

impl Translator {
    pub fn new(config: &TranslateConfig) -> Result<Self, reqwest::Error> {
        let TranslateConfig {
            translation,
            connection,
        } = config;
        Ok(Self {
            engine: Engine::new(translation)?,
            from: translation.source_language.as_str().to_owned(),
            parallel: translation.parallel,
            requests: Semaphore::new(translation.parallel),
            retry: connection.retry,
        })
    }

    /// Translates texts. The answer is a dictionary of all of them.
    pub async fn translate(
        &self,
        texts: &[String],
        to: &str,
    ) -> Result<HashMap<String, String>, EngineError> {
        let requests = requests(texts, self.engine.texts_per_request());
        let answers: Vec<Vec<String>> = stream::iter(requests)
            .map(|texts| self.request_with_retries(texts, to))
            .buffered(self.parallel)
            .try_collect()
            .await?;
        let pairs = texts.iter().cloned().zip(answers.into_iter().flatten());
        Ok(pairs.collect())
    }

    async fn request_with_retries(
        &self,
        texts: &[String],
        to: &str,
    ) -> Result<Vec<String>, EngineError> {
        let attempt = async || {
            // The semaphore is never closed.
            let _permit = self.requests.acquire().await.ok();
            self.engine.translate(texts, &self.from, to).await
        };
        attempt
            .retry(client::backoff(self.retry))
            .when(|error| !matches!(error, EngineError::Refused(_)))
            .adjust(|error, pause| {
                let retry_after = match error {
                    EngineError::Unavailable { retry_after, .. } => *retry_after,
                    EngineError::Unusable(_) | EngineError::Refused(_) => None,
                };
                Some(pause?.max(retry_after.unwrap_or_default()))
            })
            .await
    }
}

/// Splits the texts into requests, as many to each as count and size allow.
fn requests(texts: &[String], count_max: usize) -> Vec<&[String]> {
    let mut requests = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        let len = text.chars().count();
        if at > start && (at - start >= count_max || size + len > MAX_REQUEST_CHARS) {
            requests.extend(texts.get(start..at));
            (start, size) = (at, 0);
        }
        size += len;
    }
    requests.extend(texts.get(start..).filter(|rest| !rest.is_empty()));
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_to_count_and_size() {
        let long = "x".repeat(MAX_REQUEST_CHARS);
        let all = ["a", "b", "c", &long, "d"].map(str::to_owned);
        let sizes: Vec<usize> = requests(&all, 2).into_iter().map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert!(requests(&[], 2).is_empty());
    }
}
