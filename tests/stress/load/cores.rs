//! The cores that the server, its database and the load run on.

use std::{
    fs,
    process::{Command, Stdio, id},
    thread::available_parallelism,
};

/// Starts a server that has all cores but the last, where PostgreSQL and the load run. In
/// production they run on other machines. On the same cores, a heavier load would slow the
/// server down. Without two cores and `taskset`, all run on all cores.
pub fn on_separate_cores<T>(start: impl FnOnce() -> T) -> (T, Option<SeparateCores>) {
    let separate = available_parallelism()
        .ok()
        .and_then(|cores| cores.get().checked_sub(1))
        .filter(|last| *last > 0)
        .map(|last| SeparateCores { last });
    let Some(separate) = separate else {
        return (start(), None);
    };
    let last = separate.last.to_string();
    // The processes that PostgreSQL starts for the server inherit its core.
    let mut pinned = descendants().into_iter().all(|process| pin(process, &last));
    // A server starts as many threads as it has cores.
    pinned &= pin(id(), &format!("0-{}", separate.last - 1));
    let server = start();
    pinned &= pin(id(), &last);
    (server, pinned.then_some(separate))
}

/// The separation of the cores, until this is dropped.
#[derive(Debug)]
pub struct SeparateCores {
    last: usize,
}

impl Drop for SeparateCores {
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
    // It may have ended meanwhile.
    let has_ended = || !fs::exists(format!("/proc/{process}")).unwrap_or(true);
    pinned.is_ok_and(|status| status.success()) || has_ended()
}

/// The processes that this one has started, and theirs.
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
        // The name in parentheses may hold anything; the state and the parent follow it.
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
