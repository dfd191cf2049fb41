//! An engine asked well: in requests of a size it takes, not too many at once,
//! again after a pause when it fails.

use std::collections::HashMap;

use backon::Retryable;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;

use super::{
    engine::{self, Engine, EngineError},
    passage::LONGEST_PART,
};
use crate::{client, config::RetrySettings};

/// An engine with the manners of the settings.
pub struct Translator {
    engine: Box<dyn Engine>,
    from: String,
    parallel: usize,
    requests: Semaphore,
    retry: RetrySettings,
}

impl Translator {
    /// At most `parallel` requests are under way at once, those that wait for
    /// their next attempt not counted.
    pub fn new(engine: Box<dyn Engine>, from: &str, parallel: usize, retry: RetrySettings) -> Self {
        Self {
            engine,
            from: from.to_owned(),
            parallel,
            requests: Semaphore::new(parallel),
            retry,
        }
    }

    /// What each of the texts is in another language.
    pub async fn translate(
        &self,
        texts: &[String],
        to: &str,
    ) -> Result<HashMap<String, String>, EngineError> {
        let requests = requests(texts, self.engine.texts_per_request());
        let answers: Vec<Vec<String>> = stream::iter(requests)
            .map(|texts| self.ask(texts, to))
            .buffered(self.parallel)
            .try_collect()
            .await?;
        Ok(texts
            .iter()
            .cloned()
            .zip(answers.into_iter().flatten())
            .collect())
    }

    async fn ask(&self, texts: &[String], to: &str) -> Result<Vec<String>, EngineError> {
        let attempt = || self.ask_once(texts, to);
        attempt
            .retry(client::backoff(self.retry))
            .when(|error| !matches!(error, EngineError::Refused(_)))
            .adjust(|error, pause| {
                let asked = match error {
                    EngineError::Unavailable { pause, .. } => *pause,
                    EngineError::Unusable(_) | EngineError::Refused(_) => None,
                };
                Some(pause?.max(asked.unwrap_or_default()))
            })
            .await
    }

    async fn ask_once(&self, texts: &[String], to: &str) -> Result<Vec<String>, EngineError> {
        // The semaphore is never closed.
        let _permit = self.requests.acquire().await.ok();
        let answer = self.engine.translate(texts, &self.from, to).await?;
        engine::check(texts, &answer)?;
        Ok(answer)
    }
}

/// The texts in their order, as many to a request as count and size allow.
fn requests(texts: &[String], count_max: usize) -> Vec<&[String]> {
    let mut requests = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        let len = text.chars().count();
        if at > start && (at - start >= count_max || size + len > LONGEST_PART) {
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

    /// Fails as told so many times, then echoes.
    struct Moody {
        failure: EngineError,
        failures: u32,
        asked: Arc<AtomicU32>,
    }

    #[tonic::async_trait]
    impl Engine for Moody {
        fn texts_per_request(&self) -> usize {
            2
        }

        async fn translate(
            &self,
            texts: &[String],
            _: &str,
            to: &str,
        ) -> Result<Vec<String>, EngineError> {
            if self.asked.fetch_add(1, Relaxed) < self.failures {
                return Err(self.failure.clone());
            }
            Ok(texts.iter().map(|text| format!("{text} {to}")).collect())
        }
    }

    fn busy(pause: Option<Duration>) -> EngineError {
        let reason = "busy".to_owned();
        EngineError::Unavailable { reason, pause }
    }

    fn translator(failure: EngineError, failures: u32) -> (Translator, Arc<AtomicU32>) {
        let asked = Arc::new(AtomicU32::new(0));
        let engine = Moody {
            failure,
            failures,
            asked: asked.clone(),
        };
        let retry = RetrySettings {
            retries: 3,
            first_pause: Duration::from_secs(1),
        };
        (Translator::new(Box::new(engine), "en", 1, retry), asked)
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_engine_is_asked_again_after_growing_pauses() {
        let (translator, asked) = translator(busy(None), 3);
        let start = Instant::now();
        let answer = translator.translate(&texts(&["a"]), "de").await;
        assert_eq!(
            answer
                .expect("the fourth time")
                .get("a")
                .map(String::as_str),
            Some("a de")
        );
        assert_eq!(asked.load(Relaxed), 4);
        let took = start.elapsed();
        assert!((Duration::from_millis(3_500)..Duration::from_millis(7_100)).contains(&took));
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_stays_away_is_given_up() {
        let (translator, asked) = translator(busy(None), u32::MAX);
        let answer = translator.translate(&texts(&["a"]), "de").await;
        assert_eq!(answer, Err(busy(None)));
        assert_eq!(asked.load(Relaxed), 4);
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

    #[tokio::test(start_paused = true)]
    async fn nonsense_is_asked_again_and_a_refusal_is_not() {
        let (nonsense, asked) = translator(EngineError::Unusable("why"), u32::MAX);
        nonsense
            .translate(&texts(&["a"]), "de")
            .await
            .expect_err("nonsense");
        assert_eq!(asked.load(Relaxed), 4);
        let (refused, asked) = translator(EngineError::Refused("why".to_owned()), u32::MAX);
        refused
            .translate(&texts(&["a"]), "de")
            .await
            .expect_err("refused");
        assert_eq!(asked.load(Relaxed), 1);
    }

    #[test]
    fn requests_keep_to_count_and_size() {
        let long = "x".repeat(LONGEST_PART);
        let all = texts(&["a", "b", "c", &long, "d"]);
        let sizes: Vec<usize> = requests(&all, 2).into_iter().map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert!(requests(&[], 2).is_empty());
    }
}
