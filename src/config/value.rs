//! What a value of each setting must be. Every error completes the sentence
//! "it must be …".

use std::{fmt::Display, net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use tracing_subscriber::filter::{LevelFilter, Targets};

use super::{AuthMode, LogFormat};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address and a port, such as 127.0.0.1:50051 or [::]:50051")
}

/// Where something is that speaks HTTP: no user, no parameters; a trailing slash
/// is dropped.
pub(super) fn web_address(text: &str) -> Result<String, &'static str> {
    let address = text.strip_suffix('/').unwrap_or(text);
    let uri = address.parse::<http::Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && !text.contains(['@', '?', '#'])
    });
    uri.map(|_| address.to_owned())
        .ok_or("http://HOST:PORT or https://HOST:PORT, without user and parameters")
}

pub(super) fn truth(text: &str) -> Result<bool, &'static str> {
    text.parse().map_err(|_| "true or false")
}

/// A whole number within the range.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        text.parse()
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A duration from the shortest allowed to a day.
pub(super) fn duration(shortest: Duration) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| {
        humantime::parse_duration(text)
            .ok()
            .filter(|duration| (shortest..=DAY).contains(duration))
            .ok_or_else(|| {
                let shortest = humantime::format_duration(shortest);
                format!("a duration with its unit from {shortest} to 1day, such as 500ms, 8s or 1m")
            })
    }
}

pub(super) fn auth(text: &str) -> Result<AuthMode, &'static str> {
    match text {
        "header" => Ok(AuthMode::Header),
        "jwt" => Err("header, as jwt is not supported by this version"),
        _ => Err("header"),
    }
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("text or json"),
    }
}

/// Levels, alone or as `part=level`. A misspelt level would pass for the name
/// of a part and silence the log, so a name alone is refused.
pub(super) fn log(text: &str) -> Result<Targets, &'static str> {
    let is_directive = |directive: &str| match directive.split_once('=') {
        Some((target, level)) => !target.is_empty() && level.parse::<LevelFilter>().is_ok(),
        None => directive.parse::<LevelFilter>().is_ok(),
    };
    text.split(',')
        .all(is_directive)
        .then(|| text.parse().ok())
        .flatten()
        .ok_or(
            "off, error, warn, info, debug or trace, or a list such as info,expertise::store=debug",
        )
}
