//! How a running server is reached and who calls it: the settings of every command that
//! calls one. They come from flags and the environment; the settings file is the
//! server's and holds none of them.

use std::{fs, path::PathBuf, time::Duration};

use clap::Args;

use super::{
    WrongSetting,
    secret::Secret,
    settings::{GivenSettings, SettingOrigin},
    value,
};
use crate::domain::ids::AccountId;

/// A server and who calls it, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionConfig {
    /// Where the service is, `http://` or `https://`.
    pub server: String,
    /// What TLS needs.
    pub trust: Trust,
    /// Who calls.
    pub credentials: Credentials,
    /// How often and how soon a failed call is repeated.
    pub retry: RetrySettings,
    /// The flags of the server and the account as they were given, each after a space, for
    /// commands that are printed.
    pub flags: String,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// An account, for a server that trusts metadata (`header`).
    Account(AccountId),
    /// A bearer token.
    Token(Secret),
}

/// Which certificates a connection over TLS trusts, and which it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Certificates of the authorities that are trusted, in place of the system's
    /// certificate store.
    pub ca_file: Option<PathBuf>,
    /// The certificate that is shown, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the server's certificate is for, if it is not the address's.
    pub server_name: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct ConnectionSettings {
    /// The URL of the service, with https:// if it uses TLS
    #[arg(
        short,
        value_name = "URL",
        default_value = "http://127.0.0.1:50051",
        value_parser = value::web_address
    )]
    server: String,
    /// The account, sent as x-account-id to a server with header authentication [default: none, this or a token must be set]
    #[arg(short, value_name = "ID", value_parser = value::account)]
    account: Option<AccountId>,
    /// A bearer token that allows what the command does; set it in the environment, as other users of the machine see flags [default: none, this or an account must be set]
    #[arg(value_name = "TOKEN", value_parser = value::secret)]
    token: Option<Secret>,
    #[command(flatten)]
    trust: TrustSettings,
    #[command(flatten)]
    retry: RetrySettings,
}

#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct TrustSettings {
    /// Trust a server whose certificate is from these authorities, in PEM [default: the system's certificate store]
    #[arg(value_name = "PATH", value_parser = value::path)]
    ca_file: Option<PathBuf>,
    /// The certificate to show to a server that requires one, in PEM
    #[arg(value_name = "PATH", value_parser = value::path)]
    client_cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(value_name = "PATH", value_parser = value::path)]
    client_key_file: Option<PathBuf>,
    /// The name that the server's certificate is for [default: that of the URL]
    #[arg(value_name = "NAME", value_parser = value::text)]
    server_name: Option<String>,
}

/// How often and how soon a failed call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct RetrySettings {
    /// How often a failed request is repeated, 0 to 100
    #[arg(value_name = "COUNT", default_value = "5", value_parser = value::number::<u32>(0..=100))]
    pub retries: u32,
    /// The pause before the first repetition; it doubles each time, up to 30s
    #[arg(
        id = "backoff",
        value_name = "DURATION",
        default_value = "500ms",
        value_parser = value::duration(Duration::ZERO)
    )]
    pub first_pause: Duration,
}

impl ConnectionSettings {
    pub fn connection(self, given: &GivenSettings) -> Result<ConnectionConfig, WrongSetting> {
        let credentials = match (self.account, self.token) {
            (Some(account), None) => Credentials::Account(account),
            (None, Some(token)) => Credentials::Token(token),
            (None, None) => {
                let expected = "set (or use --account ID), or EXPERTISE_TOKEN";
                return Err(given.wrong("account", expected));
            }
            (Some(_), Some(_)) => {
                let expected = "left out, as a token contains its account";
                return Err(given.wrong("account", expected));
            }
        };
        let flags = ["server", "account"].iter().filter_map(|key| {
            let is_flag = given.origin(key) == Some(&SettingOrigin::Flag);
            let text = given.text(key).filter(|_| is_flag)?;
            Some(format!(" --{key} {text}"))
        });
        Ok(ConnectionConfig {
            trust: self.trust.trust(given, &self.server)?,
            server: self.server,
            credentials,
            retry: self.retry,
            flags: flags.collect(),
        })
    }
}

impl TrustSettings {
    /// Refuses settings of TLS for a server without TLS, so that no token is sent
    /// unencrypted by mistake.
    pub fn trust(self, given: &GivenSettings, server: &str) -> Result<Trust, WrongSetting> {
        let keys = [
            "ca_file",
            "client_cert_file",
            "client_key_file",
            "server_name",
        ];
        let of_tls = keys.into_iter().find(|key| given.origin(key).is_some());
        if let Some(key) = of_tls
            && !server.starts_with("https:")
        {
            let url = match given.origin("server") {
                Some(_) => "begin the URL with https://",
                None => "set EXPERTISE_SERVER to a URL that begins with https://",
            };
            let expected = format!("left out, as {server} has no TLS: {url}");
            return Err(given.wrong(key, expected));
        }
        for key in ["ca_file", "client_cert_file", "client_key_file"] {
            if let Some(Err(error)) = given.text(key).map(fs::metadata) {
                return Err(given.wrong(key, format!("the path of a file: {error}")));
            }
        }
        Ok(Trust {
            ca_file: self.ca_file,
            identity: match (self.client_cert_file, self.client_key_file) {
                (Some(cert_file), Some(key_file)) => Some((cert_file, key_file)),
                (Some(_), None) => {
                    return Err(given.unset_though_given("client_key_file", "client_cert_file"));
                }
                (None, Some(_)) => {
                    return Err(given.unset_though_given("client_cert_file", "client_key_file"));
                }
                (None, None) => None,
            },
            server_name: self.server_name,
        })
    }
}
