//! Database URLs, which are displayed without passwords.

use std::{env, fmt, num::NonZeroU16, path::PathBuf, str::FromStr};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

use super::{MASK, read::wrong};

/// The database to use. `Debug` never shows a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// An SQLite file, created if it does not exist. A relative path starts at the working
    /// directory.
    SqliteFile(PathBuf),
    /// An SQLite database that ends with the process.
    SqliteMemory,
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

impl FromStr for DatabaseUrl {
    type Err = String;

    /// Reads `sqlite:PATH`, `sqlite://PATH`, `sqlite::memory:`, `postgres://…` or `postgresql://…`.
    /// The error never repeats the text.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", rest)) => match rest.strip_prefix("//").unwrap_or(rest) {
                ":memory:" => Ok(Self::SqliteMemory),
                path if path.is_empty() || path.contains('?') => Err(
                    "sqlite:PATH with a file's path and no parameters, or sqlite::memory:".into(),
                ),
                path => Ok(Self::SqliteFile(path.into())),
            },
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                PostgresUrl::parse(text).map(Self::Postgres)
            }
            _ => Err(
                "sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE"
                    .into(),
            ),
        }
    }
}

impl DatabaseUrl {
    /// The file, or the host, port and database name, without user and password. The start line and
    /// messages show it.
    pub fn address(&self) -> String {
        match self {
            Self::SqliteFile(path) => format!("sqlite:{}", path.display()),
            Self::SqliteMemory => "sqlite::memory:".to_owned(),
            Self::Postgres(url) => url.address(),
        }
    }

    /// The problems with variables of PostgreSQL, one per line.
    pub(super) fn faults(&self) -> Vec<String> {
        match self {
            Self::SqliteFile(_) | Self::SqliteMemory => Vec::new(),
            Self::Postgres(url) => url.faults(),
        }
    }
}

/// Parameters of a PostgreSQL URL that may be shown.
const PUBLIC_PARAMETERS: &str = "application_name, dbname, host, hostaddr, port, ssl-ca, ssl-cert, \
    ssl-key, ssl-mode, ssl-root-cert, sslcert, sslkey, sslmode, sslrootcert, \
    statement-cache-capacity, user";
/// What a PostgreSQL URL must be.
const FORM: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with a port from 1 to 65535, and \
    user and password percent-encoded: @ as %40, / as %2F, ? as %3F, # as %23, % as %25";
const SSL_MODES: &str = "disable, allow, prefer, require, verify-ca or verify-full";

/// A PostgreSQL URL, password included, which `Debug` never shows.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(Url);

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(self.0.as_str()))
    }
}

impl PostgresUrl {
    /// Also refuses what the driver would ignore. For example, a misspelled `sslmode` would connect
    /// without TLS.
    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| !has_stray_password(url)).ok_or(FORM)?;
        if !url.query_pairs().all(|(name, _)| is_known(&name)) {
            return Err(format!(
                "a URL with known parameters only: options, password, {PUBLIC_PARAMETERS}"
            ));
        }
        match PgConnectOptions::from_str(url.as_str()) {
            Ok(_) => Ok(Self(url)),
            Err(_) => Err(format!(
                "{FORM}; sslmode is {SSL_MODES}, hostaddr an IP address, and \
                 statement-cache-capacity a number"
            )),
        }
    }

    /// The options of the driver, with the password. It reads the password file each time.
    #[allow(clippy::expect_used)]
    pub fn options(&self) -> PgConnectOptions {
        PgConnectOptions::from_str(self.0.as_str()).expect("`parse` refuses other URLs")
    }

    /// The host or socket directory, the port and the database that the driver uses, from the URL
    /// or the environment, without user and password.
    pub fn address(&self) -> String {
        let options = self.options();
        let (host, port) = (options.get_host(), options.get_port());
        let database = options.get_database().unwrap_or_default();
        let socket = options.get_socket().map(|path| path.to_string_lossy());
        match socket.or_else(|| host.starts_with('/').then(|| host.into())) {
            Some(socket) => format!("postgres:///{database}?host={socket}&port={port}"),
            None if host.contains(':') && !host.starts_with('[') => {
                format!("postgres://[{host}]:{port}/{database}")
            }
            None => format!("postgres://{host}:{port}/{database}"),
        }
    }

    /// Variables that the driver uses for this URL, but ignores if their values are wrong. An empty
    /// variable counts as unset.
    fn faults(&self) -> Vec<String> {
        let has = |names: &[&str]| self.0.query_pairs().any(|(it, _)| names.contains(&&*it));
        let mut faults = Vec::new();
        if !has(&["sslmode", "ssl-mode"]) {
            faults.extend(wrong_variable::<PgSslMode>("PGSSLMODE", SSL_MODES));
        }
        if self.0.port().is_none() && !has(&["port"]) {
            faults.extend(wrong_variable::<NonZeroU16>(
                "PGPORT",
                "a port from 1 to 65535",
            ));
        }
        faults
    }
}

fn wrong_variable<T: FromStr>(variable: &str, expected: &str) -> Option<String> {
    let value = env::var(variable).ok().filter(|value| !value.is_empty())?;
    let parsed = value.parse::<T>();
    parsed.is_err().then(|| wrong(variable, value, expected))
}

fn is_public(parameter: &str) -> bool {
    PUBLIC_PARAMETERS.split(", ").any(|it| it == parameter)
}

/// Whether the driver knows a parameter. Those that are not public may hold a secret: `options`
/// sets several settings of the session, `options[NAME]` one.
fn is_known(parameter: &str) -> bool {
    is_public(parameter)
        || ["", "options", "password"].contains(&parameter)
        || parameter.starts_with("options[")
}

/// Whether a part after the host may be the end of a password that is not percent-encoded.
fn has_stray_password(url: &Url) -> bool {
    url.fragment().is_some()
        || url.path().contains('@')
        || url.query().is_some_and(|query| query.contains('@'))
}

/// Masks a text that may be a URL: its password, and every parameter that may contain a secret. A
/// text that cannot be parsed is masked completely.
pub(super) fn mask(text: &str) -> String {
    if !text.contains(['@', '?', '#']) {
        return text.to_owned();
    }
    let url = Url::parse(text).ok().filter(|it| !has_stray_password(it));
    let Some(mut url) = url else {
        return MASK.to_owned();
    };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    // Another parameter may be a secret, or a part of one that contains a `&`.
    let is_shown = |pair: &&str| {
        pair.split_once('=')
            .is_some_and(|(name, _)| is_public(name))
    };
    let query = url.query().map(|query| {
        let pairs = query.split('&');
        let shown = pairs.map(|pair| if is_shown(&pair) { pair } else { MASK });
        shown.collect::<Vec<_>>().join("&")
    });
    url.set_query(query.as_deref());
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// URLs, their display form, and their addresses.
    const SHOWN: &str = "
        sqlite:e.db sqlite:e.db sqlite:e.db
        sqlite://e.db sqlite://e.db sqlite:e.db
        sqlite:///v/e.db sqlite:///v/e.db sqlite:/v/e.db
        sqlite::memory: sqlite::memory: sqlite::memory:
        sqlite://:memory: sqlite://:memory: sqlite::memory:
        postgres://ann:secret@db:5432/e?sslmode=require postgres://ann:****@db:5432/e?sslmode=require postgres://db:5432/e
        postgresql://db/e?user=ann&password=secret postgresql://db/e?user=ann&**** postgres://db:5432/e
        postgres://db/e?options=-c%20x%3Dsecret&options[a]=b postgres://db/e?****&**** postgres://db:5432/e
        postgres://ann@[::1]:5432/e postgres://ann@[::1]:5432/e postgres://[::1]:5432/e
        postgres://ann:sec@ret@db/e postgres://ann:****@db/e postgres://db:5432/e
        postgres:///e?host=/run/postgresql postgres:///e?host=/run/postgresql postgres:///e?host=/run/postgresql&port=5432
        postgres://ann:se,c%75%25@db/e postgres://ann:****@db/e postgres://db:5432/e
    ";

    #[test]
    fn a_url_is_read_and_shown_without_its_password() {
        for line in SHOWN.trim().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let url: DatabaseUrl = words[0].parse().expect(line);
            assert_eq!([mask(words[0]), url.address()], words[1..]);
            assert!(!format!("{url:?}").contains("sec"), "{url:?}");
        }
    }
}
