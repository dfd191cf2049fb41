//! Parameters of connections to PostgreSQL. The URL has them, or else the environment, from
//! which the driver takes them as other programs of PostgreSQL do. It ignores wrong ones.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::postgres::PgSslMode;

use super::{PostgresUrl, WrongSetting, names::Variables, settings::SettingValues};
use crate::pem::{self, PemError};

/// The modes of TLS.
pub(super) const SSL_MODES: &str = "disable, allow, prefer, require, verify-ca or verify-full";

/// A parameter by its names in a URL, and by that of its variable.
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

/// Begins a certificate or key that is given itself, which the driver takes, too.
const INLINE_PEM: &str = "-----BEGIN ";

/// The parameters of a setting that is a URL.
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
    /// Refuses values in the environment that the driver would ignore, and a certificate
    /// without its key.
    pub fn check_values(&self, values: &mut SettingValues) {
        let is_mode = |value: &str| PgSslMode::from_str(value).is_ok();
        self.check_variable(&SSL_MODE, is_mode, SSL_MODES, values);
        let is_port = |value: &str| value.parse::<u16>().is_ok_and(|port| port > 0);
        if self.url.has_no_port() {
            self.check_variable(&PORT, is_port, "a port from 1 to 65535", values);
        }
        for (given, missing) in [(&CERTIFICATE, &KEY), (&KEY, &CERTIFICATE)] {
            if let (Some(found), None) = (self.find(given), self.find(missing)) {
                self.refuse_alone(&found, given, missing, values);
            }
        }
    }

    /// Refuses files that are missing or have no certificate or key, where TLS is used.
    pub fn check_files(&self, values: &mut SettingValues) {
        let mode = self.find(&SSL_MODE);
        let mode = mode.map(|mode| mode.value.to_ascii_lowercase());
        if matches!(mode.as_deref(), Some("disable" | "allow")) {
            return;
        }
        let mut files: Vec<(Parameter, ReadPem)> = vec![(ROOT_CERTIFICATE, pem::authorities)];
        // One without the other is refused already.
        if self.find(&CERTIFICATE).is_some() && self.find(&KEY).is_some() {
            files.extend([
                (CERTIFICATE, pem::chain as ReadPem),
                (KEY, pem::key as ReadPem),
            ]);
        }
        for (parameter, read) in files {
            let Some(given) = self.find(&parameter) else {
                continue;
            };
            if given.value.starts_with(INLINE_PEM) {
                continue;
            }
            let path = PathBuf::from(&given.value);
            let Err(PemError {
                setting: _,
                path,
                expected,
                reason,
            }) = read(&path, parameter.variable)
            else {
                continue;
            };
            match given.in_url {
                Some(name) => values.refuse(
                    self.key,
                    format!("a URL whose {name} is a file with {expected}, but {path}: {reason}"),
                ),
                None => refuse_variable(
                    &parameter,
                    format!("{path:?}"),
                    format!("a file with {expected}: {reason}"),
                    values,
                ),
            }
        }
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

    /// Refuses a value of the environment, if the URL does not replace it.
    fn check_variable(
        &self,
        parameter: &Parameter,
        is_valid: impl Fn(&str) -> bool,
        expected: &str,
        values: &mut SettingValues,
    ) {
        if let Some(Given {
            in_url: None,
            value,
        }) = self.find(parameter)
            && !is_valid(&value)
        {
            refuse_variable(parameter, format!("{value:?}"), expected.to_owned(), values);
        }
    }

    /// Refuses a certificate without its key, or the reverse.
    fn refuse_alone(
        &self,
        found: &Given,
        given: &Parameter,
        missing: &Parameter,
        values: &mut SettingValues,
    ) {
        let other = missing.names.first().copied().unwrap_or_default();
        match &found.in_url {
            Some(name) => values.refuse(
                self.key,
                format!("a URL with {other} too, as it has {name}"),
            ),
            None => refuse_variable(
                missing,
                "unset".to_owned(),
                format!("set too, as {} is set", given.variable),
                values,
            ),
        }
    }
}

fn refuse_variable(
    parameter: &Parameter,
    value: String,
    expected: String,
    values: &mut SettingValues,
) {
    values.record::<()>(Err(WrongSetting::Value {
        setting: parameter.variable.to_owned(),
        value,
        expected,
    }));
}
