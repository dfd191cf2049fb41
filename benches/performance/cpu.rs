//! CPU time of processes, from `/proc`.

use std::{fs, ops::Sub, time::Duration};

/// The unit of times in `/proc`.
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    pub server: Duration,
    /// The CPU time of PostgreSQL. SQLite runs in the server process.
    pub database: Option<Duration>,
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let database = self.database.zip(before.database);
        Self {
            server: self.server.saturating_sub(before.server),
            database: database.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}

/// The parent of a process, and its CPU time.
fn stat(process: u32) -> Option<(u32, Duration)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may contain spaces. Of the fields after it, 1 is the parent, and 11 and
    // 12 are the times in user and system mode.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some((number(1)?, TICK * (number(11)? + number(12)?)))
}

pub fn process_time(process: u32) -> Duration {
    stat(process).map_or(Duration::ZERO, |(_, used)| used)
}

pub fn process_tree_time(first: u32) -> Duration {
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process| Some((process, stat(process)?)))
        .filter(|(process, (parent, _))| *process == first || *parent == first)
        .map(|(_, (_, used))| used)
        .sum()
}
