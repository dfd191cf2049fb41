//! How much work the server accepts at once, in bytes of messages and in calls.
//!
//! While its message arrives, a call holds a [`MemoryReservation`]. Once the message
//! is there, it waits in a [`QueueSlot`] for its [`WorkPermit`], which bounds the
//! copies that decoding, writing and encoding make. What does not fit is refused
//! before anything is done for it.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{
    call_context::CallMemory,
    domain::ids::AccountId,
    turns::{FairPermit, FairSemaphore, share_of_account},
};

/// Up to this size a call is small: it gets memory and a permit beside calls that
/// hold megabytes.
const SMALL_CALL_BYTES: usize = 64 * 1024;
/// The smallest reservation for a message.
const MIN_RESERVATION_BYTES: usize = 4 * 1024;
/// The part of the memory budget that is reserved for small calls: a sixteenth.
const SMALL_CALL_SHARE: usize = 16;
/// The part of the memory budget that streams of health and reflection may have beside it: a
/// sixteenth.
const PROBE_SHARE: usize = 16;
/// The part of the memory budget that large calls may have in work at once: a
/// sixteenth. Handling makes about four copies of a message for a moment.
const LARGE_WORK_SHARE: usize = 16;
/// Calls that are worked on at once. The database takes fewer at a time: more calls
/// would wait there, where their deadlines are not seen.
const MAX_CALLS_IN_WORK: usize = 128;
/// Calls that wait for a permit. More could not be served within a second.
const MAX_QUEUED_CALLS: usize = 1024;
/// Permits of large calls are counted in units of this many bytes.
const LARGE_PERMIT_BYTES: usize = 1024;

/// There is no capacity for the call.
#[derive(Debug, PartialEq, Eq)]
pub struct AtCapacity;

/// The most bytes that calls may hold at once, and how many they hold now.
///
/// The limits are for calls that hold memory together. The only call of the server may have
/// everything, and the only call of an account more than the account's share.
pub struct MemoryBudget {
    limit: usize,
    used: Mutex<UsedMemory>,
    /// Bytes of calls of health and reflection. They take nothing from other calls, as they need
    /// no credentials.
    probes: AtomicUsize,
    refused: Counter,
}

/// Bytes that calls hold.
#[derive(Default)]
struct UsedMemory {
    all: usize,
    /// Of each account that holds some.
    by_account: HashMap<AccountId, usize>,
}

/// Calls that were refused, by the limit that was reached.
pub type RejectedCalls = Family<[(&'static str, &'static str); 1], Counter>;

/// The most bytes in all up to which a call may get more.
#[derive(Clone, Copy)]
struct MemoryLimits {
    /// All calls.
    all: usize,
    /// Those of its account.
    of_account: usize,
}

impl MemoryLimits {
    /// Whether a call of the account that holds `own` bytes may take `bytes` more.
    fn allow(self, used: &UsedMemory, account: &AccountId, bytes: usize, own: usize) -> bool {
        let fits = |total: usize, limit| total == own || total.saturating_add(bytes) <= limit;
        fits(used.all, self.all) && fits(used.of(account), self.of_account)
    }
}

impl UsedMemory {
    fn of(&self, account: &AccountId) -> usize {
        self.by_account.get(account).copied().unwrap_or_default()
    }

    fn add(&mut self, account: &AccountId, bytes: usize) {
        self.all += bytes;
        match self.by_account.get_mut(account) {
            Some(held) => *held += bytes,
            None => drop(self.by_account.insert(account.clone(), bytes)),
        }
    }

    fn remove(&mut self, account: &AccountId, bytes: usize) {
        self.all -= bytes;
        if let Some(held) = self.by_account.get_mut(account) {
            *held -= bytes;
            if *held == 0 {
                self.by_account.remove(account);
            }
        }
    }
}

impl MemoryBudget {
    pub fn new(limit: usize, rejected: &RejectedCalls) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: Mutex::default(),
            probes: AtomicUsize::new(0),
            refused: rejected.get_or_create_owned(&[("cause", "memory")]),
        })
    }

    pub fn register(&self, registry: &mut Registry) {
        let limit = Gauge::<i64>::default();
        limit.set(i64::try_from(self.limit).unwrap_or(i64::MAX));
        registry.register_with_unit(
            "inflight_limit",
            "Most bytes that calls hold at once",
            Unit::Bytes,
            limit,
        );
    }

    /// The bytes that calls hold, those of health and reflection included.
    pub fn used(&self) -> usize {
        self.lock().all + self.probes.load(Relaxed)
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// A reservation for a message of this declared length. It counts nothing yet, but a message
    /// that does not fit now is refused before it is received.
    pub fn reserve(
        self: &Arc<Self>,
        account: &AccountId,
        declared: usize,
    ) -> Result<MemoryReservation, AtCapacity> {
        let limits = self.limits_for(declared);
        if !limits.allow(&self.lock(), account, declared, 0) {
            return Err(self.refuse());
        }
        Ok(MemoryReservation {
            budget: Arc::clone(self),
            account: account.clone(),
            declared,
            held: AtomicUsize::new(0),
            work: AtomicUsize::new(0),
        })
    }

    /// A reservation for a call of health or reflection. A stream is refused when all of them
    /// hold a sixteenth of the budget. A single check never is.
    pub fn reserve_for_probe(
        self: &Arc<Self>,
        bytes: usize,
        is_stream: bool,
    ) -> Result<ProbeReservation, AtCapacity> {
        // Counted back when it is dropped, refused or not.
        let probe = ProbeReservation {
            budget: Arc::clone(self),
            bytes,
        };
        let held = self.probes.fetch_add(bytes, Relaxed) + bytes;
        match is_stream && held > self.limit / PROBE_SHARE {
            true => Err(self.refuse()),
            false => Ok(probe),
        }
    }

    fn limits_for(&self, bytes: usize) -> MemoryLimits {
        let for_small_calls = self.limit / SMALL_CALL_SHARE;
        let of_account = share_of_account(self.limit);
        match bytes {
            ..=SMALL_CALL_BYTES => MemoryLimits {
                all: self.limit,
                of_account: of_account + for_small_calls,
            },
            _ => MemoryLimits {
                all: self.limit - for_small_calls,
                of_account,
            },
        }
    }

    fn refuse(&self) -> AtCapacity {
        self.refused.inc();
        AtCapacity
    }

    fn lock(&self) -> MutexGuard<'_, UsedMemory> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that a call holds of the budget, until it is dropped.
pub struct MemoryReservation {
    budget: Arc<MemoryBudget>,
    account: AccountId,
    declared: usize,
    /// Bytes of its message and response.
    held: AtomicUsize,
    /// Bytes that its work holds beside them.
    work: AtomicUsize,
}

impl MemoryReservation {
    /// Holds at least the bytes that have arrived. What is held doubles with them, up to
    /// the declared length, which takes nothing from other calls without its bytes.
    pub fn cover(&self, arrived: usize) -> Result<(), AtCapacity> {
        let held = self.held.load(Relaxed);
        if arrived <= held {
            return Ok(());
        }
        let wanted = (2 * held).max(MIN_RESERVATION_BYTES);
        let wanted = wanted.min(self.declared).max(arrived);
        self.grow_to(wanted, self.budget.limits_for(self.declared))
    }

    /// Counts a response that must be sent, whether or not it fits.
    pub fn hold_response(&self, bytes: usize) {
        let held = self.held.fetch_max(bytes, Relaxed);
        let more = bytes.saturating_sub(held);
        self.budget.lock().add(&self.account, more);
    }

    /// Counts a response that can be given up.
    pub fn try_hold_response(&self, bytes: usize) -> Result<(), AtCapacity> {
        self.grow_to(bytes, self.budget.limits_for(bytes))
    }

    fn grow_to(&self, bytes: usize, limits: MemoryLimits) -> Result<(), AtCapacity> {
        let held = self.held.load(Relaxed);
        if bytes <= held {
            return Ok(());
        }
        self.take(bytes - held, limits)?;
        self.held.store(bytes, Relaxed);
        Ok(())
    }

    /// Takes so many bytes more from the budget.
    fn take(&self, bytes: usize, limits: MemoryLimits) -> Result<(), AtCapacity> {
        let own = self.held.load(Relaxed) + self.work.load(Relaxed);
        let mut used = self.budget.lock();
        if !limits.allow(&used, &self.account, bytes, own) {
            return Err(self.budget.refuse());
        }
        used.add(&self.account, bytes);
        Ok(())
    }
}

impl CallMemory for MemoryReservation {
    fn try_reserve_response(&self, bytes: usize) -> bool {
        self.try_hold_response(bytes).is_ok()
    }

    fn try_reserve_work(&self, bytes: usize) -> bool {
        // Alone, too, no work may hold more than the whole budget.
        let work = self.work.load(Relaxed).saturating_add(bytes);
        if work > self.budget.limit {
            self.budget.refuse();
            return false;
        }
        let taken = self.take(bytes, self.budget.limits_for(work));
        if taken.is_ok() {
            self.work.fetch_add(bytes, Relaxed);
        }
        taken.is_ok()
    }

    fn release_work(&self, bytes: usize) {
        self.work.fetch_sub(bytes, Relaxed);
        self.budget.lock().remove(&self.account, bytes);
    }

    fn limit(&self) -> usize {
        self.budget.limit
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        let bytes = *self.held.get_mut() + *self.work.get_mut();
        self.budget.lock().remove(&self.account, bytes);
    }
}

/// The bytes that a call of health or reflection holds, until it is dropped.
pub struct ProbeReservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for ProbeReservation {
    fn drop(&mut self) {
        self.budget.probes.fetch_sub(self.bytes, Relaxed);
    }
}

/// What a call is for, as far as others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// It analyses a guide, which may take long.
    Analysis,
    /// Anything else.
    Other,
}

/// The queue in which calls wait for a permit once their messages are there.
pub struct WorkQueue {
    calls: Arc<FairSemaphore>,
    large: Arc<Semaphore>,
    /// At most one large analysis for each processor, so that analyses never hold all permits of
    /// large calls.
    large_analyses: Arc<Semaphore>,
    large_permits: u32,
    /// Slots that are taken.
    waiting: Arc<AtomicUsize>,
    /// A permit for each waiting call bounds how many slots one account may take.
    slots_of_account: Arc<FairSemaphore>,
    refused_full: Counter,
    refused_late: Counter,
}

/// A call is worked on until this is dropped.
pub struct WorkPermit {
    _call: FairPermit,
    _large: Option<OwnedSemaphorePermit>,
    _analysis: Option<OwnedSemaphorePermit>,
}

impl WorkQueue {
    /// A queue for calls that share a memory budget of `limit` bytes.
    pub fn new(limit: usize, rejected: &RejectedCalls) -> Self {
        let permits = limit / LARGE_WORK_SHARE / LARGE_PERMIT_BYTES;
        let permits = permits.clamp(1, Semaphore::MAX_PERMITS);
        let large_permits = u32::try_from(permits).unwrap_or(u32::MAX);
        Self {
            calls: FairSemaphore::new(MAX_CALLS_IN_WORK),
            large: Arc::new(Semaphore::new(large_permits as usize)),
            large_analyses: Arc::new(Semaphore::new(processors())),
            large_permits,
            waiting: Arc::default(),
            slots_of_account: FairSemaphore::new(MAX_QUEUED_CALLS),
            refused_full: rejected.get_or_create_owned(&[("cause", "queue_full")]),
            refused_late: rejected.get_or_create_owned(&[("cause", "queue_timeout")]),
        }
    }

    /// Counts a call that is refused because no slot is left for it.
    pub fn count_refused_when_full(&self) {
        self.refused_full.inc();
    }

    /// Calls that have a permit.
    pub fn working(&self) -> usize {
        MAX_CALLS_IN_WORK.saturating_sub(self.calls.free())
    }

    /// Slots that are taken.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Takes a slot.
    pub fn slot(&self) -> Result<QueueSlot, AtCapacity> {
        // Counted back when the slot is dropped, refused or not.
        let slot = QueueSlot(Arc::clone(&self.waiting));
        match slot.0.fetch_add(1, Relaxed) {
            ..MAX_QUEUED_CALLS => Ok(slot),
            _ => Err(AtCapacity),
        }
    }

    /// Waits in the slot, or else in a free one, for the permit of a call with a message
    /// of `bytes`. It waits at most half of the time that is left: the rest is for the
    /// work, which would be wasted if it came too late. No account waits in more than three
    /// quarters of the slots.
    pub async fn acquire(
        &self,
        slot: Option<QueueSlot>,
        account: &AccountId,
        kind: WorkKind,
        bytes: usize,
        deadline: Instant,
    ) -> Result<WorkPermit, AtCapacity> {
        let slot = slot.or_else(|| self.slot().ok());
        let of_account = self.slots_of_account.try_acquire(account);
        let (Some(_slot), Some(_of_account)) = (slot, of_account) else {
            self.count_refused_when_full();
            return Err(AtCapacity);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let permit = timeout_at(deadline - left / 2, self.permit(account, kind, bytes)).await;
        permit.unwrap_or_else(|_| {
            self.refused_late.inc();
            Err(AtCapacity)
        })
    }

    /// Large calls first wait for a permit of large calls, in the order of arrival. Then accounts
    /// take turns.
    async fn permit(
        &self,
        account: &AccountId,
        kind: WorkKind,
        bytes: usize,
    ) -> Result<WorkPermit, AtCapacity> {
        let is_large_analysis = kind == WorkKind::Analysis && bytes > SMALL_CALL_BYTES;
        let analysis = match is_large_analysis {
            true => {
                let analysis = Arc::clone(&self.large_analyses).acquire_owned();
                Some(analysis.await.map_err(|_| AtCapacity)?)
            }
            false => None,
        };
        let large = match bytes {
            ..=SMALL_CALL_BYTES => None,
            _ => {
                let permits = u32::try_from(bytes / LARGE_PERMIT_BYTES).unwrap_or(u32::MAX);
                let permits = permits.min(self.large_permits);
                let large = Arc::clone(&self.large).acquire_many_owned(permits);
                Some(large.await.map_err(|_| AtCapacity)?)
            }
        };
        Ok(WorkPermit {
            _call: self.calls.acquire(account).await,
            _large: large,
            _analysis: analysis,
        })
    }
}

/// How many processors there are.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A slot of the queue, taken until it is dropped.
pub struct QueueSlot(Arc<AtomicUsize>);

impl QueueSlot {
    /// Does work that comes before the permit. Unless it completes at once, the slot is
    /// given up, as calls whose messages have arrived need it.
    pub async fn release_while_pending<F: Future>(slot: &mut Option<Self>, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() {
                *slot = None;
            }
            polled
        })
        .await
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests;
