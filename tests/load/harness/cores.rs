//! Which cores the server, its database and the load run on.

use std::{
    fs,
    process::{Command, Stdio, id},
    thread::available_parallelism,
};

/// Gives the load a core of its own, and the processes that this one has started, the
/// server and PostgreSQL, all others. Callers are on other machines: where they share
/// a server's cores, it serves the fewer the more they ask, whatever it does. `None`
/// where that cannot be done: it takes two cores and `taskset`.
pub fn part() -> Option<Parted> {
    let last = available_parallelism().ok()?.get().checked_sub(1)?;
    let others = format!("0-{}", last.checked_sub(1)?);
    let moved = descendants().into_iter().all(|child| pin(child, &others));
    (moved && pin(id(), &last.to_string())).then_some(Parted { last })
}

/// Until it is dropped, the load has a core of its own.
#[derive(Debug)]
pub struct Parted {
    last: usize,
}

impl Drop for Parted {
    fn drop(&mut self) {
        let all = format!("0-{}", self.last);
        for process in descendants().into_iter().chain([id()]) {
            pin(process, &all);
        }
    }
}

/// Moves all threads of a process.
fn pin(process: u32, cores: &str) -> bool {
    let pinned = Command::new("taskset")
        .args(["-a", "-p", "-c", cores, &process.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // One that has ended meanwhile is nowhere.
    let gone = || !fs::exists(format!("/proc/{process}")).unwrap_or(true);
    pinned.is_ok_and(|status| status.success()) || gone()
}

/// The processes below this one.
fn descendants() -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name in parentheses may hold anything; behind it, the state and the parent.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (process, parent)));
    }
    let mut found = vec![id()];
    let mut next = 0;
    while let Some(&process) = found.get(next) {
        let children = parents.iter().filter(|(_, parent)| *parent == process);
        found.extend(children.map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}
