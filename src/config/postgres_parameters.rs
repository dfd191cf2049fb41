//! Parameters of connections to PostgreSQL, which the URL or else the environment has. The driver
//! ignores invalid ones, so a misspelt mode would connect without TLS.

use std::{env, num::NonZeroU16, path::Path, str::FromStr};

use sqlx::postgres::PgSslMode;

use super::{
    DatabaseUrl, PostgresUrl,
    read::{unset, wrong},
};
use crate::pem::{self, PemError};

/// The modes of TLS.
pub(super) const SSL_MODES: &str = "disable, allow, prefer, require, verify-ca or verify-full";

/// How a PEM given in place of a path begins.
const INLINE_PEM: &str = "-----BEGIN ";

/// A connection parameter: its names in a URL, and its variable.
struct Parameter(&'static [&'static str], &'static str);

const SSL_MODE: Parameter = Parameter(&["sslmode", "ssl-mode"], "PGSSLMODE");
const PORT: Parameter = Parameter(&["port"], "PGPORT");
const ROOTS: Parameter = Parameter(&["sslrootcert", "ssl-root-cert", "ssl-ca"], "PGSSLROOTCERT");
const CERTIFICATE: Parameter = Parameter(&["sslcert", "ssl-cert"], "PGSSLCERT");
const KEY: Parameter = Parameter(&["sslkey", "ssl-key"], "PGSSLKEY");

/// A value, and the parameter or variable that has it.
struct Given {
    name: String,
    value: String,
}

impl Parameter {
    /// The value that the driver uses. An empty variable counts as unset.
    fn find(&self, url: &PostgresUrl) -> Option<Given> {
        let Self(names, variable) = self;
        if let Some((name, value)) = url.parameter(names) {
            let name = format!("{name} in EXPERTISE_DATABASE_URL");
            return Some(Given { name, value });
        }
        let value = env::var(variable).ok().filter(|value| !value.is_empty())?;
        let name = (*variable).to_owned();
        Some(Given { name, value })
    }
}

/// What is wrong, a line each: values that the driver would ignore and, where TLS is used, files that
/// it could not use.
pub(super) fn check(url: &DatabaseUrl) -> Vec<String> {
    let DatabaseUrl::Postgres(url) = url else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let mode = SSL_MODE.find(url);
    let parsed = mode.as_ref().map(|mode| PgSslMode::from_str(&mode.value));
    if let (Some(Given { name, value }), Some(Err(_))) = (&mode, &parsed) {
        faults.push(wrong(name, value, SSL_MODES));
    }
    if let Some(Given { name, value }) = PORT.find(url).filter(|_| url.has_no_port())
        && value.parse::<NonZeroU16>().is_err()
    {
        faults.push(wrong(name, value, "a port from 1 to 65535"));
    }
    let mode = parsed.and_then(Result::ok).unwrap_or_default();
    if matches!(mode, PgSslMode::Disable | PgSslMode::Allow) {
        return faults;
    }
    let (certificate, key) = (CERTIFICATE.find(url), KEY.find(url));
    let missing = match (&certificate, &key) {
        (Some(given), None) => Some(("PGSSLKEY", "sslkey", &given.name)),
        (None, Some(given)) => Some(("PGSSLCERT", "sslcert", &given.name)),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let Some((variable, parameter, given)) = missing {
        let expected = format!("set too, or {parameter} in the URL, as {given} is set");
        faults.push(unset(variable, expected));
        return faults;
    }
    // The driver reads the root certificates only to check the server's certificate.
    let verifies = matches!(mode, PgSslMode::VerifyCa | PgSslMode::VerifyFull);
    let roots = ROOTS.find(url).filter(|_| verifies);
    faults.extend(check_file(roots, pem::authorities));
    faults.extend(check_file(certificate, pem::chain));
    faults.extend(check_file(key, pem::key));
    faults
}

fn check_file(
    file: Option<Given>,
    read: fn(&Path, &str) -> Result<Vec<u8>, PemError>,
) -> Option<String> {
    let Given { name, value } = file.filter(|file| !file.value.starts_with(INLINE_PEM))?;
    read(Path::new(&value), &name)
        .err()
        .map(|error| error.to_string())
}
