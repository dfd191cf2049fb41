//! How much is taken in at once: bytes of messages, and calls that are worked on.
//!
//! A call passes two doors. While its message arrives it holds a [`Share`] of the
//! bytes that may be at hand. Once the message is there it waits for its
//! [`Turn`], which bounds the copies that decoding, writing and encoding make.
//! What does not fit is refused before anything is done for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// Up to this many bytes a call counts as small: it finds room and its turn
/// beside those that hold megabytes.
const SMALL: usize = 64 * 1024;
/// The least that a message takes.
const LEAST: usize = 4 * 1024;
/// The part of all bytes that is kept for small calls: one of so many.
const RESERVE: usize = 16;
/// The part of all bytes that large calls may have in work at once, one of so
/// many. Handling makes about four copies of a message for a moment.
const IN_WORK: usize = 16;
/// Calls that are worked on at once. The database takes fewer at a time, so that
/// more would only wait there, where nobody sees their deadlines.
const CALLS: usize = 128;
/// Calls that wait for their turn. More could not be served within a second.
const QUEUE: usize = 1024;
/// Turns of large calls are counted in units of this many bytes.
const UNIT: usize = 1024;

/// There is no room for the call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The bytes that may be at hand, and those that are.
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
    refused: Counter,
}

impl Budget {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            refused: Counter::default(),
        })
    }

    /// Names what is known of it in a registry.
    pub fn register(&self, registry: &mut Registry) {
        let limit = Gauge::<i64>::default();
        limit.set(i64::try_from(self.limit).unwrap_or(i64::MAX));
        registry.register_with_unit(
            "inflight_limit",
            "Bytes of messages that may be at hand",
            Unit::Bytes,
            limit,
        );
        registry.register(
            "calls_without_room",
            "Calls that were refused as too many bytes were at hand",
            self.refused.clone(),
        );
    }

    /// Bytes that are at hand.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn full(&self) -> Full {
        self.refused.inc();
        Full
    }

    /// All that may be at hand, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Room for a call that claims so many bytes. It takes nothing yet; a claim
    /// that cannot be met now is refused before its bytes travel.
    pub fn share(self: &Arc<Self>, claim: usize) -> Result<Share, Full> {
        let room = self.room(claim);
        match self.used.load(Ordering::Relaxed) {
            0 => {}
            used if used.saturating_add(claim) <= room => {}
            _ => return Err(self.full()),
        }
        Ok(Share {
            budget: Arc::clone(self),
            claim,
            bytes: AtomicUsize::new(0),
        })
    }

    fn room(&self, claim: usize) -> usize {
        match claim {
            ..=SMALL => self.limit,
            _ => self.limit - self.limit / RESERVE,
        }
    }
}

/// What a call holds of the budget, until it is dropped.
pub(super) struct Share {
    budget: Arc<Budget>,
    claim: usize,
    bytes: AtomicUsize,
}

impl Share {
    /// Makes room for so many bytes that have arrived. The share grows ahead of
    /// them by doubling, up to the claim: a claim that no bytes follow takes
    /// nothing from others, and one that cannot be met is refused early.
    pub fn cover(&self, arrived: usize) -> Result<(), Full> {
        let held = self.bytes.load(Ordering::Relaxed);
        if arrived <= held {
            return Ok(());
        }
        let wanted = (2 * held).max(LEAST).min(self.claim).max(arrived);
        self.reach(wanted, self.budget.room(self.claim))
    }

    /// Counts an answer, which is there whether or not there is room: calls to
    /// come find less.
    pub fn stretch(&self, bytes: usize) {
        let held = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        let more = bytes.saturating_sub(held);
        self.budget.used.fetch_add(more, Ordering::Relaxed);
    }

    /// Counts an answer that can be given up when there is no room.
    pub fn stretch_within(&self, bytes: usize) -> Result<(), Full> {
        self.reach(bytes, self.budget.room(bytes))
    }

    /// Grows to so many bytes, if all that is at hand then stays within the room.
    fn reach(&self, bytes: usize, room: usize) -> Result<(), Full> {
        let held = self.bytes.load(Ordering::Relaxed);
        if bytes <= held {
            return Ok(());
        }
        let more = bytes - held;
        let grow = |used: usize| {
            // A call that is alone may have everything.
            let fits = used.saturating_add(more) <= room || used == held;
            fits.then(|| used.saturating_add(more))
        };
        self.budget
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow)
            .map_err(|_| self.budget.full())?;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let held = *self.bytes.get_mut();
        self.budget.used.fetch_sub(held, Ordering::Relaxed);
    }
}

/// The turns of calls whose messages are there.
pub(super) struct Turns {
    calls: Arc<Semaphore>,
    large: Arc<Semaphore>,
    units: u32,
    waiting: Arc<AtomicUsize>,
    refused: Counter,
}

/// A call's turn: it is worked on until this is dropped.
pub(super) struct Turn {
    _call: OwnedSemaphorePermit,
    _large: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Turns for a budget of so many bytes.
    pub fn new(limit: usize) -> Self {
        let units = (limit / IN_WORK / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Self {
            calls: Arc::new(Semaphore::new(CALLS)),
            large: Arc::new(Semaphore::new(units as usize)),
            units,
            waiting: Arc::default(),
            refused: Counter::default(),
        }
    }

    /// A place among the calls that wait for their turn.
    pub fn place(&self) -> Result<Place, Full> {
        let waiting = Arc::clone(&self.waiting);
        // Its number is counted back when the place is dropped, taken or not.
        let place = Place(waiting);
        match place.0.fetch_add(1, Ordering::Relaxed) {
            ..QUEUE => Ok(place),
            _ => Err(Full),
        }
    }

    /// Names what is known of them in a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls_without_turn",
            "Calls that were refused as it would not have been their turn in time",
            self.refused.clone(),
        );
    }

    /// Calls that are worked on.
    pub fn in_work(&self) -> usize {
        CALLS.saturating_sub(self.calls.available_permits())
    }

    /// Calls that wait for their turn, and those about to have it.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits in a place, or else in one that is free, for the turn of a call with so
    /// many bytes, in the order of arrival, but no longer than half of the time that is
    /// left: the other half is for the work, which would be wasted if it came too late.
    pub async fn take(
        &self,
        place: Option<Place>,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Turn, Full> {
        let turn = self.turn(place, bytes, deadline).await;
        turn.inspect_err(|Full| {
            self.refused.inc();
        })
    }

    async fn turn(
        &self,
        place: Option<Place>,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Turn, Full> {
        let _place = place.map_or_else(|| self.place(), Ok)?;
        let left: Duration = deadline.saturating_duration_since(Instant::now());
        let turn = timeout_at(deadline - left / 2, self.in_order(bytes)).await;
        turn.map_err(|_| Full)?
    }

    async fn in_order(&self, bytes: usize) -> Result<Turn, Full> {
        let large = match bytes {
            ..=SMALL => None,
            _ => {
                let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
                let units = units.min(self.units);
                let large = Arc::clone(&self.large).acquire_many_owned(units);
                Some(large.await.map_err(|_| Full)?)
            }
        };
        let call = Arc::clone(&self.calls).acquire_owned();
        Ok(Turn {
            _call: call.await.map_err(|_| Full)?,
            _large: large,
        })
    }
}

/// A place among the calls that wait for their turn, until it is dropped.
pub(super) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
