//! How a running server is reached, and in whose name: what every command that
//! calls one is told. Flags over environment over defaults; the settings file is
//! the server's and holds none of it.

use std::{path::PathBuf, time::Duration};

use clap::Arg;

use super::{
    WrongSetting,
    secret::Secret,
    sources::Values,
    table::{Fallback, Setting},
    value,
};
use crate::domain::ids::AccountId;

/// A server and who calls it, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Where the service is, `http://` or `https://`.
    pub server: String,
    /// What TLS needs.
    pub trust: Trust,
    /// Who asks.
    pub credentials: Credentials,
    /// How often and how soon a failed call is repeated.
    pub retry: RetrySettings,
}

/// How often and how soon a failed call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Attempts after the first.
    pub retries: u32,
    /// The pause before the first repetition; it doubles each time.
    pub first_pause: Duration,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// An account that the server believes, as one with `header` authentication
    /// does.
    Account(AccountId),
    /// A bearer token.
    Token(Secret),
}

/// Whom a connection over TLS trusts, and what it shows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Certificates of those who vouch for the server, in place of those whom the
    /// machine trusts.
    pub ca_file: Option<PathBuf>,
    /// The certificate that is shown, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the server's certificate is for, if it is not the address's.
    pub server_name: Option<String>,
}

pub(super) const SERVER: Setting = Setting {
    key: "server",
    unit: "URL",
    default: Fallback::Value("http://127.0.0.1:50051"),
    help: "Where the service is, https:// where it speaks TLS",
};
const ACCOUNT: Setting = Setting {
    key: "account",
    unit: "ID",
    default: Fallback::Depends("none, this or a token must be set"),
    help: "The account, sent as x-account-id to a server with header authentication",
};
pub(super) const TOKEN: Setting = Setting {
    key: "token",
    unit: "TOKEN",
    default: Fallback::Depends("none, this or an account must be set"),
    help: "A bearer token that opens what the command does; others see flags, so rather set the \
           environment",
};
const CA_FILE: Setting = Setting {
    key: "ca_file",
    unit: "PATH",
    default: Fallback::Depends("those whom the machine trusts"),
    help: "Trust a server whose certificate is from these authorities, in PEM",
};
const CLIENT_CERT_FILE: Setting = Setting {
    key: "client_cert_file",
    unit: "PATH",
    default: Fallback::Depends("none"),
    help: "The certificate to show to a server that asks for one, in PEM",
};
const CLIENT_KEY_FILE: Setting = Setting {
    key: "client_key_file",
    unit: "PATH",
    default: Fallback::Depends("none"),
    help: "The private key of that certificate, in PEM",
};
const SERVER_NAME: Setting = Setting {
    key: "server_name",
    unit: "NAME",
    default: Fallback::Depends("that of the URL"),
    help: "The name that the server's certificate is for",
};
const RETRIES: Setting = Setting {
    key: "retries",
    unit: "COUNT",
    default: Fallback::Value("5"),
    help: "How often a failed request is repeated, 0 to 100",
};
const BACKOFF: Setting = Setting {
    key: "backoff",
    unit: "DURATION",
    default: Fallback::Value("500ms"),
    help: "The pause before the first repetition; it doubles each time, up to 30s",
};

/// Every setting of a connection, in the order of `--help`.
pub(super) const ALL: [Setting; 9] = [
    SERVER,
    ACCOUNT,
    TOKEN,
    CA_FILE,
    CLIENT_CERT_FILE,
    CLIENT_KEY_FILE,
    SERVER_NAME,
    RETRIES,
    BACKOFF,
];

/// Those that say whom to trust.
pub(super) const TRUST: [Setting; 4] = [CA_FILE, CLIENT_CERT_FILE, CLIENT_KEY_FILE, SERVER_NAME];

/// The flags of a connection.
pub(super) fn args() -> impl Iterator<Item = Arg> {
    ALL.into_iter().map(arg)
}

/// The flag of one setting of a connection.
pub(super) fn arg(setting: Setting) -> Arg {
    setting.arg().help_heading("Connection")
}

impl Connection {
    pub(super) fn read(values: &Values) -> Result<Self, WrongSetting> {
        let server = values.read_or_default(&SERVER, value::web_address)?;
        Ok(Self {
            trust: Trust::read(values, &server)?,
            server,
            credentials: credentials(values)?,
            retry: RetrySettings {
                retries: values.read_or_default(&RETRIES, value::number(0..=100))?,
                first_pause: values.read_or_default(&BACKOFF, value::duration(Duration::ZERO))?,
            },
        })
    }
}

impl Trust {
    /// What only TLS would look at is refused without TLS: whoever says whom to trust
    /// does not want to send a token in the clear.
    pub(super) fn read(values: &Values, server: &str) -> Result<Self, WrongSetting> {
        let plain = !server.starts_with("https:");
        if let Some(stray) = TRUST.iter().find(|it| plain && values.named(it).is_some()) {
            let right = format!("left out, as {server} is without TLS: name it with https://");
            return Err(values.wrong(stray, right));
        }
        let cert_file = values.read(&CLIENT_CERT_FILE, value::path)?;
        let key_file = values.read(&CLIENT_KEY_FILE, value::path)?;
        Ok(Self {
            ca_file: values.read(&CA_FILE, value::path)?,
            identity: match (cert_file, key_file) {
                (Some(cert_file), Some(key_file)) => Some((cert_file, key_file)),
                (Some(_), None) => {
                    let right = "set too, as there is a certificate to show";
                    return Err(values.wrong(&CLIENT_KEY_FILE, right));
                }
                (None, Some(_)) => {
                    let right = "set too, as there is a key of it";
                    return Err(values.wrong(&CLIENT_CERT_FILE, right));
                }
                (None, None) => None,
            },
            server_name: values.read(&SERVER_NAME, value::text)?,
        })
    }
}

fn credentials(values: &Values) -> Result<Credentials, WrongSetting> {
    let account = values.read(&ACCOUNT, value::account)?;
    let token = values.read(&TOKEN, value::secret)?;
    match (account, token) {
        (Some(account), None) => Ok(Credentials::Account(account)),
        (None, Some(token)) => Ok(Credentials::Token(token)),
        (None, None) => {
            let right = "an account (or give --account demo), unless EXPERTISE_TOKEN is set";
            Err(values.wrong(&ACCOUNT, right))
        }
        (Some(_), Some(_)) => Err(values.wrong(&ACCOUNT, "left out, as a token names its account")),
    }
}
