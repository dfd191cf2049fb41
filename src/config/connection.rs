//! The connection settings of commands that call a server: its address and the caller. They come
//! from flags and the environment, but not from the settings file, which is for servers.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::Args;

use super::{
    Secret,
    read::{ConfigError, fail_if_any, unset, wrong},
    server::DEFAULT_LISTEN,
    settings_file::SettingsFileArg,
    value,
};
use crate::{domain::ids::AccountId, terminal::shell_word};

const DEFAULT_SERVER: &str = "http://127.0.0.1:50051";

// A server and who calls it: an account, for a server that trusts metadata (`header`), or a token. Not a
// doc comment, for the reason given at `Trust`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionConfig {
    /// The URL of the service, with https:// if it uses TLS
    #[arg(
        short,
        env,
        value_name = "URL",
        default_value = DEFAULT_SERVER,
        value_parser = value::server_url
    )]
    pub server: String,
    /// The account, sent as x-account-id to a server with header authentication [default: none, this or a token must be set]
    #[arg(short, env, value_parser = value::account)]
    pub account: Option<AccountId>,
    /// Your name, sent as x-subject with the account: the author in the log, the history and the changes [default: none, a token contains its own]
    #[arg(env, value_name = "NAME", value_parser = value::header_subject)]
    pub subject: Option<String>,
    /// A bearer token with the scopes that the command needs; set it in the environment, because other users of the machine can see flags [default: none, this or an account must be set]
    #[arg(env, value_name = "TOKEN")]
    pub token: Option<Secret>,
    #[command(flatten)]
    pub trust: Trust,
    #[command(flatten)]
    pub retry: RetrySettings,
}

// Which certificates a TLS connection trusts, and which it presents. Not a doc comment: clap would show
// it as the description of each command that flattens this.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Connection")]
pub struct Trust {
    /// Trust servers with a certificate from these CAs, in PEM [default: the system's certificate store]
    #[arg(env, value_parser = value::existing_file)]
    pub ca_file: Option<PathBuf>,
    /// The certificate to present to a server that requires one, in PEM
    #[arg(env, value_parser = value::existing_file)]
    pub client_cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(env, value_parser = value::existing_file)]
    pub client_key_file: Option<PathBuf>,
    /// The name that the server's certificate must be valid for [default: the host of the URL]
    #[arg(env, value_name = "NAME", value_parser = value::server_name)]
    pub server_name: Option<String>,
}

// How often and how soon a failed call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct RetrySettings {
    /// How often a failed request is retried, 0 to 100
    #[arg(env, default_value = "5", value_parser = value::number::<u32>(0..=100))]
    pub retries: u32,
    /// The pause before the first retry; it doubles each time, up to 30s
    #[arg(
        id = "backoff",
        env,
        default_value = "500ms",
        value_parser = value::duration("0s", "1day")
    )]
    pub first_pause: Duration,
}

impl ConnectionConfig {
    /// Checks the settings against each other.
    pub fn check(self) -> Result<Self, ConfigError> {
        fail_if_any(self.faults())?;
        Ok(self)
    }

    pub(super) fn faults(&self) -> Vec<String> {
        const ACCOUNT: &str = "EXPERTISE_ACCOUNT";
        let fault = match (&self.account, &self.token, &self.subject) {
            (Some(_), None, _) | (None, Some(_), None) => None,
            (None, Some(_), Some(subject)) => {
                let expected = "left out, because a token contains its subject";
                Some(wrong("EXPERTISE_SUBJECT", subject, expected))
            }
            (None, None, _) => {
                let expected = "set (--account ID), unless EXPERTISE_TOKEN is set";
                Some(unset(ACCOUNT, expected))
            }
            (Some(account), Some(_), _) => {
                let expected = "left out, because a token contains its account";
                Some(wrong(ACCOUNT, account, expected))
            }
        };
        let trust = self.trust.faults(&self.server);
        fault.into_iter().chain(trust).collect()
    }

    /// The flags of the server and the caller for printed commands, each after a space. Leaves out
    /// flags that the environment already sets.
    pub fn flags(&self) -> String {
        let account = self.account.as_ref().map(AccountId::as_str);
        let flags = [
            ("server", "EXPERTISE_SERVER", Some(self.server.as_str())),
            ("account", "EXPERTISE_ACCOUNT", account),
            ("subject", "EXPERTISE_SUBJECT", self.subject.as_deref()),
        ];
        let flags = flags.into_iter().filter_map(|(flag, variable, value)| {
            let default = if flag == "server" { DEFAULT_SERVER } else { "" };
            let known = env::var(variable).unwrap_or_else(|_| default.to_owned());
            let value = value.filter(|value| *value != known)?;
            Some(format!(" --{flag} {}", shell_word(value)))
        });
        flags.collect()
    }
}

impl Trust {
    /// Refuses TLS settings for a server without TLS, so no token is sent unencrypted by mistake.
    fn faults(&self, server: &str) -> Vec<String> {
        const CERT_FILE: &str = "EXPERTISE_CLIENT_CERT_FILE";
        const KEY_FILE: &str = "EXPERTISE_CLIENT_KEY_FILE";
        let path = |file: &Option<PathBuf>| Some(file.as_ref()?.display().to_string());
        let mut faults = Vec::new();
        if !server.starts_with("https:") {
            let expected = format!(
                "left out, because {server} has no TLS: set EXPERTISE_SERVER to a URL that begins \
                 with https://"
            );
            let unused = [
                ("EXPERTISE_CA_FILE", path(&self.ca_file)),
                (CERT_FILE, path(&self.client_cert_file)),
                (KEY_FILE, path(&self.client_key_file)),
                ("EXPERTISE_SERVER_NAME", self.server_name.clone()),
            ];
            faults.extend(
                unused
                    .into_iter()
                    .filter_map(|(setting, value)| Some(wrong(setting, value?, &expected))),
            );
        }
        if self.client_cert_file.is_some() != self.client_key_file.is_some() {
            faults.push(format!("{CERT_FILE} and {KEY_FILE} must be set together"));
        }
        faults
    }
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct HealthConfig {
    /// The URL of the service, with https:// if it uses TLS; overrides --listen [default: this machine, according to the settings of the server]
    #[arg(short, env, value_name = "URL", value_parser = value::server_url, help_heading = "Connection")]
    server: Option<String>,
    #[command(flatten)]
    pub trust: Trust,
    /// The address that the server on this machine listens on
    #[arg(env, default_value = DEFAULT_LISTEN, value_parser = value::address(50051))]
    listen: SocketAddr,
    /// The certificate of the server on this machine, which serves TLS if this is set
    #[arg(env)]
    tls_cert_file: Option<PathBuf>,
    #[command(flatten)]
    file: SettingsFileArg,
}

impl HealthConfig {
    /// Checks the settings against each other.
    pub fn check(self) -> Result<Self, ConfigError> {
        fail_if_any(self.trust.faults(&self.server()))?;
        Ok(self)
    }

    /// The URL of the server whose health is checked, `http://` or `https://`.
    pub fn server(&self) -> String {
        let local = || local_url(self.listen, self.tls_cert_file.is_some());
        self.server.clone().unwrap_or_else(local)
    }
}

/// The URL of a server on this machine that listens on this address.
fn local_url(mut listen: SocketAddr, tls: bool) -> String {
    if listen.ip().is_unspecified() {
        listen.set_ip(match listen.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{listen}")
}
