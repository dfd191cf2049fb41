//! The engine Apertium, by its HTTP interface APY.

use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;

use super::engine::{self, Engine, EngineError};
use crate::http_client;

/// ISO 639-1 codes of the languages that Apertium has pairs for, each with the
/// ISO 639-3 code that Apertium uses.
const CODES: &str = "\
    af=afr an=arg ar=ara be=bel bg=bul br=bre bs=hbs ca=cat co=cos cs=ces cy=cym da=dan \
    de=deu el=ell en=eng eo=epo es=spa eu=eus fi=fin fr=fra ga=gle gl=glg hi=hin hr=hbs \
    hu=hun id=ind is=isl it=ita kk=kaz lv=lav mk=mkd ms=zlm mt=mlt nb=nob nl=nld nn=nno \
    oc=oci pl=pol pt=por ro=ron ru=rus sc=srd sl=slv sr=hbs sv=swe tr=tur tt=tat uk=ukr \
    ur=urd uz=uzb";

/// An APY server.
pub struct Apertium {
    client: Client,
    url: String,
    probe_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApertiumResponse {
    response_data: ResponseData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseData {
    translated_text: String,
}

impl Apertium {
    /// A server at a URL without a trailing slash.
    pub fn new(url: &str, timeout: Duration) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: http_client::client(timeout, url)?,
            url: format!("{url}/translate"),
            probe_url: format!("{url}/listPairs"),
        })
    }
}

#[tonic::async_trait]
impl Engine for Apertium {
    /// One, as the engine may change a separator between several texts.
    fn texts_per_request(&self) -> usize {
        1
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
        let pair = format!("{}|{}", code(from), code(to));
        let mut translations = Vec::with_capacity(texts.len());
        for text in texts {
            let form = [
                ("langpair", pair.as_str()),
                ("markUnknown", "no"),
                ("format", "txt"),
                ("q", text),
            ];
            let request = self.client.post(&self.url).form(&form);
            let answer: ApertiumResponse = engine::send(request, explanation).await?;
            translations.push(answer.response_data.translated_text);
        }
        Ok(translations)
    }
}

fn explanation(answer: &serde_json::Value) -> Option<String> {
    Some(answer.get("explanation")?.as_str()?.to_owned())
}

/// The ISO 639-3 code of a tag's language, or the language as it is.
fn code(tag: &str) -> &str {
    let language = tag.split('-').next().unwrap_or(tag);
    let mut pairs = CODES.split(' ').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(short, _)| *short == language);
    found.map_or(language, |(_, long)| long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_named_as_the_engine_does() {
        for (tag, expected) in [
            ("en", "eng"),
            ("es-MX", "spa"),
            ("cat", "cat"),
            ("xx", "xx"),
            ("sr-Latn-RS", "hbs"),
        ] {
            assert_eq!(code(tag), expected);
        }
    }
}
