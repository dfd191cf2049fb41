//! Requests to engines, and what their failures mean.

use std::{error::Error, time::Duration};

use reqwest::{Client, RequestBuilder, Response, StatusCode, header::RETRY_AFTER, redirect};
use serde::de::DeserializeOwned;

use super::engine::EngineError;

/// The largest answer read, in bytes: far above any translation of what one
/// request holds.
const ANSWER_MAX: usize = 8 * 1024 * 1024;
/// The longest pause that an engine is granted.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How much of an engine's own words a report repeats, in characters.
const WORDS_MAX: usize = 200;

/// A client whose requests take no longer than the time given. Redirects are
/// not followed: they would carry texts and key to a place nobody named. Local
/// engines are reached without a proxy.
pub(super) fn client(timeout: Duration, url: &str) -> Result<Client, reqwest::Error> {
    // Another provider that the process has chosen is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .timeout(timeout)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("expertise/", env!("CARGO_PKG_VERSION")));
    let builder = if is_local(url) {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build()
}

/// Sends a request and reads the answer. `words` finds an engine's explanation
/// in its refusal.
pub(super) async fn send<T: DeserializeOwned>(
    request: RequestBuilder,
    words: impl Fn(&serde_json::Value) -> Option<String>,
) -> Result<T, EngineError> {
    let response = request.send().await.map_err(unavailable)?;
    let status = response.status();
    let pause = asked_pause(&response);
    let answer = read(response).await?;
    if status.is_success() {
        return serde_json::from_slice(&answer)
            .map_err(|_| EngineError::Unusable("it is not the JSON of such an engine"));
    }
    let temporary = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT;
    if temporary {
        let reason = format!("status {status}");
        return Err(EngineError::Unavailable { reason, pause });
    }
    let answer = serde_json::from_slice::<serde_json::Value>(&answer).ok();
    Err(EngineError::Refused(
        match answer.as_ref().and_then(words) {
            Some(words) => format!("status {status}: {}", one_line(&words)),
            None => format!("status {status}"),
        },
    ))
}

async fn read(mut response: Response) -> Result<Vec<u8>, EngineError> {
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if answer.len() + chunk.len() > ANSWER_MAX {
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
        let mut cause: &dyn Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        one_line(&cause.to_string())
    };
    let pause = None;
    EngineError::Unavailable { reason, pause }
}

fn asked_pause(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let pause = Duration::from_secs(seconds.parse().ok()?);
    Some(pause.min(PAUSE_MAX))
}

fn one_line(words: &str) -> String {
    let words = words.chars().take(WORDS_MAX);
    words
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect()
}

fn is_local(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    host.is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}
