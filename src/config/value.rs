//! Parsers of values. Every error completes the sentence "it must be …".

use std::{
    fmt::{self, Display},
    fs,
    net::SocketAddr,
    ops::RangeInclusive,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use http::{HeaderValue, Uri};
use rustls::pki_types::ServerName;
use tracing_subscriber::filter::{LevelFilter, Targets};
use url::Url;

use crate::domain::{
    caller::{Scope, Subject},
    ids::{AccountId, RequestId, TaskId},
    translation::Language,
};

/// Replaces a secret wherever settings are shown.
pub const MASK: &str = "****";

/// A text that neither `Debug` nor messages show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The size of an HS256 signature, which is the minimum size of a secret (RFC 7518, section
    /// 3.2).
    const MIN_SIGNING_BYTES: usize = 32;

    /// A secret that signs tokens.
    pub fn for_signing(text: &str) -> Result<Self, String> {
        match text.len() >= Self::MIN_SIGNING_BYTES {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "a secret of at least {} bytes",
                Self::MIN_SIGNING_BYTES
            )),
        }
    }

    /// The text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A secret that is sent as metadata.
impl FromStr for Secret {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err("visible ASCII characters"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// A task as users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRef {
    /// By its guid.
    Id(TaskId),
    /// By a name that is unique in the account.
    Name(String),
}

impl FromStr for TaskRef {
    type Err = &'static str;

    /// A mistyped guid is not a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_guid_like =
            text.len() > 30 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
        match TaskId::parse(text) {
            Some(task) => Ok(Self::Id(task)),
            None if is_guid_like || text.trim().is_empty() => {
                Err("the guid of a task, a hyphenated UUID, or its name")
            }
            None => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(task) => task.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// An address to listen on. The error mentions this port as an example.
pub fn address(example: u16) -> impl Fn(&str) -> Result<SocketAddr, String> + Clone {
    move |text| {
        text.parse().map_err(|_| {
            format!("an IP address and a port, such as 127.0.0.1:{example} or [::]:{example}")
        })
    }
}

/// An HTTP URL. A user or password is refused, because messages show the URL.
pub fn http_url(text: &str) -> Result<Uri, &'static str> {
    text.parse()
        .ok()
        .filter(|uri: &Uri| {
            let mut authority = uri.authority().into_iter();
            matches!(uri.scheme_str(), Some("http" | "https"))
                && authority.any(|it| !it.host().is_empty() && !it.as_str().contains('@'))
        })
        .ok_or("an http or https URL without user and password")
}

/// The URL of a server, without user and parameters. A trailing slash is dropped.
pub fn web_address(text: &str) -> Result<String, String> {
    let address = text.strip_suffix('/').unwrap_or(text);
    match http_url(address) {
        Ok(_) if !address.contains(['@', '?', '#']) => Ok(address.to_owned()),
        _ => Err(match text.parse::<SocketAddr>() {
            // What the start line of a server shows.
            Ok(address) => format!("http://{address}, or https://{address} if it uses TLS"),
            Err(_) => "http://HOST:PORT or https://HOST:PORT, without user and parameters".into(),
        }),
    }
}

/// The URL of a gRPC server. It has no path, because gRPC uses the path to name the rpc.
pub fn server_url(text: &str) -> Result<String, String> {
    let address = web_address(text)?;
    match http_url(&address)?.path() {
        "/" => Ok(address),
        path => Err(format!("the URL of a server, without the path {path}")),
    }
}

/// Origins of web pages, or `*` for all.
pub(super) fn origins(text: &str) -> Result<Vec<HeaderValue>, &'static str> {
    // As browsers send it: in lower case, without the default port.
    let is_origin = |origin: &str| {
        Url::parse(origin).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.origin().ascii_serialization() == origin
                && !origin.contains('*')
        })
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(str::trim)
        .map(|origin| (text == "*" || is_origin(origin)).then(|| origin.parse().ok())?)
        .collect::<Option<_>>()
        .ok_or(
            "origins as browsers send them, such as https://guides.example.com, separated by commas, \
             or * alone",
        )
}

/// A whole number within the range.
pub fn number<T: FromStr + PartialOrd + Display + Clone>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        text.parse()
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A duration within these bounds, such as `1ms` and `1day`.
pub fn duration(
    shortest: &'static str,
    longest: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    let parse = humantime::parse_duration;
    move |text| match (parse(shortest), parse(text), parse(longest)) {
        (Ok(shortest), Ok(duration), Ok(longest)) if (shortest..=longest).contains(&duration) => {
            Ok(duration)
        }
        _ => Err(format!(
            "a duration with its unit, from {shortest} to {longest}"
        )),
    }
}

/// How often something is done: within these bounds, or 0 for never.
pub fn interval(
    shortest: &'static str,
    longest: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    let (never, often) = (duration("0s", "0s"), duration(shortest, longest));
    move |text| never(text).or_else(|_| often(text).map_err(|expected| format!("0, or {expected}")))
}

pub fn text(text: &str) -> Result<String, &'static str> {
    match text.is_empty() {
        true => Err("left out, or set to a value"),
        false => Ok(text.to_owned()),
    }
}

/// The name of a server in its certificate.
pub fn server_name(text: &str) -> Result<String, &'static str> {
    match ServerName::try_from(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("a host name or an IP address"),
    }
}

/// A file that is there.
pub fn existing_file(text: &str) -> Result<PathBuf, String> {
    match fs::metadata(text) {
        Ok(_) => Ok(PathBuf::from(text)),
        Err(_) if text.is_empty() => Err("the path of a file".to_owned()),
        Err(error) => Err(format!("the path of a file: {error}")),
    }
}

pub fn account(text: &str) -> Result<AccountId, &'static str> {
    AccountId::parse(text).ok_or("1 to 64 characters of A-Z a-z 0-9 . _ : -")
}

pub fn subject(text: &str) -> Result<Subject, &'static str> {
    Subject::parse(text).ok_or("1 to 256 bytes without control characters")
}

/// A subject that a header can carry.
pub fn header_subject(text: &str) -> Result<String, &'static str> {
    let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let subject = Subject::parse(text).filter(|_| is_printable);
    let subject = subject.ok_or("1 to 256 printable ASCII characters")?;
    Ok(subject.as_str().to_owned())
}

/// A list of known scopes. A misspelled one would be missing in the token.
pub fn scopes(text: &str) -> Result<Vec<Scope>, &'static str> {
    let known = |name: &str| Scope::ALL.iter().any(|scope| scope.name() == name);
    let scopes = Scope::parse_list(text);
    (!scopes.is_empty() && text.split(' ').all(known))
        .then_some(scopes)
        .ok_or("a space-separated list of read, write, translate, admin and index")
}

pub fn request_id(text: &str) -> Result<RequestId, &'static str> {
    RequestId::parse(text).ok_or("a hyphenated UUID")
}

/// A language tag that the service accepts, but not a name such as `german`. Such names are
/// well-formed tags, but ISO 639 codes have at most three letters.
pub fn language(text: &str) -> Result<Language, &'static str> {
    Language::parse(text)
        .filter(|language| language.as_str().find('-').unwrap_or(text.len()) <= 3)
        .ok_or("a BCP-47 tag, such as de or pt-BR, and not the name of a language")
}

/// Levels, alone or as `part=level`. A name alone is refused, because a misspelled level would
/// count as the name of a part and silence the log.
pub fn log(text: &str) -> Result<Targets, &'static str> {
    let is_directive = |directive: &str| {
        let (part, level) = directive.split_once('=').unwrap_or((directive, directive));
        // An empty text would be the level `error`.
        !part.is_empty() && level.parse::<LevelFilter>().is_ok()
    };
    text.split(',')
        .all(is_directive)
        .then(|| text.parse().ok())
        .flatten()
        .ok_or(
            "off, error, warn, info, debug or trace, or a list such as info,expertise::store=debug",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_never_shows_a_secret() {
        let secret: Secret = "hush".parse().expect("a secret");
        assert_eq!(format!("{secret:?}"), MASK);
    }
}
