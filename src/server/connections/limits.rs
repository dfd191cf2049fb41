//! How many connections the process has file descriptors for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most connections, however many file descriptors there are.
const MAX_CONNECTIONS: usize = 16 * 1024;
/// The most connections that the rate limiter delays at once.
pub const MAX_DELAYED_CONNECTIONS: usize = 1024;
/// One file descriptor in this many is reserved for a delayed connection.
const DESCRIPTORS_PER_DELAYED: u64 = 16;
/// File descriptors for the log, files and so on, beside those for the database.
const RESERVED_DESCRIPTORS: u64 = 64;
/// The most file descriptors that the process requests from the system.
const MAX_DESCRIPTORS: u64 = 64 * 1024;

/// The most connections of this process.
pub struct ConnectionLimits {
    /// Connections that are admitted.
    pub open: usize,
    /// Those that the rate limiter delays at once.
    pub delayed: usize,
}

impl ConnectionLimits {
    /// Raises the process's limit of descriptors, and divides those that are not reserved.
    pub fn of_process(database_connections: u32) -> Self {
        let reserved = RESERVED_DESCRIPTORS + u64::from(database_connections);
        let free = raise_descriptor_limit().saturating_sub(reserved);
        let delayed = free / DESCRIPTORS_PER_DELAYED;
        let open = usize::try_from(free - delayed).unwrap_or(MAX_CONNECTIONS);
        let delayed = usize::try_from(delayed).unwrap_or(MAX_DELAYED_CONNECTIONS);
        Self {
            open: open.clamp(1, MAX_CONNECTIONS),
            delayed: delayed.min(MAX_DELAYED_CONNECTIONS),
        }
    }
}

/// The limit of file descriptors of the process, after raising it.
fn raise_descriptor_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.unwrap_or(MAX_DESCRIPTORS);
    let wanted = maximum.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
    if wanted <= current {
        return current;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted,
        Err(_) => current,
    }
}
