//! Checks of values. Every error completes the sentence "it must be …".

use std::{
    fmt::Display, fs, net::SocketAddr, ops::RangeInclusive, path::PathBuf, str::FromStr,
    time::Duration,
};

use http::{Uri, uri::Authority};
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::{
    TaskRef,
    secret::{Secret, SigningSecret},
};
use crate::domain::{
    caller::{Scope, Subject},
    ids::{AccountId, RequestId, TaskId},
    translation::Language,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An address to listen on. The error has this port as an example.
pub(super) fn address(example: u16) -> impl Fn(&str) -> Result<SocketAddr, String> + Clone {
    move |text| {
        text.parse().map_err(|_| {
            format!("an IP address and a port, such as 127.0.0.1:{example} or [::]:{example}")
        })
    }
}

/// The URL of a server, without user and parameters. A trailing slash is dropped.
pub(super) fn web_address(text: &str) -> Result<String, String> {
    let address = text.strip_suffix('/').unwrap_or(text);
    let uri = address.parse::<http::Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && !text.contains(['@', '?', '#'])
    });
    uri.map(|_| address.to_owned()).ok_or_else(|| {
        // What the start line of a server shows.
        match text.parse::<SocketAddr>() {
            Ok(address) => format!("http://{address}, or https://{address} if it uses TLS"),
            Err(_) => "http://HOST:PORT or https://HOST:PORT, without user and parameters".into(),
        }
    })
}

/// A whole number within the range.
pub(super) fn number<T: FromStr + PartialOrd + Display + Clone>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        text.parse()
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A duration from the shortest allowed to a day.
pub(super) fn duration(shortest: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        duration_to(shortest, DAY, text).ok_or_else(|| {
            let shortest = humantime::format_duration(shortest);
            format!("a duration with its unit from {shortest} to 1day, such as 500ms, 8s or 1m")
        })
    }
}

/// How long something is kept, in days at most.
pub(super) fn retention(
    shortest: Duration,
    longest: u32,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        duration_to(shortest, DAY * longest, text).ok_or_else(|| {
            let shortest = humantime::format_duration(shortest);
            format!(
                "a duration with its unit from {shortest} to {longest}days, such as 90days or 12h"
            )
        })
    }
}

/// How often something is done; zero for never.
pub(super) fn interval(text: &str) -> Result<Duration, &'static str> {
    duration_to(Duration::ZERO, DAY * 30, text)
        .filter(|interval| interval.is_zero() || *interval >= Duration::from_secs(60))
        .ok_or("0, or a duration with its unit from 1m to 30days, such as 1h or 30m")
}

fn duration_to(shortest: Duration, longest: Duration, text: &str) -> Option<Duration> {
    let duration = humantime::parse_duration(text).ok()?;
    (shortest..=longest).contains(&duration).then_some(duration)
}

pub(super) fn signing_secret(text: &str) -> Result<SigningSecret, String> {
    SigningSecret::new(text)
        .ok_or_else(|| format!("a secret of {} bytes at least", SigningSecret::MIN_BYTES))
}

/// A file that is there.
pub(super) fn existing_file(text: &str) -> Result<PathBuf, String> {
    match fs::metadata(text) {
        Ok(_) => Ok(PathBuf::from(text)),
        Err(_) if text.is_empty() => Err("the path of a file".to_owned()),
        Err(error) => Err(format!("the path of a file: {error}")),
    }
}

/// An HTTP URL. A user or password is refused, as messages show the URL.
pub(super) fn http_url(text: &str) -> Result<Uri, &'static str> {
    text.parse()
        .ok()
        .filter(|uri: &Uri| {
            let fetched = matches!(uri.scheme_str(), Some("http" | "https"));
            let host = |authority: &Authority| {
                !authority.host().is_empty() && !authority.as_str().contains('@')
            };
            fetched && uri.authority().is_some_and(host)
        })
        .ok_or("an http or https URL without user and password")
}

pub(super) fn account(text: &str) -> Result<AccountId, &'static str> {
    AccountId::parse(text).ok_or("1 to 64 characters of A-Z a-z 0-9 . _ : -")
}

pub(super) fn subject(text: &str) -> Result<Subject, String> {
    Subject::parse(text).ok_or_else(|| {
        format!(
            "1 to {} bytes without control characters",
            Subject::MAX_BYTES
        )
    })
}

/// A list of known scopes. A misspelt one would make a token that allows too little.
pub(super) fn scopes(text: &str) -> Result<Vec<Scope>, &'static str> {
    let known = |name: &str| Scope::ALL.iter().any(|scope| scope.name() == name);
    let scopes = Scope::parse_list(text);
    (!scopes.is_empty() && text.split(' ').all(known))
        .then_some(scopes)
        .ok_or("a space-separated list of read, write, translate, admin and index")
}

/// How long a token is valid.
pub(super) fn lifetime(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text)
        .ok()
        .filter(|lifetime| (Duration::from_secs(1)..=366 * DAY).contains(lifetime))
        .ok_or("a duration with its unit from 1s to 366days, such as 15m, 1h or 30days")
}

pub(super) fn secret(text: &str) -> Result<Secret, &'static str> {
    let visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    visible
        .then(|| Secret::new(text))
        .ok_or("visible ASCII characters")
}

pub(super) fn request_id(text: &str) -> Result<RequestId, &'static str> {
    RequestId::parse(text).ok_or("a hyphenated UUID")
}

/// A task by its guid or its name. A mistyped guid is no name.
pub(super) fn task_ref(text: &str) -> Result<TaskRef, &'static str> {
    let is_guid_like = text.len() > 30 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    match TaskId::parse(text) {
        Some(task) => Ok(TaskRef::Id(task)),
        None if is_guid_like || text.trim().is_empty() => {
            Err("the guid of a task, a hyphenated UUID, or its name")
        }
        None => Ok(TaskRef::Name(text.to_owned())),
    }
}

/// A language tag as the service takes it, but for names of languages such as `german`: they
/// are well-formed tags, and no language has a code of more than three letters.
pub(super) fn language(text: &str) -> Result<Language, &'static str> {
    let has_code = |language: &Language| {
        let code = language.as_str().split('-').next();
        code.is_some_and(|code| code.len() <= MAX_LANGUAGE_CODE_CHARS)
    };
    Language::parse(text)
        .filter(has_code)
        .ok_or("a BCP-47 tag, such as de or pt-BR, and not the name of a language")
}

/// The most letters that the code of a language has, as in ISO 639.
const MAX_LANGUAGE_CODE_CHARS: usize = 3;

/// Levels, alone or as `part=level`. A name alone is refused: a misspelt level would be
/// taken for the name of a part, and silence the log.
pub(super) fn log(text: &str) -> Result<Targets, &'static str> {
    let is_directive = |directive: &str| match directive.split_once('=') {
        Some((target, level)) => !target.is_empty() && level.parse::<LevelFilter>().is_ok(),
        // An empty text would be the level `error`.
        None => !directive.is_empty() && directive.parse::<LevelFilter>().is_ok(),
    };
    text.split(',')
        .all(is_directive)
        .then(|| text.parse().ok())
        .flatten()
        .ok_or(
            "off, error, warn, info, debug or trace, or a list such as info,expertise::store=debug",
        )
}
