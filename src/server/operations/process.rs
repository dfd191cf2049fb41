//! Metrics of the process, by the names that Prometheus clients give them. On other
//! systems than Linux there are only `process_start_time_seconds` and `process_max_fds`.

use std::{fs, time::SystemTime};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use super::seconds_since_epoch;

/// Registers `process_…`.
pub fn register(registry: &mut Registry) {
    let started = seconds_since_epoch(SystemTime::now());
    registry.register_collector(Box::new(ProcessMetrics { started }));
}

/// Reads the metrics when they are requested.
#[derive(Debug)]
struct ProcessMetrics {
    /// Seconds since 1970.
    started: f64,
}

/// What `/proc/self/stat` says.
struct ProcessStat {
    cpu_seconds: f64,
    threads: u64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

impl ProcessStat {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in parentheses, may hold anything.
        let (_, after_name) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after_name.split(' ').collect();
        // Fields are numbered from 1 (proc_pid_stat(5)); the first after the name is 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = field(14)? + field(15)?;
        Some(Self {
            cpu_seconds: ticks as f64 / clock_ticks_per_second() as f64,
            threads: field(20)?,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page_size() as u64,
        })
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: f64| {
            let gauge = ConstGauge::new(value);
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(name, help, unit, kind)?)
        };
        let seconds = Some(&Unit::Seconds);
        let bytes = Some(&Unit::Bytes);
        let help = "When the process started, in seconds since 1970.";
        gauge("process_start_time", help, seconds, self.started)?;
        let stat = ProcessStat::read();
        if let Some(stat) = &stat {
            let (resident, size) = (stat.resident_bytes as f64, stat.virtual_bytes as f64);
            gauge(
                "process_resident_memory",
                "Resident memory.",
                bytes,
                resident,
            )?;
            gauge("process_virtual_memory", "Virtual memory.", bytes, size)?;
            let threads = stat.threads as f64;
            gauge(
                "process_threads",
                "Operating-system threads.",
                None,
                threads,
            )?;
        }
        if let Some(open) = open_descriptors() {
            gauge("process_open_fds", "Open file descriptors.", None, open)?;
        }
        if let Some(max) = getrlimit(Resource::Nofile).current {
            let help = "The most file descriptors that may be open.";
            gauge("process_max_fds", help, None, max as f64)?;
        }
        if let Some(stat) = stat {
            let cpu = ConstCounter::new(stat.cpu_seconds);
            let help = "Processor time of the process, in user and system mode.";
            let kind = cpu.metric_type();
            cpu.encode(encoder.encode_descriptor("process_cpu", help, seconds, kind)?)?;
        }
        Ok(())
    }
}

/// The number of open file descriptors, without the one that lists them.
fn open_descriptors() -> Option<f64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(open.saturating_sub(1) as f64)
}
