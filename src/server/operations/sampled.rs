//! Metrics that are read when they are requested.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::Registry,
};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use crate::server::{Shared, health::HealthState, tls::ServerTls};

/// Registers the metrics of a server.
pub fn register_server(registry: &mut Registry, state: &Shared) {
    let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The version that runs", build);
    let (limits, connections) = (state.limits, &state.connections.limit);
    let help = "Calls that were refused with OVERLOADED, by the limit that was reached";
    registry.register("rejected_calls", help, limits.rejected.clone());
    let ready = usize::from(state.health.state() == HealthState::Serving);
    let in_work_help = "Calls in progress whose messages have arrived and which have a permit";
    let waiting_help = "Calls that send their message or wait for a permit";
    let connections_help = "Open client connections";
    let max_connections_help = "Maximum number of client connections";
    let max_bytes_help = "Maximum number of bytes that calls may hold";
    let max_bytes = limits.memory.max();
    for (name, help, value) in [
        ("ready", "1 if the server is ready, else 0", ready),
        ("connections", connections_help, connections.taken()),
        ("connections_max", max_connections_help, connections.max()),
        ("inflight_bytes", "Bytes that calls hold", limits.bytes()),
        ("inflight_limit_bytes", max_bytes_help, max_bytes),
        ("calls_in_work", in_work_help, limits.calls_in_work()),
        ("calls_waiting", waiting_help, limits.calls_waiting()),
    ] {
        registry.register(name, help, ConstGauge::new(value as u64));
    }
    if let Some(expiry) = state.tls.as_ref().and_then(ServerTls::certificate_expiry) {
        let help = "When the certificate of the server expires, in seconds since 1970";
        let expiry = ConstGauge::new(seconds_since_epoch(expiry));
        registry.register("tls_certificate_expiry_timestamp_seconds", help, expiry);
    }
    if let Some((source, time)) = state.authenticator.keys_read() {
        let help = "When the keys that verify tokens were read, in seconds since 1970";
        let at = ConstGauge::new(seconds_since_epoch(time));
        registry
            .sub_registry_with_label(("source".into(), source.into()))
            .register("token_keys_read_timestamp_seconds", help, at);
    }
}

/// The metrics of the process, by the names that Prometheus clients give them. On other systems than
/// Linux there are only `process_start_time_seconds` and `process_max_fds`.
pub fn process(started: SystemTime) -> Registry {
    let mut registry = Registry::with_prefix("process");
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain any characters.
    let after_name = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = after_name.split(' ').collect();
    // Fields are numbered from 1 (proc_pid_stat(5)); the first after the name is 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let started = Some(seconds_since_epoch(started));
    let start_help = "When the process started, in seconds since 1970";
    let resident = field(24).map(|pages| pages * page_size() as f64);
    // Without the descriptor that reads this directory.
    let open = fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1) as f64);
    let max = getrlimit(Resource::Nofile).current.map(|max| max as f64);
    for (name, help, value) in [
        ("start_time_seconds", start_help, started),
        ("resident_memory_bytes", "Resident memory", resident),
        ("virtual_memory_bytes", "Virtual memory", field(23)),
        ("threads", "Operating-system threads", field(20)),
        ("open_fds", "Open file descriptors", open.ok()),
        ("max_fds", "Maximum number of open file descriptors", max),
    ] {
        if let Some(value) = value {
            registry.register(name, help, ConstGauge::new(value));
        }
    }
    if let Some((user, system)) = field(14).zip(field(15)) {
        let seconds = (user + system) / clock_ticks_per_second() as f64;
        let help = "Processor time of the process, in user and system mode";
        registry.register("cpu_seconds", help, ConstCounter::new(seconds));
    }
    registry
}

/// Seconds since 1970.
fn seconds_since_epoch(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
