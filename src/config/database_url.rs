//! URLs of databases, and how they are shown without passwords.

use std::{env, fmt, fs, os::unix::fs::PermissionsExt, path::PathBuf, str::FromStr};

use sqlx::postgres::PgConnectOptions;
use url::Url;

use super::postgres_parameters::SSL_MODES;

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

/// Parameters of a PostgreSQL URL that may be shown.
const PUBLIC_PARAMETERS: [&str; 16] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
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

/// What a PostgreSQL URL must be, for errors.
const FORM: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with a port from 1 to 65535, and \
                    the characters @ / ? # % of a password percent-encoded";
/// What the URL must be where its password may be the cause.
const ENCODED: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with user and password \
                       percent-encoded: @ as %40, / as %2F, ? as %3F, # as %23, % as %25";
const ONE_HOST: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with one host: use a name or a \
                        proxy that leads to the current primary";

/// A PostgreSQL URL, password included, which `Debug` and `Display` never show.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// As it was given.
    text: String,
    url: Url,
}

impl PostgresUrl {
    /// The URL for the driver. It holds the password.
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

    /// A password file that the driver ignores, as users other than its owner have
    /// permissions on it. `None` where the URL or `PGPASSWORD` has the password.
    pub fn ignored_password_file(&self) -> Option<PathBuf> {
        let has_password = self.url.password().is_some() || self.parameter(&["password"]).is_some();
        if has_password || env::var_os("PGPASSWORD").is_some() {
            return None;
        }
        let named = env::var_os("PGPASSFILE").map(PathBuf::from);
        let of_home = env::home_dir().map(|home| home.join(".pgpass"));
        let mut files = named.into_iter().chain(of_home);
        files.find(|file| {
            let metadata = fs::metadata(file);
            metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
        })
    }

    /// Whether the URL has a password with a `%`.
    pub fn has_encoded_password(&self) -> bool {
        self.url.password().is_some_and(|it| it.contains('%'))
    }

    /// Whether the URL has no port behind the host. It may have one as a parameter.
    pub(super) fn has_no_port(&self) -> bool {
        self.url.port().is_none()
    }

    /// Reads `postgres://…` or `postgresql://…`. The error says what a URL must be;
    /// it never repeats the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !is_postgres(text) {
            return Err("postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned());
        }
        let url = Url::parse(text).map_err(|_| match is_cut_in_password(text) {
            true => ENCODED,
            false => FORM,
        })?;
        if has_stray_password(&url) {
            return Err(ENCODED.to_owned());
        }
        check_parameters(&url)?;
        Ok(Self {
            text: text.to_owned(),
            url,
        })
    }
}

/// Refuses parameters that the driver would ignore, and values that it would refuse. A
/// misspelt `sslmode` would connect without TLS.
fn check_parameters(url: &Url) -> Result<(), String> {
    let is_list = |hosts: &str| hosts.contains(',');
    let mut pairs = url.query_pairs();
    if url.host_str().is_some_and(is_list)
        || pairs.any(|(name, value)| name == "host" && is_list(&value))
    {
        return Err(ONE_HOST.to_owned());
    }
    if !url.query_pairs().all(|(name, _)| is_known(&name)) {
        let mut known = [&PUBLIC_PARAMETERS[..], &SECRET_PARAMETERS].concat();
        known.sort_unstable();
        let known = known.join(", ");
        return Err(format!("a URL with known parameters only: {known}"));
    }
    match PgConnectOptions::from_str(url.as_str()) {
        Ok(_) => Ok(()),
        Err(_) if is_wrong_in_credentials(url) => Err(ENCODED.to_owned()),
        Err(_) => Err(format!(
            "a URL with valid parameters: sslmode is {SSL_MODES}, port 1 to 65535, hostaddr an IP \
             address, and statement-cache-capacity a number"
        )),
    }
}

/// Whether the driver would take the URL without its user and password.
fn is_wrong_in_credentials(url: &Url) -> bool {
    let mut url = url.clone();
    let removed = url.set_password(None).and_then(|()| url.set_username(""));
    removed.is_ok() && PgConnectOptions::from_str(url.as_str()).is_ok()
}

/// Whether the part of a URL that has user, password and host ends before an `@`, as it does at a
/// `/`, `?` or `#` of a password.
fn is_cut_in_password(text: &str) -> bool {
    let behind_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = behind_scheme.split_once(['/', '?', '#']);
    rest.is_some_and(|(_, rest)| rest.contains('@'))
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

fn is_postgres(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("postgres" | "postgresql"))
}

/// Whether a part behind the host may be the end of a password that is not percent-encoded.
fn has_stray_password(url: &Url) -> bool {
    url.fragment().is_some()
        || url.path().contains('@')
        || url.query().is_some_and(|query| query.contains('@'))
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

/// Masks a text that may be a URL: its password, and every parameter but those that are known to
/// hold no secret. One that cannot be parsed is not shown at all.
pub(super) fn mask(text: &str) -> String {
    if !text.contains(['@', '?', '#']) {
        return text.to_owned();
    }
    let url = Url::parse(text).ok();
    let Some(mut url) = url.filter(|url| !has_stray_password(url)) else {
        return MASK.to_owned();
    };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    if let Some(query) = url.query().map(mask_parameters) {
        url.set_query(Some(&query));
    }
    url.into()
}

fn mask_parameters(parameters: &str) -> String {
    let masked = parameters
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if PUBLIC_PARAMETERS.contains(&name) => pair.to_owned(),
            Some((name, _)) if is_known(name) => format!("{name}={MASK}"),
            // It may be a part of a password that contains a `&`.
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
