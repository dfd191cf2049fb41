//! What processes use, as /proc has it.

use std::{fs, ops::Sub, path::Path, time::Duration};

/// In what the times of /proc are counted.
const TICK: Duration = Duration::from_millis(10);

/// Processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// Of the server.
    pub server: Duration,
    /// Of the PostgreSQL behind it. SQLite is a part of the server.
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

/// Whose time it is.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// The server.
    pub server: u32,
    /// The first process of a PostgreSQL.
    pub database: Option<u32>,
}

impl Watched {
    /// What they have used.
    pub fn cpu(&self) -> Cpu {
        let server = Stat::of(self.server);
        Cpu {
            server: server.map_or(Duration::ZERO, |stat| stat.used),
            database: self.database.map_or(Duration::ZERO, family),
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
        // The name before the bracket may hold spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
        Some(Self {
            parent: number(1)?,
            used: TICK * (number(11)? + number(12)?),
        })
    }
}

/// A process and its children.
fn family(first: u32) -> Duration {
    let processes = fs::read_dir("/proc").expect("/proc");
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process| Some((process, Stat::of(process)?)))
        .filter(|(process, stat)| *process == first || stat.parent == first)
        .map(|(_, stat)| stat.used)
        .sum()
}

/// Bytes of memory that a process has held at most since [`forget_peak`].
pub fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|number| number.parse::<u64>().ok())
        .map_or(0, |number| number * 1024)
}

/// Has the peak begin at what is held now.
pub fn forget_peak(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("our own process");
}

/// The first process of the PostgreSQL with this data directory.
pub fn postmaster(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// The middle one.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => (numbers[middle - 1] + numbers[middle]) / 2.0,
        _ => numbers[middle],
    }
}
