//! Metrics that are read when they are requested, in the text of OpenMetrics.

use std::{
    fmt::{Result, Write},
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use super::OperationsEndpoint;
use crate::server::{health::HealthState, tls::ServerTls};

/// Writes the metrics of the process, by the names that Prometheus clients give them. On other
/// systems than Linux there are only `process_start_time_seconds` and `process_max_fds`.
pub fn write_process(text: &mut String, started: SystemTime) -> Result {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold anything.
    let after_name = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = after_name.split(' ').collect();
    // Fields are numbered from 1 (proc_pid_stat(5)); the first after the name is 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let [started, resident, size] = [
        Some(seconds_since_epoch(started)),
        field(24).map(|pages| pages * page_size() as f64),
        field(23),
    ];
    // Without the descriptor that this directory is read with.
    let open = fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1) as f64);
    let max = getrlimit(Resource::Nofile).current.map(|max| max as f64);
    let start_help = "When the process started, in seconds since 1970.";
    let max_help = "The most file descriptors that may be open.";
    for (name, help, value) in [
        ("process_start_time_seconds", start_help, started),
        (
            "process_resident_memory_bytes",
            "Resident memory.",
            resident,
        ),
        ("process_virtual_memory_bytes", "Virtual memory.", size),
        ("process_threads", "Operating-system threads.", field(20)),
        ("process_open_fds", "Open file descriptors.", open.ok()),
        ("process_max_fds", max_help, max),
    ] {
        if let Some(value) = value {
            write_gauge(text, name, help, value)?;
        }
    }
    let Some((user, system)) = field(14).zip(field(15)) else {
        return Ok(());
    };
    let name = "process_cpu_seconds";
    let seconds = (user + system) / clock_ticks_per_second() as f64;
    writeln!(
        text,
        "# HELP {name} Processor time of the process, in user and system mode.\n\
         # TYPE {name} counter\n{name}_total {seconds}"
    )
}

impl OperationsEndpoint {
    /// Writes the metrics of this server.
    pub(super) fn write_server(&self, text: &mut String) -> Result {
        let limits = self.calls.limits;
        let ready = usize::from(self.health.state() == HealthState::Serving);
        let in_work =
            "Calls that are worked on: their messages have arrived and they have a permit.";
        let waiting = "Calls that send their message or wait for a permit.";
        let connections = &self.connections.limit;
        let max_help = "Most connections of clients at once.";
        for (name, help, value) in [
            ("ready", "1 if the server is ready, else 0.", ready),
            (
                "connections",
                "Open connections of clients.",
                connections.taken(),
            ),
            ("connections_max", max_help, connections.max()),
            ("inflight_bytes", "Bytes that calls hold.", limits.bytes()),
            ("calls_in_work", in_work, limits.calls_in_work()),
            ("calls_waiting", waiting, limits.calls_waiting()),
        ] {
            write_gauge(text, &format!("expertise_{name}"), help, value as f64)?;
        }
        if let Some(expiry) = self.tls.as_ref().and_then(ServerTls::certificate_expiry) {
            let name = "expertise_tls_certificate_expiry_timestamp_seconds";
            let help = "When the certificate of the server expires, in seconds since 1970.";
            write_gauge(text, name, help, seconds_since_epoch(expiry))?;
        }
        let Some(read) = self.calls.authenticator.keys_read() else {
            return Ok(());
        };
        let name = "expertise_token_keys_read_timestamp_seconds";
        writeln!(
            text,
            "# HELP {name} When the keys that verify tokens were read, in seconds since 1970.\n\
             # TYPE {name} gauge\n{name}{{source=\"{}\"}} {}",
            read.source,
            seconds_since_epoch(read.at)
        )
    }
}

fn write_gauge(text: &mut String, name: &str, help: &str, value: f64) -> Result {
    writeln!(
        text,
        "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
    )
}

/// Seconds since 1970.
fn seconds_since_epoch(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
