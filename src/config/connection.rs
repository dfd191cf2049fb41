//! How a running server is reached and who calls it: the settings of every command that
//! calls one. They come from flags and the environment; the settings file is the
//! server's and holds none of them.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::Args;

use super::{
    Secret,
    read::{Checked, both, none_of, pair, unset, wrong},
    server::DEFAULT_LISTEN,
    settings_file::SettingsFileArg,
    value,
};
use crate::{domain::ids::AccountId, terminal::shell_word};

const DEFAULT_SERVER: &str = "http://127.0.0.1:50051";

/// A server and who calls it, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionConfig {
    /// Where the service is, `http://` or `https://`.
    pub server: String,
    pub trust: Trust,
    pub credentials: Credentials,
    pub retry: RetrySettings,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// An account, for a server that trusts metadata (`header`).
    Account {
        account: AccountId,
        /// The author of changes; `None` makes them anonymous.
        subject: Option<String>,
    },
    /// A bearer token.
    Token(Secret),
}

/// Which certificates a TLS connection trusts, and which it presents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Certificates of the CAs that are trusted, in place of the system's certificate store.
    pub ca_file: Option<PathBuf>,
    /// The certificate to present, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the server's certificate must be valid for, if it differs from the address.
    pub server_name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionSettings {
    /// The URL of the service, with https:// if it uses TLS
    #[arg(
        short,
        env,
        value_name = "URL",
        default_value = DEFAULT_SERVER,
        value_parser = value::web_address
    )]
    server: String,
    /// The account, sent as x-account-id to a server with header authentication [default: none, this or a token must be set]
    #[arg(short, env, value_parser = value::account)]
    account: Option<AccountId>,
    /// Your name, sent as x-subject with the account: the author in the log, the history and the changes [default: none, a token contains its own]
    #[arg(env, value_name = "NAME", value_parser = value::header_subject)]
    subject: Option<String>,
    /// A bearer token with the scopes that the command needs; set it in the environment, because other users of the machine can see flags [default: none, this or an account must be set]
    #[arg(env, value_name = "TOKEN")]
    token: Option<Secret>,
    #[command(flatten)]
    trust: TrustSettings,
    #[command(flatten)]
    retry: RetrySettings,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Connection")]
struct TrustSettings {
    /// Trust servers with a certificate from these CAs, in PEM [default: the system's certificate store]
    #[arg(env, value_parser = value::existing_file)]
    ca_file: Option<PathBuf>,
    /// The certificate to present to a server that requires one, in PEM
    #[arg(env, value_parser = value::existing_file)]
    client_cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(env, value_parser = value::existing_file)]
    client_key_file: Option<PathBuf>,
    /// The name that the server's certificate must be valid for [default: the host of the URL]
    #[arg(env, value_name = "NAME", value_parser = value::text)]
    server_name: Option<String>,
}

// How often and how soon a failed call is repeated. Not a doc comment: clap would show it as the
// description of each command that flattens this.
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

impl ConnectionSettings {
    /// Checks the settings against each other.
    pub fn check(self) -> Checked<ConnectionConfig> {
        const ACCOUNT: &str = "EXPERTISE_ACCOUNT";
        let credentials = match (self.account, self.token) {
            (Some(account), None) => Ok(Credentials::Account {
                account,
                subject: self.subject,
            }),
            (None, Some(token)) => match self.subject {
                Some(subject) => {
                    let expected = "left out, as a token contains its subject";
                    Err(wrong("EXPERTISE_SUBJECT", subject, expected))
                }
                None => Ok(Credentials::Token(token)),
            },
            (None, None) => {
                let expected = "set (or use --account ID), or EXPERTISE_TOKEN";
                Err(unset(ACCOUNT, expected))
            }
            (Some(account), Some(_)) => {
                let expected = "left out, as a token contains its account";
                Err(wrong(ACCOUNT, account, expected))
            }
        };
        let (credentials, trust) = both(credentials, self.trust.check(&self.server))?;
        Ok(ConnectionConfig {
            server: self.server,
            trust,
            credentials,
            retry: self.retry,
        })
    }
}

impl ConnectionConfig {
    /// The flags of the server and the caller, each after a space, for commands that are printed.
    /// What the environment says, too, is left out.
    pub fn flags(&self) -> String {
        let (account, subject) = match &self.credentials {
            Credentials::Account { account, subject } => {
                (Some(account.as_str()), subject.as_deref())
            }
            Credentials::Token(_) => (None, None),
        };
        let flags = [
            ("server", "EXPERTISE_SERVER", Some(self.server.as_str())),
            ("account", "EXPERTISE_ACCOUNT", account),
            ("subject", "EXPERTISE_SUBJECT", subject),
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

impl TrustSettings {
    /// Refuses settings of TLS for a server without TLS, so that no token is sent
    /// unencrypted by mistake.
    fn check(self, server: &str) -> Checked<Trust> {
        const CERT_FILE: &str = "EXPERTISE_CLIENT_CERT_FILE";
        const KEY_FILE: &str = "EXPERTISE_CLIENT_KEY_FILE";
        let path = |path: &Option<PathBuf>| Some(path.as_ref()?.display().to_string());
        let mut faults = Vec::new();
        if !server.starts_with("https:") {
            let expected = format!(
                "left out, as {server} has no TLS: set EXPERTISE_SERVER to a URL that begins with \
                 https://"
            );
            let given = [
                ("EXPERTISE_CA_FILE", path(&self.ca_file)),
                (CERT_FILE, path(&self.client_cert_file)),
                (KEY_FILE, path(&self.client_key_file)),
                ("EXPERTISE_SERVER_NAME", self.server_name.clone()),
            ];
            let fault = |(name, value): (_, Option<String>)| Some(wrong(name, value?, &expected));
            faults.extend(given.into_iter().filter_map(fault).flatten());
        }
        let cert_file = (CERT_FILE, self.client_cert_file);
        let identity = pair(cert_file, (KEY_FILE, self.client_key_file));
        let ((), identity) = both(none_of(faults), identity)?;
        Ok(Trust {
            ca_file: self.ca_file,
            identity,
            server_name: self.server_name,
        })
    }
}

/// A server whose health is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// Its URL, `http://` or `https://`.
    pub server: String,
    pub trust: Trust,
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct HealthSettings {
    /// The URL of the service, with https:// if it uses TLS; overrides --listen [default: this machine, according to the settings of the server]
    #[arg(short, env, value_name = "URL", value_parser = value::web_address, help_heading = "Connection")]
    server: Option<String>,
    #[command(flatten)]
    trust: TrustSettings,
    /// The address that the server on this machine listens on
    #[arg(env, default_value = DEFAULT_LISTEN, value_parser = value::address(50051))]
    listen: SocketAddr,
    /// The certificate of the server on this machine, which serves TLS if this is set
    #[arg(env)]
    tls_cert_file: Option<PathBuf>,
    #[command(flatten)]
    file: SettingsFileArg,
}

impl HealthSettings {
    /// Checks the settings against each other.
    pub fn check(self) -> Checked<HealthConfig> {
        let server = self
            .server
            .unwrap_or_else(|| local_url(self.listen, self.tls_cert_file.is_some()));
        let trust = self.trust.check(&server)?;
        Ok(HealthConfig { server, trust })
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
