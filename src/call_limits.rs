//! Limits what the server does concurrently: calls, calls of one account, bytes of large messages,
//! and bytes that the work of calls holds. Calls beyond a limit fail with OVERLOADED.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::domain::{Error, Overload, Result, ids::AccountId};

/// The maximum number of calls that are worked on concurrently. The database takes fewer, so more
/// calls would only wait there, where nothing checks their deadlines.
const MAX_CALLS_IN_WORK: usize = 128;
/// The maximum number of calls that send their message, wait, or are worked on. More could not be
/// served within a second.
const MAX_CALLS: usize = MAX_CALLS_IN_WORK + 1024;
/// Large messages may take an additional eighth of the memory of calls, and their decoded elements
/// another eighth. Handling a message briefly takes about six copies of it.
const MESSAGE_SHARE: usize = 8;
/// From this many accounts on, accounts without calls are forgotten.
const MAX_KNOWN_ACCOUNTS: usize = 1024;

/// Calls that were rejected, by the limit that was reached.
pub type RejectedCalls = Family<[(&'static str, &'static str); 1], Counter>;

/// The unit of limits of bytes.
const KIB: usize = 1024;

/// A part of a limit, which is free again when this is dropped.
pub type Permit = OwnedSemaphorePermit;

/// The bytes that a permit of a limit of bytes holds, in whole KiB.
pub fn permit_bytes(permit: &Permit) -> usize {
    permit.num_permits() * KIB
}

/// Releases a part of a permit of a limit of bytes, in whole KiB.
pub fn release_bytes(permit: &mut Permit, bytes: usize) {
    drop(permit.split(bytes / KIB));
}

/// How many calls, connections or bytes there may be at a time. Clones share it.
#[derive(Clone)]
pub struct Limit {
    max: usize,
    /// What a permit of the semaphore stands for: one, or the bytes of a KiB, because tokio counts the
    /// permits of a holder in a `u32`.
    unit: usize,
    free: Arc<Semaphore>,
}

impl Limit {
    pub const UNLIMITED: usize = Semaphore::MAX_PERMITS;

    pub fn new(max: usize) -> Self {
        Self::with_unit(max, 1)
    }

    /// A limit of bytes, of which whole KiB are taken.
    pub fn for_bytes(max: usize) -> Self {
        Self::with_unit(max, KIB)
    }

    fn with_unit(max: usize, unit: usize) -> Self {
        let permits = max.div_ceil(unit);
        let free = Arc::new(Semaphore::new(permits));
        Self { max, unit, free }
    }

    pub fn max(&self) -> usize {
        self.max
    }

    pub fn taken(&self) -> usize {
        let permits = self.max.div_ceil(self.unit);
        (permits - self.free.available_permits()) * self.unit
    }

    /// Takes this many, if they are free.
    pub fn try_take(&self, count: usize) -> Option<Permit> {
        let free = Arc::clone(&self.free);
        let permits = u32::try_from(count.div_ceil(self.unit)).ok()?;
        free.try_acquire_many_owned(permits).ok()
    }

    /// Waits until this many are free, or all if it is more than that.
    pub async fn take(&self, count: usize) -> Permit {
        let free = Arc::clone(&self.free);
        let permits = count.min(self.max).div_ceil(self.unit);
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        let permit = free.acquire_many_owned(permits).await;
        #[allow(clippy::expect_used)]
        permit.expect("the semaphore is never closed")
    }

    /// Waits for bytes of a large message or its elements. After `until`, fails with `Overloaded`.
    pub async fn take_bytes_until(&self, bytes: usize, until: Instant) -> Result<Permit> {
        let permit = timeout_at(until, self.take(bytes)).await;
        permit.map_err(|_| Error::Overloaded(Overload::Memory))
    }
}

/// The limits of all calls.
pub struct CallLimits {
    /// Counts its references: the calls whose work has not ended, or whose response has not been sent.
    pub in_progress: Arc<()>,
    calls: CallCounts,
    accounts: Mutex<HashMap<AccountId, CallCounts>>,
    /// Bytes of large messages.
    pub messages: Limit,
    /// Bytes that the elements of large messages take once they are decoded. A call that waits for them may
    /// hold its message: no call waits for a message while it holds elements.
    pub elements: Limit,
    /// Bytes that the work of calls holds.
    pub memory: Limit,
    /// Polls that take milliseconds: two per processor, because some of them only wait for the disk. More
    /// would delay light calls.
    pub turns: Limit,
    pub rejected: RejectedCalls,
}

/// The calls of the server, or of an account.
#[derive(Clone)]
struct CallCounts {
    all: Limit,
    in_work: Limit,
}

impl CallLimits {
    /// Limits for calls whose work holds at most this many bytes in total. They live as long as
    /// the process.
    pub fn new(max_work_bytes: usize) -> &'static Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let limits = Self {
            in_progress: Arc::new(()),
            calls: CallCounts {
                all: Limit::new(MAX_CALLS),
                in_work: Limit::new(MAX_CALLS_IN_WORK),
            },
            accounts: Mutex::default(),
            messages: Limit::for_bytes(max_work_bytes / MESSAGE_SHARE),
            elements: Limit::for_bytes(max_work_bytes / MESSAGE_SHARE),
            memory: Limit::for_bytes(max_work_bytes),
            turns: Limit::new(2 * processors),
            rejected: RejectedCalls::default(),
        };
        for cause in (0..).map_while(Overload::from_repr) {
            drop(limits.rejected_calls(cause));
        }
        Box::leak(Box::new(limits))
    }

    /// The calls that were rejected for this cause.
    pub fn rejected_calls(&self, cause: Overload) -> impl Deref<Target = Counter> {
        self.rejected.get_or_create(&[("cause", cause.into())])
    }

    /// Takes the permits of a new call of the account, or rejects it.
    pub fn take_call_permits(&self, account: &AccountId) -> Result<[Permit; 2]> {
        let of_account = self.account_calls(account);
        let places = (self.calls.all.try_take(1)).zip(of_account.all.try_take(1));
        let (all, of_account) = places.ok_or(Error::Overloaded(Overload::QueueFull))?;
        Ok([all, of_account])
    }

    /// Waits until `until` at most for the permits to work on a call that has call permits.
    pub async fn take_work_permits(
        &self,
        account: &AccountId,
        until: Instant,
    ) -> Result<[Permit; 2]> {
        let of_account = self.account_calls(account);
        // The permit of the account comes first, so that a busy account does not delay others.
        let permits = async {
            let of_account = of_account.in_work.take(1).await;
            [of_account, self.calls.in_work.take(1).await]
        };
        let permits = timeout_at(until, permits).await;
        permits.map_err(|_| Error::Overloaded(Overload::QueueTimeout))
    }

    fn account_calls(&self, account: &AccountId) -> CallCounts {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(calls) = accounts.get(account) {
            return calls.clone();
        }
        if accounts.len() >= MAX_KNOWN_ACCOUNTS {
            // Permits and clones refer to the semaphore.
            accounts.retain(|_, calls| Arc::strong_count(&calls.all.free) > 1);
        }
        // One account may take three quarters of a limit.
        let [all, in_work] = [MAX_CALLS, MAX_CALLS_IN_WORK].map(|max| Limit::new(max - max / 4));
        let calls = CallCounts { all, in_work };
        accounts.insert(account.clone(), calls.clone());
        calls
    }

    pub fn calls_in_progress(&self) -> usize {
        Arc::strong_count(&self.in_progress) - 1
    }

    pub fn calls_in_work(&self) -> usize {
        self.calls.in_work.taken()
    }

    /// Calls that send their message, or wait for a permit.
    pub fn calls_waiting(&self) -> usize {
        let calls = self.calls.all.taken();
        calls.saturating_sub(self.calls_in_work())
    }

    /// Bytes of large messages, and of what the work of calls holds.
    pub fn bytes(&self) -> usize {
        self.messages.taken() + self.elements.taken() + self.memory.taken()
    }
}
