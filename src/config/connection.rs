//! How a running server is reached and who calls it: the settings of every command that
//! calls one. They come from flags and the environment; the settings file is the
//! server's and holds none of them.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{
    read::{Checked, unset, wrong},
    secret::Secret,
    server::DEFAULT_LISTEN,
    value,
};
use crate::domain::ids::AccountId;

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
    Account(AccountId),
    /// A bearer token.
    Token(Secret),
}

/// Which certificates a connection over TLS trusts, and which it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Certificates of the CAs that are trusted, in place of the system's certificate store.
    pub ca_file: Option<PathBuf>,
    /// The certificate that is shown, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the server's certificate is for, if it is not the address's.
    pub server_name: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionSettings {
    /// The URL of the service, with https:// if it uses TLS
    #[arg(
        short,
        long,
        env = "EXPERTISE_SERVER",
        value_name = "URL",
        default_value = DEFAULT_SERVER,
        value_parser = value::web_address
    )]
    server: String,
    /// The account, sent as x-account-id to a server with header authentication [default: none, this or a token must be set]
    #[arg(
        short,
        long,
        env = "EXPERTISE_ACCOUNT",
        value_name = "ID",
        value_parser = value::account
    )]
    account: Option<AccountId>,
    /// A bearer token that allows what the command does; set it in the environment, as other users of the machine see flags [default: none, this or an account must be set]
    #[arg(
        long,
        env = "EXPERTISE_TOKEN",
        value_name = "TOKEN",
        value_parser = value::secret
    )]
    token: Option<Secret>,
    #[command(flatten)]
    trust: TrustSettings,
    #[command(flatten)]
    retry: RetrySettings,
}

#[derive(Args)]
#[command(next_help_heading = "Connection")]
struct TrustSettings {
    /// Trust a server whose certificate is from these CAs, in PEM [default: the system's certificate store]
    #[arg(long, env = "EXPERTISE_CA_FILE", value_name = "PATH", value_parser = value::existing_file)]
    ca_file: Option<PathBuf>,
    /// The certificate to show to a server that requires one, in PEM
    #[arg(long, env = "EXPERTISE_CLIENT_CERT_FILE", value_name = "PATH", value_parser = value::existing_file)]
    client_cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(long, env = "EXPERTISE_CLIENT_KEY_FILE", value_name = "PATH", value_parser = value::existing_file)]
    client_key_file: Option<PathBuf>,
    /// The name that the server's certificate is for [default: that of the URL]
    #[arg(
        long,
        env = "EXPERTISE_SERVER_NAME",
        value_name = "NAME",
        value_parser = NonEmptyStringValueParser::new()
    )]
    server_name: Option<String>,
}

/// How often and how soon a failed call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct RetrySettings {
    /// How often a failed request is repeated, 0 to 100
    #[arg(
        long,
        env = "EXPERTISE_RETRIES",
        value_name = "COUNT",
        default_value = "5",
        value_parser = value::number::<u32>(0..=100)
    )]
    pub retries: u32,
    /// The pause before the first repetition; it doubles each time, up to 30s
    #[arg(
        id = "backoff",
        long,
        env = "EXPERTISE_BACKOFF",
        value_name = "DURATION",
        default_value = "500ms",
        value_parser = value::duration(Duration::ZERO)
    )]
    pub first_pause: Duration,
}

impl Checked for ConnectionConfig {
    type Settings = ConnectionSettings;

    fn check(settings: ConnectionSettings) -> Result<Self, Vec<String>> {
        const ACCOUNT: &str = "EXPERTISE_ACCOUNT";
        let ConnectionSettings {
            server,
            account,
            token,
            trust,
            retry,
        } = settings;
        let credentials = match (account, token) {
            (Some(account), None) => Ok(Credentials::Account(account)),
            (None, Some(token)) => Ok(Credentials::Token(token)),
            (None, None) => {
                let expected = "set (or use --account ID), or EXPERTISE_TOKEN";
                Err(unset(ACCOUNT, expected))
            }
            (Some(account), Some(_)) => {
                let expected = "left out, as a token contains its account";
                Err(wrong(ACCOUNT, account, expected))
            }
        };
        match (credentials, trust.check(&server)) {
            (Ok(credentials), Ok(trust)) => Ok(Self {
                server,
                trust,
                credentials,
                retry,
            }),
            (credentials, trust) => Err([credentials.err(), trust.err()]
                .into_iter()
                .flatten()
                .collect()),
        }
    }
}

impl ConnectionConfig {
    /// The flags of the server and the account, each after a space, for commands that are printed.
    /// What the environment says, too, is left out.
    pub fn flags(&self) -> String {
        let account = match &self.credentials {
            Credentials::Account(account) => account.as_str(),
            Credentials::Token(_) => "",
        };
        let given = [
            (
                "server",
                "EXPERTISE_SERVER",
                self.server.as_str(),
                DEFAULT_SERVER,
            ),
            ("account", "EXPERTISE_ACCOUNT", account, ""),
        ];
        let needed = given.into_iter().filter(|(_, variable, value, default)| {
            env::var(variable).as_deref().unwrap_or(default) != *value
        });
        needed
            .map(|(flag, _, value, _)| format!(" --{flag} {value}"))
            .collect()
    }
}

impl TrustSettings {
    /// Refuses settings of TLS for a server without TLS, so that no token is sent
    /// unencrypted by mistake.
    fn check(self, server: &str) -> Result<Trust, String> {
        const CERT_FILE: &str = "EXPERTISE_CLIENT_CERT_FILE";
        const KEY_FILE: &str = "EXPERTISE_CLIENT_KEY_FILE";
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let given = [
            ("EXPERTISE_CA_FILE", path(&self.ca_file)),
            (CERT_FILE, path(&self.client_cert_file)),
            (KEY_FILE, path(&self.client_key_file)),
            ("EXPERTISE_SERVER_NAME", self.server_name.clone()),
        ];
        let mut given = given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        if let Some((name, value)) = given.next().filter(|_| !server.starts_with("https:")) {
            let expected = format!(
                "left out, as {server} has no TLS: set EXPERTISE_SERVER to a URL that begins with \
                 https://"
            );
            return Err(wrong(name, value, expected));
        }
        let identity = match (self.client_cert_file, self.client_key_file) {
            (Some(cert_file), Some(key_file)) => Some((cert_file, key_file)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(unset(KEY_FILE, format!("set too, as {CERT_FILE} is set")));
            }
            (None, Some(_)) => {
                return Err(unset(CERT_FILE, format!("set too, as {KEY_FILE} is set")));
            }
        };
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

#[derive(Args)]
pub struct HealthSettings {
    /// The URL of the service, with https:// if it uses TLS; wins over --listen [default: this machine, as the settings of the server say]
    #[arg(
        short,
        long,
        env = "EXPERTISE_SERVER",
        value_name = "URL",
        value_parser = value::web_address,
        help_heading = "Connection"
    )]
    server: Option<String>,
    #[command(flatten)]
    trust: TrustSettings,
    /// Where the server on this machine listens
    #[arg(
        long,
        env = "EXPERTISE_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = DEFAULT_LISTEN,
        value_parser = value::address(50051)
    )]
    listen: SocketAddr,
    /// The certificate of the server on this machine, which serves TLS if this is set
    #[arg(long, env = "EXPERTISE_TLS_CERT_FILE", value_name = "PATH")]
    tls_cert_file: Option<PathBuf>,
}

impl Checked for HealthConfig {
    type Settings = HealthSettings;

    fn check(settings: HealthSettings) -> Result<Self, Vec<String>> {
        let HealthSettings {
            server,
            trust,
            listen,
            tls_cert_file,
        } = settings;
        let server = server.unwrap_or_else(|| local_url(listen, tls_cert_file.is_some()));
        match trust.check(&server) {
            Ok(trust) => Ok(Self { server, trust }),
            Err(fault) => Err(vec![fault]),
        }
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
