//! The calls of a peer that are at hand, until their answers are taken.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::{Peer, lock};

/// How long an answer may still be on its way when its call should have ended.
/// Until then a peer that takes nothing keeps the room that the answer has.
const TAKING: Duration = Duration::from_secs(10);

/// Calls by the order of their coming, and when each must have ended.
#[derive(Default)]
pub(super) struct Calls(Mutex<Numbered>);

#[derive(Default)]
struct Numbered {
    next: u64,
    ends: BTreeMap<u64, Instant>,
}

impl Calls {
    pub fn are_none(&self) -> bool {
        lock(&self.0).ends.is_empty()
    }

    /// Whether an answer is not taken for longer than anybody may wait.
    pub fn are_late(&self) -> bool {
        let numbered = lock(&self.0);
        // All may take equally long, so the first to come is the first to end.
        let first = numbered.ends.first_key_value();
        first.is_some_and(|(_, end)| Instant::now() >= *end + TAKING)
    }

    fn begin(&self, end: Instant) -> u64 {
        let mut numbered = lock(&self.0);
        let number = numbered.next;
        numbered.next += 1;
        numbered.ends.insert(number, end);
        number
    }

    fn end(&self, number: u64) {
        lock(&self.0).ends.remove(&number);
    }
}

/// A call of a peer's that is at hand.
pub(in crate::server) struct AtHand {
    peer: Arc<Peer>,
    number: u64,
}

impl AtHand {
    /// A call that must have ended by then.
    pub(super) fn begin(peer: &Arc<Peer>, end: Instant) -> Self {
        Self {
            peer: Arc::clone(peer),
            number: peer.calls.begin(end),
        }
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        // What was said last still has to be sent.
        self.peer.stir();
        self.peer.calls.end(self.number);
    }
}
