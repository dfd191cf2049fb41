//! Whose health is asked for: by default that of the server which has the same
//! settings.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use clap::{Arg, ArgMatches, Command};

use super::{
    WrongSetting,
    connection::{self, SERVER, TRUST, Trust},
    errand::{self, Output},
    sources::{Origin, Values},
    table::{self, Fallback, Setting},
    value,
};

/// A server whose health is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// Where it is, `http://` or `https://`.
    pub server: String,
    /// What TLS needs.
    pub trust: Trust,
    /// For whom the answer is written.
    pub output: Output,
}

/// The name of the subcommand.
pub(super) const COMMAND: &str = "health";

const OWN_SERVER: Setting = Setting {
    default: Fallback::Depends("on this machine where the settings of the server have it listen"),
    ..SERVER
};

/// The subcommand. It takes the settings that say where the server listens.
pub(super) fn command(file: Arg) -> Command {
    let own = [table::LISTEN, table::TLS_CERT_FILE].map(|setting| setting.arg());
    Command::new(COMMAND)
        .about("Ask a server whether it is well: exit code 0 if it is, 1 if it is not")
        .arg(errand::output())
        .arg(connection::arg(OWN_SERVER))
        .args(TRUST.map(connection::arg))
        .args(own)
        .arg(file)
}

impl HealthConfig {
    /// Reads the flags of the program and, over them, those of the subcommand.
    pub(super) fn read(
        program: &ArgMatches,
        own: &ArgMatches,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, WrongSetting> {
        let settings = Values::gather(&[program, own], environment)?;
        let named = [OWN_SERVER].into_iter().chain(TRUST);
        let values = Values::without_file(named, own, environment)?;
        // Flags win over the environment, whichever of the two they are.
        let flag = Some(&Origin::Flag);
        let here = settings.origin(&table::LISTEN) == flag && values.origin(&OWN_SERVER) != flag;
        let server = match values.read(&OWN_SERVER, value::web_address)? {
            Some(server) if !here => server,
            Some(_) | None => {
                let listen = settings.read_or_default(&table::LISTEN, value::address)?;
                let tls = settings.named(&table::TLS_CERT_FILE).is_some();
                address(listen, tls)
            }
        };
        Ok(Self {
            trust: Trust::read(&values, &server)?,
            server,
            output: errand::read_output(own)?,
        })
    }
}

/// Where a server on this machine is that listens there.
fn address(mut listen: SocketAddr, tls: bool) -> String {
    if listen.ip().is_unspecified() {
        listen.set_ip(match listen.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{listen}")
}
