//! The calls of a connection whose responses the peer has not taken yet.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::{ConnectionState, lock};

/// How long after its call's deadline the peer may take to read a response. Until
/// then the response holds memory.
const RESPONSE_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Pending calls with their deadlines, in the order in which they began.
#[derive(Default)]
pub struct PendingCalls(Mutex<NumberedDeadlines>);

#[derive(Default)]
struct NumberedDeadlines {
    next_number: u64,
    deadlines: BTreeMap<u64, Instant>,
}

impl PendingCalls {
    pub fn is_empty(&self) -> bool {
        lock(&self.0).deadlines.is_empty()
    }

    /// Whether the peer has not read a response for too long.
    pub fn is_stalled(&self) -> bool {
        let pending = lock(&self.0);
        let first = pending.deadlines.values().min();
        first.is_some_and(|deadline| Instant::now() >= *deadline + RESPONSE_READ_TIMEOUT)
    }
}

/// A pending call of a connection, which ends when this is dropped.
pub struct PendingCall {
    connection: Arc<ConnectionState>,
    number: u64,
}

impl PendingCall {
    pub(super) fn begin(connection: Arc<ConnectionState>, deadline: Instant) -> Self {
        let number = {
            let mut pending = lock(&connection.calls.0);
            let number = pending.next_number;
            pending.next_number += 1;
            pending.deadlines.insert(number, deadline);
            number
        };
        Self { connection, number }
    }

    /// The call waits, and must end by this deadline.
    pub fn postpone(&self, deadline: Instant) {
        let mut pending = lock(&self.connection.calls.0);
        pending.deadlines.insert(self.number, deadline);
    }

    /// The address at the other end of the connection.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        // Its last bytes are still to be sent.
        self.connection.touch();
        lock(&self.connection.calls.0)
            .deadlines
            .remove(&self.number);
    }
}
