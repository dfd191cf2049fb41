//! The engine LibreTranslate, by its HTTP interface.

use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::engine::{self, Engine, EngineError};
use crate::{
    config::{MASK, Secret},
    http_client,
};

/// The most texts in a request.
const MAX_TEXTS_PER_REQUEST: usize = 50;

/// A LibreTranslate server.
pub struct LibreTranslate {
    client: Client,
    url: String,
    probe_url: String,
    api_key: Option<Secret>,
}

#[derive(Deserialize)]
struct LibreTranslateResponse {
    #[serde(rename = "translatedText")]
    texts: Vec<String>,
}

impl LibreTranslate {
    /// A server at a URL without a trailing slash.
    pub fn new(
        url: &str,
        api_key: Option<Secret>,
        timeout: Duration,
    ) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: http_client::client(timeout, url)?,
            url: format!("{url}/translate"),
            probe_url: format!("{url}/languages"),
            api_key,
        })
    }

    /// The explanation in an error, without the API key, which it may repeat.
    fn explanation(&self, answer: &Value) -> Option<String> {
        let text = answer.get("error")?.as_str()?;
        Some(match &self.api_key {
            Some(key) => text.replace(key.expose(), MASK),
            None => text.to_owned(),
        })
    }
}

#[tonic::async_trait]
impl Engine for LibreTranslate {
    fn texts_per_request(&self) -> usize {
        MAX_TEXTS_PER_REQUEST
    }

    async fn probe(&self) -> Result<(), EngineError> {
        engine::probe(self.client.get(&self.probe_url)).await
    }

    async fn translate(
        &self,
        texts: &[String],
        from: &str,
        to: &str,
    ) -> Result<Vec<String>, EngineError> {
        let mut body = json!({
            "q": texts,
            "source": code(from),
            "target": code(to),
            "format": "text",
        });
        if let (Some(key), Value::Object(members)) = (&self.api_key, &mut body) {
            members.insert("api_key".to_owned(), key.expose().into());
        }
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer: LibreTranslateResponse =
            engine::send(request, |answer| self.explanation(answer)).await?;
        Ok(answer.texts)
    }
}

/// LibreTranslate's code of a language: without a region, except for Brazilian Portuguese,
/// and with the script of Chinese.
fn code(tag: &str) -> &str {
    let language = tag.split('-').next().unwrap_or(tag);
    match tag.get(..7) {
        Some(script @ ("zh-Hans" | "zh-Hant")) => script,
        _ if tag == "pt-BR" => tag,
        _ => language,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_named_as_the_engine_does() {
        for (tag, expected) in [
            ("de", "de"),
            ("de-AT", "de"),
            ("pt-BR", "pt-BR"),
            ("pt-PT", "pt"),
            ("zh", "zh"),
            ("zh-Hant-TW", "zh-Hant"),
        ] {
            assert_eq!(code(tag), expected);
        }
    }
}
