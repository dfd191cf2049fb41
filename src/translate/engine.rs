//! Translation engines by their HTTP interfaces, and the meaning of their failures.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode, header::RETRY_AFTER};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    client,
    config::{EngineKind, MASK, Secret, TranslationConfig},
    http_client,
    terminal::sanitize,
};

/// The largest answer that is read. A translation of one request is far smaller.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The longest pause that an engine may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// The most characters that a message repeats of an engine's explanation.
const MAX_EXPLANATION_CHARS: usize = 200;

/// ISO 639-1 codes of the languages that Apertium has pairs for, each with the
/// ISO 639-3 code that Apertium uses.
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
}

/// Why a request failed. It is displayed on one line, without the texts, the API key or the
/// address of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It is down, slow or busy. A retry may succeed.
    #[error("the engine does not answer: {reason}")]
    Unavailable {
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

#[derive(Deserialize)]
struct LibreTranslateAnswer {
    #[serde(rename = "translatedText")]
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct ApertiumAnswer {
    #[serde(rename = "responseData")]
    data: ApertiumData,
}

#[derive(Deserialize)]
struct ApertiumData {
    #[serde(rename = "translatedText")]
    text: String,
}

impl Engine {
    pub fn new(config: &TranslationConfig) -> Result<Self, reqwest::Error> {
        let url = config.engine_url().to_owned();
        Ok(Self {
            kind: config.engine,
            client: http_client::client(config.timeout, &url)?,
            url,
            api_key: config.engine_api_key.clone(),
        })
    }

    /// How many texts a request may carry.
    pub fn texts_per_request(&self) -> usize {
        match self.kind {
            EngineKind::LibreTranslate => 50,
            // It may change a separator between several texts.
            EngineKind::Apertium => 1,
        }
    }

    /// Asks for something cheap. Any answer shows that the engine is there.
    pub async fn probe(&self) -> Result<(), EngineError> {
        let list = match self.kind {
            EngineKind::LibreTranslate => "languages",
            EngineKind::Apertium => "listPairs",
        };
        let request = self.client.get(format!("{}/{list}", self.url));
        request.send().await.map(drop).map_err(unavailable)
    }

    /// Translates plain texts from one language into another, both BCP-47 tags. The answer has as
    /// many texts, in the same order.
    pub async fn translate(
        &self,
        texts: &[String],
        from: &str,
        to: &str,
    ) -> Result<Vec<String>, EngineError> {
        let answer = match self.kind {
            EngineKind::LibreTranslate => {
                let [from, to] = [from, to].map(libretranslate_code);
                let mut body = json!({"q": texts, "source": from, "target": to, "format": "text"});
                if let (Some(key), Value::Object(members)) = (&self.api_key, &mut body) {
                    members.insert("api_key".to_owned(), key.expose().into());
                }
                let request = self.request().header("content-type", "application/json");
                let request = request.body(body.to_string());
                self.send::<LibreTranslateAnswer>(request).await?.texts
            }
            EngineKind::Apertium => {
                let [from, to] = [from, to].map(apertium_code);
                let pair = format!("{from}|{to}");
                let mut answers = Vec::with_capacity(texts.len());
                for text in texts {
                    let request = self.request().form(&[
                        ("langpair", pair.as_str()),
                        ("markUnknown", "no"),
                        ("format", "txt"),
                        ("q", text),
                    ]);
                    answers.push(self.send::<ApertiumAnswer>(request).await?.data.text);
                }
                answers
            }
        };
        let fault = if answer.len() != texts.len() {
            "it has another number of texts"
        } else if answer.iter().any(|text| text.trim().is_empty()) {
            "it has an empty text"
        } else if answer.iter().any(|text| text.contains('\0')) {
            "it has U+0000 in a text"
        } else {
            return Ok(answer);
        };
        Err(EngineError::Unusable(fault))
    }

    fn request(&self) -> RequestBuilder {
        self.client.post(format!("{}/translate", self.url))
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, EngineError> {
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
        if status.is_success() {
            return serde_json::from_slice(&answer)
                .map_err(|_| EngineError::Unusable("it is not JSON of the expected form"));
        }
        let answer = serde_json::from_slice(&answer).unwrap_or_default();
        let explanation = match self.explanation(&answer) {
            Some(text) => format!(": {}", shortened(&text)),
            None => String::new(),
        };
        Err(EngineError::Refused(format!(
            "status {status}{explanation}"
        )))
    }

    /// The explanation in an error, without the API key, which it may repeat.
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
            true => "no answer in time".to_owned(),
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

/// Without a region, except for Brazilian Portuguese, and with the script of Chinese.
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
    #![allow(clippy::expect_used)]

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
