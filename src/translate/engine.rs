//! Calls translation engines over HTTP, with limits and retries.

use std::time::Duration;

use backon::Retryable;
use futures_util::future::try_join_all;
use reqwest::{Client, RequestBuilder, Response, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::parts::{MAX_REQUEST_CHARS, chunks_within};
use crate::{
    client,
    config::{EngineKind, MASK, RetrySettings, Secret, TranslateConfig},
    http_client,
    terminal::sanitize,
};

/// The maximum size of a response. The translation of a request is far smaller.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The longest pause that an engine may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// The maximum number of characters of an engine's explanation in a message.
const MAX_EXPLANATION_CHARS: usize = 200;

/// ISO 639-1 codes of the languages that Apertium supports, with the ISO 639-3 codes that Apertium
/// uses.
const APERTIUM_CODES: &str = "\
    af=afr an=arg ar=ara be=bel bg=bul br=bre bs=hbs ca=cat co=cos cs=ces cy=cym da=dan \
    de=deu el=ell en=eng eo=epo es=spa eu=eus fi=fin fr=fra ga=gle gl=glg hi=hin hr=hbs \
    hu=hun id=ind is=isl it=ita kk=kaz lv=lav mk=mkd ms=zlm mt=mlt nb=nob nl=nld nn=nno \
    oc=oci pl=pol pt=por ro=ron ru=rus sc=srd sl=slv sr=hbs sv=swe tr=tur tt=tat uk=ukr \
    ur=urd uz=uzb";

/// A server of an engine.
pub(super) struct Engine {
    kind: EngineKind,
    client: Client,
    /// Without a trailing slash.
    url: String,
    api_key: Option<Secret>,
    source_language: String,
    /// While a request waits for a retry, another request may run.
    requests: Semaphore,
    retry: RetrySettings,
}

/// Why a request failed. It is displayed on one line, without the texts, the API key or the
/// address of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EngineError {
    /// It is down, slow or busy. A retry may succeed.
    #[error("the engine does not respond: {reason}")]
    Unavailable {
        reason: String,
        /// The pause that the engine requests.
        retry_after: Option<Duration>,
    },
    /// The response is not a translation.
    #[error("the engine's response cannot be used: {0}")]
    Unusable(&'static str),
    /// A retry would get the same response.
    #[error("the engine refuses: {0}")]
    Refused(String),
}

impl Engine {
    pub fn new(config: &TranslateConfig) -> Result<Self, String> {
        let TranslateConfig {
            translation,
            connection,
            ..
        } = config;
        let url = translation.engine_url().to_owned();
        let client = http_client::client(translation.timeout, &url);
        let client = client.map_err(|error| format!("the engine cannot be called: {error}"))?;
        Ok(Self {
            kind: translation.engine,
            client,
            url,
            api_key: translation.engine_api_key.clone(),
            source_language: translation.source_language.as_str().to_owned(),
            requests: Semaphore::new(translation.parallel),
            retry: connection.retry,
        })
    }

    /// Makes a cheap request. Any response shows that the engine is running.
    pub async fn probe(&self) -> Result<(), String> {
        let (list, start) = match self.kind {
            EngineKind::LibreTranslate => (
                "languages",
                "LibreTranslate (`libretranslate`, or its container image \
                 libretranslate/libretranslate)",
            ),
            EngineKind::Apertium => ("listPairs", "Apertium's APY (`apertium-apy`)"),
        };
        let answer = self.client.get(format!("{}/{list}", self.url)).send().await;
        answer.map(drop).map_err(|error| {
            let (reason, url) = (unavailable(error), &self.url);
            format!("{reason}: start {start} at {url}, or set another URL with --engine-url")
        })
    }

    /// Translates plain texts into a language, given as a BCP-47 tag. The result has as many texts,
    /// in the same order.
    pub async fn translate(&self, texts: &[String], to: &str) -> Result<Vec<String>, EngineError> {
        let max_texts = match self.kind {
            EngineKind::LibreTranslate => 50,
            // It may change a separator between several texts.
            EngineKind::Apertium => 1,
        };
        let chars = |text: &String| text.chars().count();
        let requests = chunks_within(texts, max_texts, MAX_REQUEST_CHARS, chars);
        let requests = requests.map(|texts| self.request_with_retries(texts, to));
        Ok(try_join_all(requests).await?.concat())
    }

    async fn request_with_retries(
        &self,
        texts: &[String],
        to: &str,
    ) -> Result<Vec<String>, EngineError> {
        let attempt = async || {
            // The semaphore is never closed.
            let _permit = self.requests.acquire().await.ok();
            self.request(texts, to).await
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

    async fn request(&self, texts: &[String], to: &str) -> Result<Vec<String>, EngineError> {
        let request = self.client.post(format!("{}/translate", self.url));
        let languages = [&self.source_language, to];
        let request = match self.kind {
            EngineKind::LibreTranslate => {
                let [from, to] = languages.map(libretranslate_code);
                let mut body = json!({"q": texts, "source": from, "target": to, "format": "text"});
                if let (Some(key), Value::Object(members)) = (&self.api_key, &mut body) {
                    members.insert("api_key".to_owned(), key.expose().into());
                }
                let request = request.header("content-type", "application/json");
                request.body(body.to_string())
            }
            EngineKind::Apertium => {
                let [from, to] = languages.map(apertium_code);
                request.form(&[
                    ("langpair", format!("{from}|{to}").as_str()),
                    ("markUnknown", "no"),
                    ("format", "txt"),
                    ("q", texts.concat().as_str()),
                ])
            }
        };
        let answer = self.send(request).await?;
        let translated = match self.kind {
            EngineKind::LibreTranslate => answer.get("translatedText").cloned(),
            EngineKind::Apertium => answer
                .pointer("/responseData/translatedText")
                .map(|text| json!([text])),
        };
        let translated = serde_json::from_value::<Vec<String>>(translated.unwrap_or_default());
        let fault = match translated.ok() {
            None => "it is not JSON of the expected form",
            Some(answer) if answer.len() != texts.len() => "it has the wrong number of texts",
            Some(answer) if answer.iter().any(|text| text.trim().is_empty()) => {
                "it has an empty text"
            }
            Some(answer) if answer.iter().any(|text| text.contains('\0')) => {
                "it has U+0000 in a text"
            }
            Some(answer) => return Ok(answer),
        };
        Err(EngineError::Unusable(fault))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, EngineError> {
        let response = request.send().await.map_err(unavailable)?;
        let status = response.status();
        let is_temporary = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        if is_temporary {
            return Err(EngineError::Unavailable {
                reason: format!("status {status}"),
                retry_after: retry_after(&response),
            });
        }
        let answer = http_client::read(response, MAX_ANSWER_BYTES).await;
        let answer = answer.map_err(unavailable)?;
        let answer = answer.ok_or(EngineError::Unusable("it is too large"))?;
        let answer = serde_json::from_slice(&answer).ok();
        if status.is_success() {
            return answer.ok_or(EngineError::Unusable("it is not JSON of the expected form"));
        }
        let explanation = match self.explanation(&answer.unwrap_or_default()) {
            Some(text) => format!(": {}", shortened(&text)),
            None => String::new(),
        };
        Err(EngineError::Refused(format!(
            "status {status}{explanation}"
        )))
    }

    /// The explanation in an error, without the API key in case it repeats it.
    fn explanation(&self, answer: &Value) -> Option<String> {
        let member = match self.kind {
            EngineKind::LibreTranslate => "error",
            EngineKind::Apertium => "explanation",
        };
        let text = answer.get(member)?.as_str()?;
        Some(match &self.api_key {
            Some(key) => text.replace(key.expose(), MASK),
            None => text.to_owned(),
        })
    }
}

fn unavailable(error: reqwest::Error) -> EngineError {
    let error = error.without_url();
    EngineError::Unavailable {
        reason: match error.is_timeout() {
            true => "no response in time".to_owned(),
            false => shortened(&client::root_cause(&error).to_string()),
        },
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

/// Removes the region, except for Brazilian Portuguese, and keeps the script of Chinese.
fn libretranslate_code(tag: &str) -> &str {
    match tag.get(..7) {
        Some(script @ ("zh-Hans" | "zh-Hant")) => script,
        _ if tag == "pt-BR" => tag,
        _ => language(tag),
    }
}

/// The ISO 639-3 code of the language, or the language as it is.
fn apertium_code(tag: &str) -> &str {
    let mut pairs = APERTIUM_CODES
        .split(' ')
        .filter_map(|it| it.split_once('='));
    let found = pairs.find(|(short, _)| *short == language(tag));
    found.map_or(language(tag), |(_, long)| long)
}

fn language(tag: &str) -> &str {
    tag.split('-').next().unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_named_as_each_engine_does() {
        for (tag, libretranslate, apertium) in [
            ("de", "de", "deu"),
            ("de-AT", "de", "deu"),
            ("pt-BR", "pt-BR", "por"),
            ("pt-PT", "pt", "por"),
            ("zh", "zh", "zh"),
            ("zh-Hant-TW", "zh-Hant", "zh"),
            ("cat", "cat", "cat"),
            ("sr-Latn-RS", "sr", "hbs"),
        ] {
            assert_eq!(libretranslate_code(tag), libretranslate);
            assert_eq!(apertium_code(tag), apertium);
        }
    }

    #[test]
    #[allow(clippy::expect_used)]
    fn a_pause_that_an_engine_asks_for_is_a_minute_at_most() {
        for (asked, kept) in [("30", Some(30)), ("1000000", Some(60)), ("soon", None)] {
            let answer = http::Response::builder().header(RETRY_AFTER, asked);
            let answer = answer.body("").expect("an answer");
            let pause = retry_after(&answer.into());
            assert_eq!(pause, kept.map(Duration::from_secs), "{asked}");
        }
    }
}
