//! LibreTranslate's HTTP interface.

use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    engine::{Engine, EngineError},
    http,
};
use crate::config::{MASK, Secret};

/// How many texts a request carries.
const TEXTS_PER_REQUEST: usize = 50;

/// A LibreTranslate server.
pub struct LibreTranslate {
    client: Client,
    url: String,
    api_key: Option<Secret>,
}

#[derive(Deserialize)]
struct Answer {
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
            client: http::client(timeout, url)?,
            url: format!("{url}/translate"),
            api_key,
        })
    }

    /// Why a server refuses; it may repeat the key.
    fn words(&self, answer: &Value) -> Option<String> {
        let words = answer.get("error")?.as_str()?;
        Some(match &self.api_key {
            Some(key) => words.replace(key.expose(), MASK),
            None => words.to_owned(),
        })
    }
}

#[tonic::async_trait]
impl Engine for LibreTranslate {
    fn texts_per_request(&self) -> usize {
        TEXTS_PER_REQUEST
    }

    async fn translate(
        &self,
        texts: &[String],
        from: &str,
        to: &str,
    ) -> Result<Vec<String>, EngineError> {
        let mut question = json!({
            "q": texts,
            "source": code(from),
            "target": code(to),
            "format": "text",
        });
        if let (Some(key), Value::Object(members)) = (&self.api_key, &mut question) {
            members.insert("api_key".to_owned(), key.expose().into());
        }
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(question.to_string());
        let answer: Answer = http::send(request, |answer| self.words(answer)).await?;
        Ok(answer.texts)
    }
}

/// LibreTranslate names languages without regions, but for Brazil's
/// Portuguese, and tells the scripts of Chinese apart.
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
