//! Limits what the server does concurrently: calls, calls of one account, bytes of large messages,
//! and bytes that the work of calls holds. Calls beyond a limit fail with OVERLOADED.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
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

/// The limits of all calls.
pub struct CallLimits {
    places: Places,
    accounts: Mutex<HashMap<AccountId, Arc<Places>>>,
    messages: Bytes,
    elements: Bytes,
    work: Bytes,
    /// Permits for polls that take milliseconds. One processor is left for light calls.
    pub turns: Arc<Semaphore>,
    in_progress: Arc<()>,
    rejected: RejectedCalls,
}

/// The calls of the server, or of an account.
struct Places {
    all: Arc<Semaphore>,
    in_work: Arc<Semaphore>,
}

impl Places {
    fn new(all: usize, in_work: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            in_work: Arc::new(Semaphore::new(in_work)),
        }
    }
}

/// A call's place among the calls of the server and of its account.
pub struct CallPlace {
    limits: Arc<CallLimits>,
    of_account: Arc<Places>,
    _all: OwnedSemaphorePermit,
    _all_of_account: OwnedSemaphorePermit,
}

/// A call is worked on until this is dropped.
pub struct CallPermit {
    _place: CallPlace,
    _in_work: OwnedSemaphorePermit,
    _in_work_of_account: OwnedSemaphorePermit,
}

impl CallLimits {
    /// Limits for calls whose work holds at most this many bytes in total.
    pub fn new(max_bytes: usize) -> Arc<Self> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let limits = Self {
            places: Places::new(MAX_CALLS, MAX_CALLS_IN_WORK),
            accounts: Mutex::default(),
            messages: Bytes::new(max_bytes / MESSAGE_SHARE),
            elements: Bytes::new(max_bytes / MESSAGE_SHARE),
            work: Bytes::new(max_bytes),
            turns: Arc::new(Semaphore::new(processors.saturating_sub(1).max(1))),
            in_progress: Arc::default(),
            rejected: RejectedCalls::default(),
        };
        for cause in ["memory", "queue_full", "queue_timeout"] {
            limits.rejected.get_or_create_owned(&[("cause", cause)]);
        }
        Arc::new(limits)
    }

    /// Takes a place for a call of the account.
    pub fn place(self: &Arc<Self>, account: &AccountId) -> Result<CallPlace> {
        let of_account = self.places_of(account);
        let all_of_account = Arc::clone(&of_account.all).try_acquire_owned();
        let all = Arc::clone(&self.places.all).try_acquire_owned();
        match (all, all_of_account) {
            (Ok(all), Ok(all_of_account)) => Ok(CallPlace {
                limits: Arc::clone(self),
                of_account,
                _all: all,
                _all_of_account: all_of_account,
            }),
            _ => Err(self.reject("queue_full")),
        }
    }

    /// Waits, at most until the time `until`, until a large message of this many bytes may be received. A message
    /// that is larger than the limit is received alone.
    pub async fn message(&self, bytes: usize, until: Instant) -> Result<OwnedSemaphorePermit> {
        self.wait_for(&self.messages, bytes, until).await
    }

    /// The same for the memory that the elements of a message take once it is decoded. A call may hold its
    /// message meanwhile: no call waits for a message while it holds elements.
    pub async fn elements(&self, bytes: usize, until: Instant) -> Result<OwnedSemaphorePermit> {
        self.wait_for(&self.elements, bytes, until).await
    }

    async fn wait_for(
        &self,
        bytes: &Bytes,
        count: usize,
        until: Instant,
    ) -> Result<OwnedSemaphorePermit> {
        let permit = Arc::clone(&bytes.kib).acquire_many_owned(bytes.kib(count));
        match timeout_at(until, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.reject("memory")),
        }
    }

    /// Permits, one per KiB, for memory that the work of a call holds.
    pub fn try_work(&self, kib: usize) -> Result<OwnedSemaphorePermit> {
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.work.kib).try_acquire_many_owned(kib);
        permit.map_err(|_| self.reject("memory"))
    }

    fn places_of(&self, account: &AccountId) -> Arc<Places> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = accounts.get(account) {
            return Arc::clone(places);
        }
        if accounts.len() >= MAX_KNOWN_ACCOUNTS {
            accounts.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let [all, in_work] = [MAX_CALLS, MAX_CALLS_IN_WORK].map(account_share);
        let places = Arc::new(Places::new(all, in_work));
        accounts.insert(account.clone(), Arc::clone(&places));
        places
    }

    fn reject(&self, cause: &'static str) -> Error {
        self.rejected.get_or_create_owned(&[("cause", cause)]).inc();
        Error::Overloaded
    }

    pub fn rejected(&self) -> RejectedCalls {
        self.rejected.clone()
    }

    /// Counts a call until the result is dropped.
    pub fn count_call(&self) -> Arc<()> {
        Arc::clone(&self.in_progress)
    }

    /// Calls whose work has not ended, or whose response has not been sent.
    pub fn calls_in_progress(&self) -> usize {
        Arc::strong_count(&self.in_progress) - 1
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
        self.messages.held() + self.elements.held() + self.work.held()
    }

    pub fn max_bytes(&self) -> usize {
        self.work.limit
    }
}

impl CallPlace {
    /// Waits until the call may be worked on, or until the time `until`.
    pub async fn permit(self, until: Instant) -> Result<CallPermit> {
        // The permit of the account comes first, so that a busy account does not delay others.
        let of_account = Arc::clone(&self.of_account.in_work);
        let in_work = Arc::clone(&self.limits.places.in_work);
        let permits = async {
            let of_account = of_account.acquire_owned().await;
            (of_account, in_work.acquire_owned().await)
        };
        match timeout_at(until, permits).await {
            Ok((Ok(of_account), Ok(in_work))) => Ok(CallPermit {
                _place: self,
                _in_work: in_work,
                _in_work_of_account: of_account,
            }),
            _ => Err(self.limits.reject("queue_timeout")),
        }
    }
}

/// Bytes that may be held concurrently, counted in KiB.
struct Bytes {
    kib: Arc<Semaphore>,
    max_kib: usize,
    limit: usize,
}

impl Bytes {
    fn new(limit: usize) -> Self {
        let max_kib = (limit / 1024).clamp(1, u32::MAX as usize);
        Self {
            kib: Arc::new(Semaphore::new(max_kib)),
            max_kib,
            limit,
        }
    }

    /// The number of permits for this many bytes, at most all of them.
    fn kib(&self, bytes: usize) -> u32 {
        let kib = bytes.div_ceil(1024).min(self.max_kib);
        u32::try_from(kib).unwrap_or(u32::MAX)
    }

    fn held(&self) -> usize {
        (self.max_kib - self.kib.available_permits()) * 1024
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::task::unconstrained;

    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::parse(name).expect("an account")
    }

    #[tokio::test]
    async fn an_account_has_three_quarters_of_the_calls_in_work() {
        let limits = CallLimits::new(1 << 20);
        let until = Instant::now() + Duration::from_secs(60);
        let permit = |name| {
            let place = limits.place(&account(name)).expect("a place");
            // This is exempt from Tokio's cooperative budget.
            unconstrained(place.permit(until)).now_or_never()
        };
        let mut held: Vec<_> = (0..96).map(|_| permit("a").expect("a permit")).collect();
        assert!(permit("a").is_none());
        held.extend((0..32).map(|_| permit("b").expect("a permit")));
        assert!(permit("b").is_none() && permit("c").is_none());
        assert_eq!(limits.calls_in_work(), 128);
        held.clear();
        assert_eq!((limits.calls_in_work(), limits.calls_waiting()), (0, 0));
    }

    #[test]
    fn an_account_has_three_quarters_of_the_places() {
        let limits = CallLimits::new(1 << 20);
        let place = |name| limits.place(&account(name)).ok();
        let held: Vec<_> = (0..2_000).map_while(|_| place("a")).collect();
        assert_eq!(held.len(), 864);
        let others: Vec<_> = (0..2_000).map_while(|_| place("b")).collect();
        assert_eq!(others.len(), 288);
    }
}
