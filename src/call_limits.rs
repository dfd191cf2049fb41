//! Limits what the server does concurrently: calls, calls of one account, bytes of large messages,
//! and bytes that the work of calls holds. Calls beyond a limit fail with OVERLOADED.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

use crate::domain::{Error, Result, ids::AccountId};

/// The maximum number of calls that are worked on concurrently. The database takes fewer, so more
/// calls would only wait there, where nothing checks their deadlines.
const MAX_CALLS_IN_WORK: usize = 128;
/// The maximum number of calls that send their message, wait, or are worked on. More could not be
/// served within a second.
const MAX_CALLS: usize = MAX_CALLS_IN_WORK + 1024;
/// Large messages may take an additional eighth of the memory of calls, and their decoded elements another one.
/// Handling a message briefly takes about six copies of it.
const MESSAGE_SHARE: usize = 8;
/// From this many accounts on, accounts without calls are forgotten.
const MAX_KNOWN_ACCOUNTS: usize = 1024;

/// One account may take three quarters of a limit.
const fn account_share(all: usize) -> usize {
    all - all / 4
}

/// Calls that were rejected, by the limit that was reached.
pub type RejectedCalls = Family<[(&'static str, &'static str); 1], Counter>;

/// Bytes of a message, or of its elements, that a call may hold until this is dropped.
pub type BytesPermit = SemaphorePermit<'static>;

/// The limits of all calls.
pub struct CallLimits {
    places: CallPlaces,
    accounts: Mutex<HashMap<AccountId, Arc<CallPlaces>>>,
    /// Permits for messages and for elements, one per KiB.
    messages: Semaphore,
    elements: Semaphore,
    max_message_kib: usize,
    /// Bytes that the work of calls holds.
    work_bytes: AtomicUsize,
    max_work_bytes: usize,
    /// Permits for polls that take milliseconds. One processor is left for light calls.
    pub turns: Semaphore,
    in_progress: AtomicUsize,
    pub rejected: RejectedCalls,
}

/// The calls of the server, or of an account.
struct CallPlaces {
    all: Arc<Semaphore>,
    in_work: Arc<Semaphore>,
}

impl CallPlaces {
    fn new(all: usize, in_work: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            in_work: Arc::new(Semaphore::new(in_work)),
        }
    }
}

/// A call's place among the calls of the server and of its account.
pub struct CallPlace {
    limits: &'static CallLimits,
    of_account: Arc<CallPlaces>,
    _all: SemaphorePermit<'static>,
    _all_of_account: OwnedSemaphorePermit,
}

/// A call is worked on until this is dropped.
pub struct CallPermit {
    _in_work: SemaphorePermit<'static>,
    _in_work_of_account: OwnedSemaphorePermit,
    _message: [Option<BytesPermit>; 2],
    _place: CallPlace,
}

impl CallLimits {
    /// Limits for calls whose work holds at most this many bytes in total. They live as long as
    /// the process.
    pub fn new(max_work_bytes: usize) -> &'static Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let max_message_kib = (max_work_bytes / MESSAGE_SHARE / 1024).clamp(1, u32::MAX as usize);
        let limits = Self {
            places: CallPlaces::new(MAX_CALLS, MAX_CALLS_IN_WORK),
            accounts: Mutex::default(),
            messages: Semaphore::new(max_message_kib),
            elements: Semaphore::new(max_message_kib),
            max_message_kib,
            work_bytes: AtomicUsize::new(0),
            max_work_bytes,
            turns: Semaphore::new(processors.saturating_sub(1).max(1)),
            in_progress: AtomicUsize::new(0),
            rejected: RejectedCalls::default(),
        };
        for cause in ["memory", "queue_full", "queue_timeout"] {
            drop(limits.rejected.get_or_create(&[("cause", cause)]));
        }
        Box::leak(Box::new(limits))
    }

    /// Takes a place for a call of the account.
    pub fn place(&'static self, account: &AccountId) -> Result<CallPlace> {
        let of_account = self.places_of(account);
        let all_of_account = Arc::clone(&of_account.all).try_acquire_owned();
        match (self.places.all.try_acquire(), all_of_account) {
            (Ok(all), Ok(all_of_account)) => Ok(CallPlace {
                limits: self,
                of_account,
                _all: all,
                _all_of_account: all_of_account,
            }),
            _ => Err(self.reject("queue_full")),
        }
    }

    fn places_of(&self, account: &AccountId) -> Arc<CallPlaces> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = accounts.get(account) {
            return Arc::clone(places);
        }
        if accounts.len() >= MAX_KNOWN_ACCOUNTS {
            accounts.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let [all, in_work] = [MAX_CALLS, MAX_CALLS_IN_WORK].map(account_share);
        let places = Arc::new(CallPlaces::new(all, in_work));
        accounts.insert(account.clone(), Arc::clone(&places));
        places
    }

    /// Waits, at most until the time `until`, until a large message of this many bytes may be received. A message
    /// that is larger than the limit is received alone.
    pub async fn message(&'static self, bytes: usize, until: Instant) -> Result<BytesPermit> {
        self.wait_for(&self.messages, bytes, until).await
    }

    /// The same for the memory that the elements of a message take once it is decoded. A call may hold its
    /// message meanwhile: no call waits for a message while it holds elements.
    pub async fn elements(&'static self, bytes: usize, until: Instant) -> Result<BytesPermit> {
        self.wait_for(&self.elements, bytes, until).await
    }

    async fn wait_for(
        &self,
        permits: &'static Semaphore,
        bytes: usize,
        until: Instant,
    ) -> Result<BytesPermit> {
        let kib = bytes.div_ceil(1024).min(self.max_message_kib);
        let permit = permits.acquire_many(u32::try_from(kib).unwrap_or(u32::MAX));
        match timeout_at(until, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.reject("memory")),
        }
    }

    /// Holds bytes for the work of a call. Returns false if they do not fit.
    pub fn try_hold_work(&self, bytes: usize) -> bool {
        let fits = |held: usize| {
            held.checked_add(bytes)
                .filter(|it| *it <= self.max_work_bytes)
        };
        let fits = self.work_bytes.fetch_update(Relaxed, Relaxed, fits).is_ok();
        if !fits {
            self.reject("memory");
        }
        fits
    }

    pub fn release_work(&self, bytes: usize) {
        self.work_bytes.fetch_sub(bytes, Relaxed);
    }

    fn reject(&self, cause: &'static str) -> Error {
        self.rejected.get_or_create(&[("cause", cause)]).inc();
        Error::Overloaded
    }

    pub fn begin_call(&self) {
        self.in_progress.fetch_add(1, Relaxed);
    }

    pub fn end_call(&self) {
        self.in_progress.fetch_sub(1, Relaxed);
    }

    /// Calls whose work has not ended, or whose response has not been sent.
    pub fn calls_in_progress(&self) -> usize {
        self.in_progress.load(Relaxed)
    }

    pub fn calls_in_work(&self) -> usize {
        MAX_CALLS_IN_WORK - self.places.in_work.available_permits()
    }

    /// Calls that send their message, or wait for a permit.
    pub fn calls_waiting(&self) -> usize {
        let calls = MAX_CALLS - self.places.all.available_permits();
        calls.saturating_sub(self.calls_in_work())
    }

    /// Bytes of large messages, and of what the work of calls holds.
    pub fn bytes(&self) -> usize {
        let free = self.messages.available_permits() + self.elements.available_permits();
        (2 * self.max_message_kib - free) * 1024 + self.work_bytes.load(Relaxed)
    }

    pub fn max_work_bytes(&self) -> usize {
        self.max_work_bytes
    }
}

impl CallPlace {
    /// Waits until the call may be worked on, or until the time `until`. The permits of its message
    /// are held meanwhile and during the work.
    pub async fn permit(
        self,
        message: [Option<BytesPermit>; 2],
        until: Instant,
    ) -> Result<CallPermit> {
        // The permit of the account comes first, so that a busy account does not delay others.
        let of_account = Arc::clone(&self.of_account.in_work);
        let permits = async {
            let of_account = of_account.acquire_owned().await;
            (of_account, self.limits.places.in_work.acquire().await)
        };
        match timeout_at(until, permits).await {
            Ok((Ok(of_account), Ok(in_work))) => Ok(CallPermit {
                _in_work: in_work,
                _in_work_of_account: of_account,
                _message: message,
                _place: self,
            }),
            _ => Err(self.limits.reject("queue_timeout")),
        }
    }
}
