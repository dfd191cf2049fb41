//! Requests to an engine: their size, how many run at once, and retries.

use std::collections::HashMap;

use backon::Retryable;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;

use super::{
    chunking::MAX_REQUEST_CHARS,
    engine::{self, Engine, EngineError},
};
use crate::{client, config::RetrySettings};

/// An engine with limits on its requests.
pub struct Translator {
    engine: Box<dyn Engine>,
    from: String,
    parallel: usize,
    requests: Semaphore,
    retry: RetrySettings,
}

impl Translator {
    /// At most `parallel` requests run at once. While one waits for a retry, other calls of
    /// [`translate`](Self::translate) may use its place, but its own call starts no other request.
    pub fn new(engine: Box<dyn Engine>, from: &str, parallel: usize, retry: RetrySettings) -> Self {
        Self {
            engine,
            from: from.to_owned(),
            parallel,
            requests: Semaphore::new(parallel),
            retry,
        }
    }

    /// Asks whether the engine is there.
    pub async fn probe(&self) -> Result<(), EngineError> {
        self.engine.probe().await
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
        Ok(texts
            .iter()
            .cloned()
            .zip(answers.into_iter().flatten())
            .collect())
    }

    async fn request_with_retries(
        &self,
        texts: &[String],
        to: &str,
    ) -> Result<Vec<String>, EngineError> {
        let attempt = || self.request(texts, to);
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

    async fn request(&self, texts: &[String], to: &str) -> Result<Vec<String>, EngineError> {
        // The semaphore is never closed.
        let _permit = self.requests.acquire().await.ok();
        let answer = self.engine.translate(texts, &self.from, to).await?;
        engine::check_answer(texts, &answer)?;
        Ok(answer)
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
#[allow(clippy::expect_used)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering::Relaxed},
        },
        time::Duration,
    };

    use tokio::time::Instant;

    use super::*;

    /// Fails some times, then answers.
    struct FailingEngine {
        failure: EngineError,
        failures: u32,
        requests: Arc<AtomicU32>,
    }

    #[tonic::async_trait]
    impl Engine for FailingEngine {
        fn texts_per_request(&self) -> usize {
            2
        }

        async fn probe(&self) -> Result<(), EngineError> {
            Ok(())
        }

        async fn translate(
            &self,
            texts: &[String],
            _: &str,
            to: &str,
        ) -> Result<Vec<String>, EngineError> {
            if self.requests.fetch_add(1, Relaxed) < self.failures {
                return Err(self.failure.clone());
            }
            Ok(texts.iter().map(|text| format!("{text} {to}")).collect())
        }
    }

    fn busy(retry_after: Option<Duration>) -> EngineError {
        EngineError::Unavailable {
            reason: "busy".to_owned(),
            retry_after,
        }
    }

    fn translator(failure: EngineError, failures: u32) -> (Translator, Arc<AtomicU32>) {
        let requests = Arc::new(AtomicU32::new(0));
        let engine = FailingEngine {
            failure,
            failures,
            requests: requests.clone(),
        };
        let retry = RetrySettings {
            retries: 3,
            first_pause: Duration::from_secs(1),
        };
        (Translator::new(Box::new(engine), "en", 1, retry), requests)
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_engine_is_retried_after_growing_pauses() {
        let (translator, requests) = translator(busy(None), 3);
        let start = Instant::now();
        let answer = translator.translate(&texts(&["a"]), "de").await;
        assert_eq!(
            answer
                .expect("the fourth time")
                .get("a")
                .map(String::as_str),
            Some("a de")
        );
        assert_eq!(requests.load(Relaxed), 4);
        let took = start.elapsed();
        assert!((Duration::from_millis(3_500)..Duration::from_millis(7_100)).contains(&took));
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_stays_unavailable_is_given_up() {
        let (translator, requests) = translator(busy(None), u32::MAX);
        let answer = translator.translate(&texts(&["a"]), "de").await;
        assert_eq!(answer, Err(busy(None)));
        assert_eq!(requests.load(Relaxed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_the_engine_asks_for_is_kept() {
        let (translator, _) = translator(busy(Some(Duration::from_secs(20))), 1);
        let start = Instant::now();
        translator
            .translate(&texts(&["a"]), "de")
            .await
            .expect("the second time");
        assert!(start.elapsed() >= Duration::from_secs(20));
    }

    #[test]
    fn requests_keep_to_count_and_size() {
        let long = "x".repeat(MAX_REQUEST_CHARS);
        let all = texts(&["a", "b", "c", &long, "d"]);
        let sizes: Vec<usize> = requests(&all, 2).into_iter().map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert!(requests(&[], 2).is_empty());
    }
}
