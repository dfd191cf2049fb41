//! Parameters of connections to PostgreSQL. The URL has them, or else the environment, from
//! which the driver takes them as other programs of PostgreSQL do. The driver ignores
//! invalid values.

use std::{path::Path, str::FromStr};

use sqlx::postgres::PgSslMode;

use super::{PostgresUrl, WrongSetting, names::Variables, settings::GivenSettings};
use crate::pem::{self, PemError};

/// The modes of TLS.
pub(super) const SSL_MODES: &str = "disable, allow, prefer, require, verify-ca or verify-full";

/// A connection parameter: its names in a URL, and its variable.
struct Parameter {
    names: &'static [&'static str],
    variable: &'static str,
}

const SSL_MODE: Parameter = Parameter {
    names: &["sslmode", "ssl-mode"],
    variable: "PGSSLMODE",
};
const ROOT_CERTIFICATE: Parameter = Parameter {
    names: &["sslrootcert", "ssl-root-cert", "ssl-ca"],
    variable: "PGSSLROOTCERT",
};
const CERTIFICATE: Parameter = Parameter {
    names: &["sslcert", "ssl-cert"],
    variable: "PGSSLCERT",
};
const KEY: Parameter = Parameter {
    names: &["sslkey", "ssl-key"],
    variable: "PGSSLKEY",
};
const PORT: Parameter = Parameter {
    names: &["port"],
    variable: "PGPORT",
};

/// The variables of these parameters.
pub(super) const VARIABLES: [&str; 5] = [
    SSL_MODE.variable,
    ROOT_CERTIFICATE.variable,
    CERTIFICATE.variable,
    KEY.variable,
    PORT.variable,
];

/// How a PEM given in place of a path begins.
const INLINE_PEM: &str = "-----BEGIN ";

/// A setting's PostgreSQL URL, and the environment that completes it.
pub(super) struct PostgresParameters<'a> {
    pub key: &'static str,
    pub url: &'a PostgresUrl,
    pub environment: &'a Variables,
}

/// The value of a parameter, and how the user named it.
struct Given {
    /// The name of the parameter in the URL; `None` if it is from the environment.
    in_url: Option<String>,
    value: String,
}

/// Reads a PEM file for a setting.
pub(super) type ReadPem = fn(&Path, &str) -> Result<Vec<u8>, PemError>;

impl PostgresParameters<'_> {
    /// Refuses values in the environment that the driver would ignore, and, where TLS is used,
    /// a certificate without its key.
    pub fn check_values(&self, given: &GivenSettings) -> Result<(), WrongSetting> {
        let is_mode = |value: &str| PgSslMode::from_str(value).is_ok();
        self.check_variable(&SSL_MODE, is_mode, SSL_MODES)?;
        let is_port = |value: &str| value.parse::<u16>().is_ok_and(|port| port > 0);
        if self.url.has_no_port() {
            self.check_variable(&PORT, is_port, "a port from 1 to 65535")?;
        }
        if !self.uses_tls() {
            return Ok(());
        }
        for (parameter, missing) in [(&CERTIFICATE, &KEY), (&KEY, &CERTIFICATE)] {
            if let (Some(found), None) = (self.find(parameter), self.find(missing)) {
                return Err(self.unpaired(&found, parameter, missing, given));
            }
        }
        Ok(())
    }

    /// Refuses files that the driver would read and that are missing or have no certificate or
    /// key.
    pub fn check_files(&self, given: &GivenSettings) -> Result<(), WrongSetting> {
        if !self.uses_tls() {
            return Ok(());
        }
        // The driver reads the root certificates only to check the server's certificate.
        let mode = self.ssl_mode();
        if matches!(mode, PgSslMode::VerifyCa | PgSslMode::VerifyFull) {
            self.check_file(&ROOT_CERTIFICATE, pem::authorities, given)?;
        }
        self.check_file(&CERTIFICATE, pem::chain, given)?;
        self.check_file(&KEY, pem::key, given)
    }

    fn check_file(
        &self,
        parameter: &Parameter,
        read: ReadPem,
        given: &GivenSettings,
    ) -> Result<(), WrongSetting> {
        let file = self.find(parameter);
        let Some(file) = file.filter(|file| !file.value.starts_with(INLINE_PEM)) else {
            return Ok(());
        };
        let Err(PemError {
            setting: _,
            path,
            expected,
            reason,
        }) = read(Path::new(&file.value), parameter.variable)
        else {
            return Ok(());
        };
        Err(match file.in_url {
            Some(name) => given.wrong(
                self.key,
                format!("a URL whose {name} is a file with {expected}, but {path}: {reason}"),
            ),
            None => WrongSetting::Value {
                setting: parameter.variable.to_owned(),
                value: format!("{path:?}"),
                expected: format!("a file with {expected}: {reason}"),
            },
        })
    }

    /// Whether the driver may use TLS.
    fn uses_tls(&self) -> bool {
        !matches!(self.ssl_mode(), PgSslMode::Disable | PgSslMode::Allow)
    }

    /// The mode that the driver uses: an invalid one in the environment is its default.
    fn ssl_mode(&self) -> PgSslMode {
        let mode = self.find(&SSL_MODE);
        let mode = mode.and_then(|mode| PgSslMode::from_str(&mode.value).ok());
        mode.unwrap_or_default()
    }

    fn find(&self, parameter: &Parameter) -> Option<Given> {
        if let Some((name, value)) = self.url.parameter(parameter.names) {
            let in_url = Some(name);
            return Some(Given { in_url, value });
        }
        let value = self.environment.get(parameter.variable)?;
        Some(Given {
            in_url: None,
            value: value.to_string_lossy().into_owned(),
        })
    }

    /// Refuses a value of the environment, if the URL does not replace it. An empty one counts
    /// as unset, as with the driver.
    fn check_variable(
        &self,
        parameter: &Parameter,
        is_valid: impl Fn(&str) -> bool,
        expected: &str,
    ) -> Result<(), WrongSetting> {
        match self.find(parameter) {
            Some(Given {
                in_url: None,
                value,
            }) if !value.is_empty() && !is_valid(&value) => Err(WrongSetting::Value {
                setting: parameter.variable.to_owned(),
                value: format!("{value:?}"),
                expected: expected.to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The error of a certificate without its key, or the reverse.
    fn unpaired(
        &self,
        found: &Given,
        parameter: &Parameter,
        missing: &Parameter,
        given: &GivenSettings,
    ) -> WrongSetting {
        let other = missing.names.first().copied().unwrap_or_default();
        match &found.in_url {
            Some(name) => given.wrong(
                self.key,
                format!("a URL with {other} too, as it has {name}"),
            ),
            None => WrongSetting::Value {
                setting: missing.variable.to_owned(),
                value: "unset".to_owned(),
                expected: format!("set too, as {} is set", parameter.variable),
            },
        }
    }
}
