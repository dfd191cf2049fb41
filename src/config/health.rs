//! The settings of `health`. By default it checks the server on this machine, whose address and
//! certificate it takes from the settings of that server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use clap::Args;

use super::{
    DEFAULT_LISTEN, WrongSetting,
    client_command::{Format, OutputFormat},
    connection::{Trust, TrustSettings},
    settings::{GivenSettings, SettingOrigin},
    value,
};

/// A server whose health is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// Its URL, `http://` or `https://`.
    pub server: String,
    /// What TLS needs.
    pub trust: Trust,
    /// The form of the output.
    pub format: Format,
}

#[derive(Args)]
pub(super) struct HealthSettings {
    /// The URL of the service, with https:// if it uses TLS [default: this machine, as the settings of the server say]
    #[arg(short, value_name = "URL", value_parser = value::web_address, help_heading = "Connection")]
    server: Option<String>,
    #[command(flatten)]
    trust: TrustSettings,
    /// Where the server on this machine listens
    #[arg(value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN, value_parser = value::address(50051))]
    listen: SocketAddr,
    /// The certificate of the server on this machine, which serves TLS if this is set
    #[arg(value_name = "PATH", value_parser = value::path)]
    tls_cert_file: Option<PathBuf>,
}

impl HealthConfig {
    pub(super) fn read(
        settings: HealthSettings,
        given: &GivenSettings,
        OutputFormat { format }: OutputFormat,
    ) -> Result<Self, WrongSetting> {
        let HealthSettings {
            server,
            trust,
            listen,
            tls_cert_file,
        } = settings;
        // `server` and `listen` both say which server is checked: a flag for one wins over the
        // other one in the environment.
        let is_flag = |key| given.origin(key) == Some(&SettingOrigin::Flag);
        let local = is_flag("listen") && !is_flag("server");
        let server = match server {
            Some(server) if !local => server,
            Some(_) | None => local_url(listen, tls_cert_file.is_some()),
        };
        Ok(Self {
            trust: trust.trust(given, &server)?,
            server,
            format,
        })
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
