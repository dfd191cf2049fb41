//! Requests to engines, and the meaning of their failures.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode, header::RETRY_AFTER, redirect};
use serde::de::DeserializeOwned;

use super::engine::EngineError;
use crate::{client, terminal::sanitize};

/// The largest answer that is read. A translation of one request is far smaller.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The longest pause that an engine may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// The most characters that a message repeats of an engine's explanation.
const MAX_EXPLANATION_CHARS: usize = 200;

/// An HTTP client with a time-out for each request. It follows no redirects, which could
/// send texts and API key elsewhere, and reaches local engines without a proxy.
pub(super) fn client(timeout: Duration, url: &str) -> Result<Client, reqwest::Error> {
    // A provider that is already installed stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .timeout(timeout)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("expertise/", env!("CARGO_PKG_VERSION")));
    if is_local(url) {
        builder = builder.no_proxy();
    }
    builder.build()
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
    let answer = read(response).await?;
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

async fn read(mut response: Response) -> Result<Vec<u8>, EngineError> {
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if answer.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(EngineError::Unusable("it is too large"));
        }
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
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

fn is_local(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    host.is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}
