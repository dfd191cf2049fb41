//! What the process of a server uses.

use std::{fs, time::Duration};

use crate::kit::server::TestServer;

impl TestServer {
    /// Resident memory now, in bytes.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory so far, in bytes.
    pub fn resident_peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The most address space so far, in bytes.
    pub fn virtual_peak(&self) -> u64 {
        self.memory("VmPeak:")
    }

    /// The processor time that it has used.
    pub fn processor_time(&self) -> Duration {
        let stat = self.proc_file("stat");
        // The name of the program, in parentheses, may hold spaces.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields = after_name.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(10 * ticks)
    }

    fn memory(&self, kind: &str) -> u64 {
        let status = self.proc_file("status");
        let line = status.lines().find_map(|line| line.strip_prefix(kind));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    fn proc_file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.id())).unwrap_or_default()
    }
}
