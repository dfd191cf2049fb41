//! Processor time and memory of processes, from /proc.

use std::{fs, ops::Sub, path::Path, time::Duration};

/// The unit of times in /proc.
const TICK: Duration = Duration::from_millis(10);

/// Processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// Of the server.
    pub server: Duration,
    /// Of PostgreSQL; SQLite runs in the process of the server.
    pub database: Duration,
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            database: self.database.saturating_sub(before.database),
        }
    }
}

/// The processes that are measured.
#[derive(Clone, Copy, Debug)]
pub struct Processes {
    /// The server.
    pub server: u32,
    /// The main process of PostgreSQL.
    pub database: Option<u32>,
}

impl Processes {
    /// Their processor time so far.
    pub fn cpu(&self) -> Cpu {
        let server = Stat::of(self.server);
        Cpu {
            server: server.map_or(Duration::ZERO, |stat| stat.used),
            database: self.database.map_or(Duration::ZERO, with_children),
        }
    }
}

struct Stat {
    parent: u32,
    used: Duration,
}

impl Stat {
    fn of(process: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in brackets may contain spaces. Of the fields after it, 1 is the parent, and 11
        // and 12 are the times in user and system mode.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
        Some(Self {
            parent: number(1)?,
            used: TICK * (number(11)? + number(12)?),
        })
    }
}

/// The processor time of a process and its children.
fn with_children(first: u32) -> Duration {
    let processes = fs::read_dir("/proc").expect("/proc");
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process| Some((process, Stat::of(process)?)))
        .filter(|(process, stat)| *process == first || stat.parent == first)
        .map(|(_, stat)| stat.used)
        .sum()
}

/// Resets the peak to the current resident memory.
pub fn reset_peak_memory(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("a process of this user");
}

/// The main process of the PostgreSQL with this data directory.
pub fn postmaster(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}
