//! Where the data lives.

use std::{fmt, path::PathBuf};

/// What stands in place of a secret wherever settings are shown.
pub const MASK: &str = "****";

/// Which database to use.
///
/// `Debug` and `Display` never show a password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// An SQLite file, made when it does not exist; a relative path starts at
    /// the working directory.
    SqliteFile(PathBuf),
    /// An SQLite database that ends with the process.
    SqliteMemory,
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

/// Parameters of a PostgreSQL URL, ours and the driver's, that may be shown.
const OPEN_PARAMETERS: [&str; 17] = [
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
/// Those that may hold a secret.
const HIDDEN_PARAMETERS: [&str; 2] = ["options", "password"];

/// A PostgreSQL URL, password included, which `Debug` and `Display` never show.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// As it was given.
    given: String,
    /// Without the parameter that is ours.
    driver: String,
    pgbouncer: Option<bool>,
}

impl PostgresUrl {
    /// The URL as the driver understands it. It holds the password.
    pub fn for_the_driver(&self) -> &str {
        &self.driver
    }

    /// The database by its place and name, without user and password.
    pub fn place(&self) -> String {
        let url = Parts::of(&self.given);
        format!("postgres://{}{}", url.host, url.path)
    }

    /// Whether PgBouncer stands before the database and hands out another
    /// connection for each transaction: the parameter `pgbouncer=true` or `false`.
    /// `None` when it says neither.
    pub fn pgbouncer(&self) -> Option<bool> {
        self.pgbouncer
    }

    /// How many parameters mean nothing here. What looks like the name of one may be a
    /// part of a password that holds a `&`.
    pub fn unknown_parameters(&self) -> usize {
        let (_, parameters) = self.driver.split_once('?').unwrap_or_default();
        let names = parameters
            .split('&')
            .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
        let unknown = names.filter(|name| {
            let known = OPEN_PARAMETERS.contains(name)
                || HIDDEN_PARAMETERS.contains(name)
                || name.starts_with("options[");
            !known && !name.is_empty()
        });
        unknown.count()
    }

    /// Reads `postgres://…` or `postgresql://…`. The error says what a URL must be;
    /// it never repeats the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = match text.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => rest,
            Some(_) | None => return Err("postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
        };
        check_postgres(rest).ok_or("postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the characters @ / ? # of a password percent-encoded")?;
        let (place, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut pgbouncer = None;
        let mut driver = place.to_owned();
        for pair in parameters.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("pgbouncer", "true") => pgbouncer = Some(true),
                ("pgbouncer", "false") => pgbouncer = Some(false),
                ("pgbouncer", _) => return Err("pgbouncer=true or pgbouncer=false"),
                _ => {
                    driver.push(if driver.contains('?') { '&' } else { '?' });
                    driver.push_str(pair);
                }
            }
        }
        Ok(Self {
            given: text.to_owned(),
            driver,
            pgbouncer,
        })
    }
}

impl DatabaseUrl {
    /// Reads `sqlite:PATH`, `sqlite://PATH`, `sqlite::memory:`, `postgres://…`
    /// or `postgresql://…`. The error says what a URL must be; it never repeats
    /// the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(rest) = text.strip_prefix("sqlite:") {
            return parse_sqlite(rest.strip_prefix("//").unwrap_or(rest));
        }
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => PostgresUrl::parse(text).map(Self::Postgres),
            Some(_) | None => {
                Err("sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE")
            }
        }
    }

    /// The database by its place and name, without user and password: what the
    /// start line and messages show.
    pub fn place(&self) -> String {
        match self {
            Self::SqliteFile(_) | Self::SqliteMemory => self.to_string(),
            Self::Postgres(url) => url.place(),
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.given))
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

/// A text that may be a database URL, well-formed or not, without its password:
/// everything before the last `@` but the scheme and the user's name is masked,
/// and so is every parameter but those that are known to hold no secret: in one that is
/// misspelled there may be one.
pub(super) fn mask(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let slashes = if scheme.is_empty() { "" } else { "://" };
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{}@", mask_user(user)), rest),
        None => (String::new(), rest),
    };
    let rest = match rest.split_once('?') {
        Some((place, parameters)) => format!("{place}?{}", mask_parameters(parameters)),
        None => rest.to_owned(),
    };
    format!("{scheme}{slashes}{credentials}{rest}")
}

fn mask_user(credentials: &str) -> String {
    let well_formed = !credentials.contains(['/', '?', '#', '@']);
    match credentials.split_once(':') {
        Some((user, _)) if well_formed => format!("{user}:{MASK}"),
        None if well_formed => credentials.to_owned(),
        Some(_) | None => MASK.to_owned(),
    }
}

fn mask_parameters(parameters: &str) -> String {
    let masked = parameters
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if OPEN_PARAMETERS.contains(&name) => pair.to_owned(),
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
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

/// The shape that every driver agrees on; the rest is the driver's to judge.
fn check_postgres(rest: &str) -> Option<()> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host =
        authority.rsplit_once('@').map_or(
            authority,
            |(user, host)| {
                if user.contains('@') { "@" } else { host }
            },
        );
    let port = match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port,
        Some(_) | None => "",
    };
    let valid = !host.contains('@')
        && (port.is_empty() || port.parse::<u16>().is_ok())
        && !rest.contains('#')
        // Whatever follows the host holds no user: an `@` there is a password
        // that was not encoded.
        && !rest.get(authority.len()..)?.split('?').next()?.contains('@');
    valid.then_some(())
}

struct Parts<'a> {
    host: &'a str,
    path: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let rest = rest.split('?').next().unwrap_or_default();
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let host = authority.rsplit('@').next().unwrap_or_default();
        Self { host, path }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_sqlite_is_read() {
        for (text, path) in [
            ("sqlite:expertise.db", "expertise.db"),
            ("sqlite://expertise.db", "expertise.db"),
            ("sqlite:/var/lib/e.db", "/var/lib/e.db"),
            ("sqlite:///var/lib/e.db", "/var/lib/e.db"),
        ] {
            assert_eq!(
                DatabaseUrl::parse(text),
                Ok(DatabaseUrl::SqliteFile(PathBuf::from(path))),
                "{text}"
            );
        }
        for text in ["sqlite::memory:", "sqlite://:memory:"] {
            assert_eq!(DatabaseUrl::parse(text), Ok(DatabaseUrl::SqliteMemory));
        }
    }

    #[test]
    fn what_is_no_database_url_is_refused() {
        for text in [
            "",
            "expertise.db",
            "sqlite:",
            "sqlite://",
            "sqlite:e.db?mode=rwc",
            "mysql://localhost/e",
            "postgres:localhost/e",
            "postgres://u:p@host:port/e",
            "postgres://u:p/w@host/e",
            "postgres://u:p@w@host/e",
        ] {
            assert!(DatabaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pooler_is_named_by_a_parameter_that_the_driver_does_not_see() {
        for (text, driver, pgbouncer) in [
            ("postgres://db/e", "postgres://db/e", None),
            (
                "postgres://db/e?pgbouncer=true",
                "postgres://db/e",
                Some(true),
            ),
            (
                "postgres://db/e?pgbouncer=false",
                "postgres://db/e",
                Some(false),
            ),
            (
                "postgres://db/e?sslmode=require&pgbouncer=true&user=ann",
                "postgres://db/e?sslmode=require&user=ann",
                Some(true),
            ),
        ] {
            let url = DatabaseUrl::parse(text).expect(text);
            assert_eq!(url.to_string(), text);
            let DatabaseUrl::Postgres(url) = url else {
                panic!("{text}");
            };
            assert_eq!((url.for_the_driver(), url.pgbouncer()), (driver, pgbouncer));
        }
        for text in ["postgres://db/e?pgbouncer=yes", "postgres://db/e?pgbouncer"] {
            assert!(DatabaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_password_is_ever_shown() {
        for (text, shown, place) in [
            (
                "postgres://ann:secret@db:5432/e?sslmode=require",
                "postgres://ann:****@db:5432/e?sslmode=require",
                "postgres://db:5432/e",
            ),
            (
                "postgresql://db/e?user=ann&password=secret",
                "postgresql://db/e?user=ann&password=****",
                "postgres://db/e",
            ),
            (
                "postgres://db/e?pasword=secret&options=-c%20x%3Dsecret&secret",
                "postgres://db/e?pasword=****&options=****&****",
                "postgres://db/e",
            ),
            (
                "postgres://ann@[::1]:5432/e",
                "postgres://ann@[::1]:5432/e",
                "postgres://[::1]:5432/e",
            ),
            (
                "postgres:///e?host=/run/postgresql",
                "postgres:///e?host=/run/postgresql",
                "postgres:///e",
            ),
        ] {
            let url = DatabaseUrl::parse(text).expect(text);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
            assert_eq!(url.place(), place);
        }
    }

    #[test]
    fn parameters_that_mean_nothing_are_counted() {
        let url =
            "postgres://db/e?pasword=a&sslmode=require&pgbouncer=true&options=-c&password=b&x";
        let url = PostgresUrl::parse(url).expect("a URL");
        assert_eq!(url.unknown_parameters(), 2);
    }

    #[test]
    fn malformed_urls_are_masked_too() {
        for text in [
            "postgres://ann:sec/ret@db/e",
            "postgres://ann:sec?ret@db/e",
            "postgres://ann:sec@ret@db/e",
            "ann:secret@db/e",
            "mysql://ann:secret@db/e",
        ] {
            let shown = mask(text);
            assert!(!shown.contains("sec") && !shown.contains("ret"), "{shown}");
        }
    }
}
