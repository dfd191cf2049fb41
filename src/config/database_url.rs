//! Database URLs, which are displayed without passwords.

use std::{
    env, fmt, fs,
    num::NonZeroU16,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::{Position, Url};

use super::{
    MASK,
    read::{unset, wrong},
};
use crate::pem::{self, PemError};

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

    /// The problems with the connection parameters, one per line.
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
const FORM: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE with one host, a port from 1 to \
    65535, and user and password percent-encoded: @ as %40, / as %2F, ? as %3F, # as %23, % as %25";
const SSL_MODES: &str = "disable, allow, prefer, require, verify-ca or verify-full";
/// The beginning of an inline PEM instead of a path.
const INLINE_PEM: &str = "-----BEGIN ";

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
        let url = Url::parse(text).map_err(|_| FORM)?;
        let is_list = |hosts: &str| hosts.contains(',');
        let mut parameters = url.query_pairs();
        if has_stray_password(&url)
            || url.host_str().is_some_and(is_list)
            || parameters.any(|(name, value)| name == "host" && is_list(&value))
        {
            return Err(FORM.to_owned());
        }
        if !url.query_pairs().all(|(name, _)| is_known(&name)) {
            return Err(format!(
                "a URL with known parameters only: options, password, {PUBLIC_PARAMETERS}"
            ));
        }
        let valid = format!(
            "a URL with valid parameters: sslmode is {SSL_MODES}, port 1 to 65535, hostaddr an IP \
             address, and statement-cache-capacity a number"
        );
        let is_encoded = url[Position::BeforeUsername..Position::BeforeHost].contains('%');
        match PgConnectOptions::from_str(url.as_str()) {
            Ok(_) => Ok(Self(url)),
            Err(_) if is_encoded => Err(format!("{FORM}; and {valid}")),
            Err(_) => Err(valid),
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

    /// A password file that the driver ignores because other users have permissions on it. `None`
    /// if the URL or `PGPASSWORD` has the password.
    pub fn ignored_password_file(&self) -> Option<PathBuf> {
        let has_password = self.0.password().is_some() || self.parameter(&["password"]).is_some();
        if has_password || env::var_os("PGPASSWORD").is_some() {
            return None;
        }
        let named = env::var_os("PGPASSFILE").map(PathBuf::from);
        let of_home = env::home_dir().map(|home| home.join(".pgpass"));
        named.into_iter().chain(of_home).find(|file| {
            let metadata = fs::metadata(file);
            metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
        })
    }

    /// Whether the URL has a password with a `%`.
    pub fn has_encoded_password(&self) -> bool {
        self.0.password().is_some_and(|it| it.contains('%'))
    }

    /// The last parameter with any of these names, and its name.
    fn parameter(&self, names: &[&str]) -> Option<(String, String)> {
        let pairs = self.0.query_pairs();
        let (name, value) = pairs.filter(|(name, _)| names.contains(&&**name)).last()?;
        Some((format!("{name} in EXPERTISE_DATABASE_URL"), value.into()))
    }

    /// The value that the driver uses, and the name of its parameter, or else of its variable. An
    /// empty variable counts as unset.
    fn find(&self, names: &[&str], variable: &str) -> Option<(String, String)> {
        let value = || env::var(variable).ok().filter(|value| !value.is_empty());
        self.parameter(names)
            .or_else(|| Some((variable.to_owned(), value()?)))
    }

    /// Values that the driver would ignore, and TLS files that it could not use.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut mode = PgSslMode::default();
        if let Some((name, value)) = self.find(&["sslmode", "ssl-mode"], "PGSSLMODE") {
            match value.parse() {
                Ok(given) => mode = given,
                Err(_) => faults.push(wrong(name, value, SSL_MODES)),
            }
        }
        if let Some((name, value)) = self.find(&["port"], "PGPORT")
            && self.0.port().is_none()
            && value.parse::<NonZeroU16>().is_err()
        {
            faults.push(wrong(name, value, "a port from 1 to 65535"));
        }
        if matches!(mode, PgSslMode::Disable | PgSslMode::Allow) {
            return faults;
        }
        let certificate = self.find(&["sslcert", "ssl-cert"], "PGSSLCERT");
        let key = self.find(&["sslkey", "ssl-key"], "PGSSLKEY");
        let missing = match (&certificate, &key) {
            (Some((given, _)), None) => Some(("PGSSLKEY", "sslkey", given)),
            (None, Some((given, _))) => Some(("PGSSLCERT", "sslcert", given)),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some((variable, parameter, given)) = missing {
            let expected = format!("set too, or {parameter} in the URL, because {given} is set");
            faults.push(unset(variable, expected));
            return faults;
        }
        // The driver only reads the root certificates to verify the server's certificate.
        let verifies = matches!(mode, PgSslMode::VerifyCa | PgSslMode::VerifyFull);
        let roots = self.find(&["sslrootcert", "ssl-root-cert", "ssl-ca"], "PGSSLROOTCERT");
        type Check = fn(&Path, &str) -> Result<(), PemError>;
        let files: [(_, Check); 3] = [
            (roots.filter(|_| verifies), |path, name| {
                pem::ca_certificates(path, name).map(drop)
            }),
            (certificate, |path, name| pem::chain(path, name).map(drop)),
            (key, |path, name| pem::key(path, name).map(drop)),
        ];
        faults.extend(files.into_iter().filter_map(|(file, check)| {
            let (name, path) = file.filter(|(_, path)| !path.starts_with(INLINE_PEM))?;
            Some(check(Path::new(&path), &name).err()?.to_string())
        }));
        faults
    }
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
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if is_public(name) => pair.to_owned(),
        Some((name, _)) if is_known(name) => format!("{name}={MASK}"),
        // It may be part of a password that contains a `&`.
        Some(_) | None => MASK.to_owned(),
    };
    let query = url.query().map(|query| query.split('&').map(shown));
    let query = query.map(|pairs| pairs.collect::<Vec<_>>().join("&"));
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
        postgresql://db/e?user=ann&password=secret postgresql://db/e?user=ann&password=**** postgres://db:5432/e
        postgres://db/e?options=-c%20x%3Dsecret&options[a]=b postgres://db/e?options=****&options[a]=**** postgres://db:5432/e
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
