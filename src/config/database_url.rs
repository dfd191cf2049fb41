//! URLs of databases, and how they are shown without passwords.

use std::{collections::BTreeSet, fmt, path::PathBuf, str::FromStr};

use sqlx::postgres::PgConnectOptions;
use url::Url;

use super::postgres_parameters::SSL_MODES;
use crate::domain::misspelling::closest;

/// Replaces a secret wherever settings are shown.
pub const MASK: &str = "****";

/// Which database to use.
///
/// `Debug` and `Display` never show a password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// An SQLite file, created when it does not exist; a relative path starts at the
    /// working directory.
    SqliteFile(PathBuf),
    /// An SQLite database that ends with the process.
    SqliteMemory,
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

/// Parameters of a PostgreSQL URL, the driver's and `pgbouncer`, that may be shown.
const PUBLIC_PARAMETERS: [&str; 17] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "pgbouncer",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-root-cert",
    "statement-cache-capacity",
    "user",
];
/// Parameters of the driver that may hold a secret.
const SECRET_PARAMETERS: [&str; 2] = ["options", "password"];
/// The longest name of an unknown parameter that is shown, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 40;

/// What a URL must be, for errors; each of these four texts answers one fault.
const ENCODED_PASSWORD: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the characters \
                                @ / ? # % of a password percent-encoded";
const WITHOUT_OPTIONS: &str = "one without options where it has pgbouncer=true, as PgBouncer refuses \
                               them: use ALTER ROLE … SET or ALTER DATABASE … SET";
const ONE_HOST: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with one host: use a name or a \
                        proxy that leads to the current primary";
const VALID_PORT: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with a port from 1 to 65535, \
                          and the characters @ / ? # % of a password percent-encoded";

/// A PostgreSQL URL, password included, which `Debug` and `Display` never show.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// As it was given.
    text: String,
    /// Without the parameter `pgbouncer`.
    url: Url,
    pgbouncer: Option<bool>,
}

impl PostgresUrl {
    /// The URL as the driver understands it. It holds the password.
    pub fn for_the_driver(&self) -> &str {
        self.url.as_str()
    }

    /// The host or the directory of a socket, the port and the database that the driver uses,
    /// whether the URL or the environment has them; without user and password.
    pub fn address(&self) -> String {
        let Ok(options) = PgConnectOptions::from_str(self.for_the_driver()) else {
            return "postgres://".to_owned();
        };
        let (host, port) = (options.get_host(), options.get_port());
        let database = options.get_database().unwrap_or_default();
        let socket = options.get_socket().map(|path| path.to_string_lossy());
        let socket = socket.or_else(|| host.starts_with('/').then(|| host.into()));
        match socket {
            Some(socket) => format!("postgres:///{database}?host={socket}&port={port}"),
            None if host.contains(':') && !host.starts_with('[') => {
                format!("postgres://[{host}]:{port}/{database}")
            }
            None => format!("postgres://{host}:{port}/{database}"),
        }
    }

    /// A parameter by any of these names, with the name that it has; the last one counts.
    pub(super) fn parameter(&self, names: &[&str]) -> Option<(String, String)> {
        let pairs = self.url.query_pairs();
        let (name, value) = pairs.filter(|(name, _)| names.contains(&&**name)).last()?;
        Some((name.into_owned(), value.into_owned()))
    }

    /// Whether the URL has a password.
    pub(super) fn has_password(&self) -> bool {
        self.url.password().is_some() || self.parameter(&["password"]).is_some()
    }

    /// Whether the URL has no port behind the host. It may have one as a parameter.
    pub(super) fn has_no_port(&self) -> bool {
        self.url.port().is_none()
    }

    /// The parameter `pgbouncer`: whether PgBouncer is in front of the database and uses
    /// another connection for each transaction.
    pub fn pgbouncer(&self) -> Option<bool> {
        self.pgbouncer
    }

    /// Reads `postgres://…` or `postgresql://…`. The error says what a URL must be;
    /// it never repeats the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !is_postgres(text) {
            return Err("postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned());
        }
        let mut url = parse_url(text)?;
        let (ours, others): (Vec<&str>, Vec<&str>) = url
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .partition(|pair| pair.split('=').next() == Some("pgbouncer"));
        let mut pgbouncer = None;
        for pair in ours {
            pgbouncer = Some(match pair {
                "pgbouncer=true" => true,
                "pgbouncer=false" => false,
                _ => return Err("one with pgbouncer=true or pgbouncer=false".to_owned()),
            });
        }
        let query = (!others.is_empty()).then(|| others.join("&"));
        url.set_query(query.as_deref());
        check_parameters(&url)?;
        let mut names = url.query_pairs().map(|(name, _)| name);
        if pgbouncer == Some(true) && names.any(|name| is_options(&name)) {
            return Err(WITHOUT_OPTIONS.to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            url,
            pgbouncer,
        })
    }
}

/// Refuses parameters that the driver would ignore, and values that it would refuse. A
/// misspelt `sslmode` would connect without TLS.
fn check_parameters(url: &Url) -> Result<(), String> {
    let names: Vec<_> = url.query_pairs().map(|(name, _)| name).collect();
    let unknown: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
    let shown: Vec<&str> = unknown_names(url.query().unwrap_or_default()).collect();
    let meant: BTreeSet<&str> = unknown
        .iter()
        .filter_map(|name| closest_parameter(name))
        .collect();
    if !unknown.is_empty() {
        let advice = match meant.is_empty() {
            true => format!("known are {}", known_parameters().join(", ")),
            false => format!("did you mean {}?", Vec::from_iter(meant).join(", ")),
        };
        let without = match shown.is_empty() {
            true => String::new(),
            false => format!(", without {}", shown.join(", ")),
        };
        return Err(format!(
            "a URL with known parameters only{without}: {advice}"
        ));
    }
    if url
        .query_pairs()
        .any(|(name, value)| name == "host" && value.contains(','))
    {
        return Err(ONE_HOST.to_owned());
    }
    match refused_parameter(url) {
        Some(name) => Err(format!("a URL with {}", valid_value(name))),
        None => Ok(()),
    }
}

/// The names of unknown parameters that may be shown: none where one may be a part of a
/// password that is not percent-encoded.
fn unknown_names(query: &str) -> impl Iterator<Item = &str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let may_be_password = query.contains('@')
        || pairs
            .clone()
            .any(|(name, _)| SECRET_PARAMETERS.contains(&name));
    let is_name = |name: &str| {
        name.len() <= MAX_SHOWN_NAME_BYTES
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let unknown = pairs.map(|(name, _)| name).filter(|name| !is_known(name));
    unknown.filter(move |name| !may_be_password && is_name(name))
}

/// The first parameter whose value the driver refuses.
fn refused_parameter(url: &Url) -> Option<&'static str> {
    known_parameters().into_iter().find(|known| {
        let mut pairs = url.query_pairs().filter(|(name, _)| name == known);
        pairs.any(|(name, value)| {
            let mut alone = url.clone();
            alone.query_pairs_mut().clear().append_pair(&name, &value);
            PgConnectOptions::from_str(alone.as_str()).is_err()
        })
    })
}

/// What the value of a parameter must be.
fn valid_value(name: &str) -> String {
    match name {
        "sslmode" | "ssl-mode" => {
            format!("{name}={SSL_MODES}")
        }
        "port" => "port=NUMBER from 1 to 65535".to_owned(),
        "hostaddr" => "hostaddr=ADDRESS, an IP address".to_owned(),
        "statement-cache-capacity" => format!("{name}=NUMBER"),
        name => format!("a valid value of {name}"),
    }
}

fn is_known(name: &str) -> bool {
    PUBLIC_PARAMETERS.contains(&name)
        || SECRET_PARAMETERS.contains(&name)
        || is_options(name)
        || name.is_empty()
}

/// Whether a parameter sets settings of the session: `options` several, `options[NAME]` one.
fn is_options(name: &str) -> bool {
    name == "options" || name.starts_with("options[")
}

/// All parameters, in alphabetical order.
fn known_parameters() -> Vec<&'static str> {
    let mut known = [&PUBLIC_PARAMETERS[..], &SECRET_PARAMETERS].concat();
    known.sort_unstable();
    known
}

/// The parameter that a name may be a misspelling of.
fn closest_parameter(name: &str) -> Option<&'static str> {
    closest(name, known_parameters())
}

fn is_postgres(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("postgres" | "postgresql"))
}

/// Refuses what may be a password with characters that are not percent-encoded: a URL
/// would read its end as another part. The error says what a URL must be.
fn parse_url(text: &str) -> Result<Url, &'static str> {
    let before_query = text.split('?').next().unwrap_or_default();
    if before_query.matches('@').count() > 1 || text.contains('#') {
        return Err(ENCODED_PASSWORD);
    }
    let (_, rest) = before_query.split_once("://").unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains('@') {
        return Err(ENCODED_PASSWORD);
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.contains(',') {
        return Err(ONE_HOST);
    }
    Url::parse(text).map_err(|error| match error {
        url::ParseError::InvalidPort => VALID_PORT,
        _ => ENCODED_PASSWORD,
    })
}

impl DatabaseUrl {
    /// Reads `sqlite:PATH`, `sqlite://PATH`, `sqlite::memory:`, `postgres://…`
    /// or `postgresql://…`. The error says what a URL must be; it never repeats
    /// the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("sqlite:") {
            return Ok(parse_sqlite(rest.strip_prefix("//").unwrap_or(rest))?);
        }
        match is_postgres(text) {
            true => PostgresUrl::parse(text).map(Self::Postgres),
            false => Err(
                "sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE"
                    .to_owned(),
            ),
        }
    }

    /// The file, or host, port and database name, without user and password: what the
    /// start line and messages show.
    pub fn address(&self) -> String {
        match self {
            Self::SqliteFile(_) | Self::SqliteMemory => self.to_string(),
            Self::Postgres(url) => url.address(),
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.text))
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SqliteFile(path) => write!(f, "sqlite:{}", path.display()),
            Self::SqliteMemory => f.write_str("sqlite::memory:"),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Masks a text that may be a database URL, well-formed or not: everything before the
/// last `@` but the scheme and the user's name, and every parameter but those that are
/// known to hold no secret.
pub(super) fn mask(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let slashes = if scheme.is_empty() { "" } else { "://" };
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{}@", mask_user(user)), rest),
        None => (String::new(), rest),
    };
    let rest = match rest.split_once('?') {
        Some((address, parameters)) => format!("{address}?{}", mask_parameters(parameters)),
        None => rest.to_owned(),
    };
    format!("{scheme}{slashes}{credentials}{rest}")
}

fn mask_user(credentials: &str) -> String {
    let well_formed = !credentials.contains(['/', '?', '#', '@']);
    match credentials.split_once(':') {
        Some((user, "")) if well_formed => format!("{user}:"),
        Some((user, _)) if well_formed => format!("{user}:{MASK}"),
        None if well_formed => credentials.to_owned(),
        Some(_) | None => MASK.to_owned(),
    }
}

fn mask_parameters(parameters: &str) -> String {
    let masked = parameters
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if PUBLIC_PARAMETERS.contains(&name) => pair.to_owned(),
            Some((name, _)) if is_known(name) || closest_parameter(name).is_some() => {
                format!("{name}={MASK}")
            }
            // An unknown name may be part of a password that contains a `&`.
            Some(_) | None => MASK.to_owned(),
        });
    masked.collect::<Vec<_>>().join("&")
}

fn parse_sqlite(path: &str) -> Result<DatabaseUrl, &'static str> {
    if path == ":memory:" {
        Ok(DatabaseUrl::SqliteMemory)
    } else if path.is_empty() || path.contains('?') {
        Err("sqlite:PATH with a file's path and no parameters, or sqlite::memory:")
    } else {
        Ok(DatabaseUrl::SqliteFile(PathBuf::from(path)))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests;
