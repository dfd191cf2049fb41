//! Task-local context of the current call: who makes it, when it must end, and what it holds.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::ready,
    time::Duration,
};

use tokio::{
    task::block_in_place,
    time::{Instant, timeout_at},
};
use uuid::Uuid;

pub use crate::call_limits::{Permit, permit_bytes, release_bytes};
use crate::{
    call_limits::{CallLimits, Limit},
    domain::{Error, Overload, Result, caller::Caller},
};

/// Up to this size, a message is converted in less than a millisecond, so other calls on the same
/// thread can wait for it.
const MAX_QUICK_BYTES: usize = 256 * 1024;
/// How long before the caller's deadline a waiting call is answered.
const ANSWER_TIME: Duration = Duration::from_millis(250);

tokio::task_local! {
    static CURRENT: Arc<CallContext>;
}

static OUTSIDE_OF_CALLS: LazyLock<&CallLimits> =
    LazyLock::new(|| CallLimits::new(Limit::UNLIMITED));

/// The context of a call. Work that may outlive the call, such as a write in its own task, keeps a
/// reference: what the call holds is released with the last one.
pub struct CallContext {
    /// Names the call in the log. It is not the `request_id` that a client chooses for retries.
    pub id: Uuid,
    /// `package.Service/Method`, as the client sent it.
    pub rpc: String,
    /// Set once its credentials are accepted.
    pub caller: OnceLock<Caller>,
    /// Bytes of the request that have arrived.
    pub received_bytes: AtomicUsize,
    pub limits: &'static CallLimits,
    _in_progress: Arc<()>,
    started: Instant,
    /// How long a call may take, from the server's setting.
    time_limit: Duration,
    progress: Mutex<Progress>,
    is_cancelled: AtomicBool,
    is_heavy: AtomicBool,
}

struct Progress {
    /// When the server's time limit ends the call.
    server_deadline: Instant,
    caller_deadline: Option<Instant>,
    waited: Duration,
    /// What the call holds of the limits; none while it waits for changes.
    permits: Vec<Permit>,
    response: Option<Permit>,
}

/// Whose limit ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineSource {
    /// The caller, by `grpc-timeout`.
    Caller,
    /// The server, by its setting.
    Server,
}

impl CallContext {
    pub fn new(
        id: Uuid,
        rpc: String,
        started: Instant,
        time_limit: Duration,
        limits: &'static CallLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            rpc,
            caller: OnceLock::new(),
            received_bytes: AtomicUsize::new(0),
            limits,
            _in_progress: Arc::clone(&limits.in_progress),
            started,
            time_limit,
            progress: Mutex::new(Progress {
                server_deadline: started + time_limit,
                caller_deadline: None,
                waited: Duration::ZERO,
                permits: Vec::new(),
                response: None,
            }),
            is_cancelled: AtomicBool::new(false),
            is_heavy: AtomicBool::new(false),
        })
    }

    /// Runs `work` with this context as [`CallContext::current`]. Tasks that it spawns do not
    /// inherit it.
    pub fn scope<F: Future>(self: Arc<Self>, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// The context that this task runs in, if any.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Reserves memory for a response of this size until the current call ends. Fails with
    /// [`Error::Overloaded`] if it does not fit into the memory that other calls leave.
    pub fn reserve_response(bytes: usize) -> Result<()> {
        let Some(call) = Self::current() else {
            return Ok(());
        };
        let response = &mut call.progress().response;
        let held = response.as_ref().map_or(0, permit_bytes);
        let more = take_memory(bytes.saturating_sub(held))?;
        match response {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// Records that the current call works on this many bytes. See [`Self::in_turns`].
    pub fn note_size(bytes: usize) {
        if bytes > MAX_QUICK_BYTES {
            let _ = CURRENT.try_with(|call| call.is_heavy.store(true, Relaxed));
        }
    }

    /// Runs work for the call. Once the call works on a large message, each poll takes
    /// milliseconds. So each poll then waits for its turn, and the other tasks of its thread move
    /// to another thread.
    ///
    /// *Invariant:* work that waits for anything else has no turn.
    pub async fn in_turns<F: Future>(&self, mut work: Pin<&mut F>) -> F::Output {
        let mut next_turn = None;
        poll_fn(|context| {
            if !self.is_heavy.load(Relaxed) {
                return work.as_mut().poll(context);
            }
            let turn = next_turn.get_or_insert_with(|| Box::pin(self.limits.turns.take(1)));
            let _turn = ready!(turn.as_mut().poll(context));
            next_turn = None;
            block_in_place(|| work.as_mut().poll(context))
        })
        .await
    }

    /// Waits until `ready`, but ends `at_most` after the start of the current call, and in time for
    /// the caller's deadline. Returns whether it is ready. The server's time limit starts again
    /// afterwards.
    ///
    /// *Invariant:* a call that waits holds no permit, connection or lock.
    pub async fn wait(ready: impl Future<Output = ()>, at_most: Duration) -> Result<bool> {
        let Some(call) = Self::current() else {
            return Ok(false);
        };
        let began = Instant::now();
        let until = {
            let mut progress = call.progress();
            progress.permits.clear();
            let longest = call.started + at_most;
            progress.server_deadline = longest + call.time_limit;
            progress.caller_deadline.map_or(longest, |deadline| {
                longest.min(deadline - ANSWER_TIME.min(deadline - began))
            })
        };
        // Boxed, because otherwise this future would hold it twice.
        let is_ready = timeout_at(until, Box::pin(ready)).await.is_ok();
        {
            let mut progress = call.progress();
            progress.waited += began.elapsed();
            progress.server_deadline = Instant::now() + call.time_limit;
        }
        if let Some(caller) = call.caller.get() {
            let (limits, account) = (call.limits, &caller.account);
            call.hold(limits.take_call_permits(account)?);
            call.hold(limits.take_work_permits(account, call.half_time()).await?);
        }
        Ok(is_ready)
    }

    /// How long the call has taken, and how long it has also waited for something to answer.
    pub fn durations(&self) -> (Duration, Duration) {
        let waited = self.progress().waited;
        (self.started.elapsed().saturating_sub(waited), waited)
    }

    /// Holds permits until the work on the call has ended.
    pub fn hold(&self, permits: impl IntoIterator<Item = Permit>) {
        self.progress().permits.extend(permits);
    }

    /// The work has ended, and its response is sent.
    pub fn end_work(&self) {
        self.progress().permits.clear();
    }

    /// The caller no longer waits.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    /// Whether the deadline has passed or the caller has gone away.
    pub fn is_over(&self) -> bool {
        self.is_cancelled() || self.check_deadline().is_err()
    }

    /// The next deadline, or who set it if it has passed.
    fn check_deadline(&self) -> Result<Instant, DeadlineSource> {
        let progress = self.progress();
        let now = Instant::now();
        let (at, source) = match progress.caller_deadline {
            Some(at) if at <= progress.server_deadline => (at, DeadlineSource::Caller),
            _ => (progress.server_deadline, DeadlineSource::Server),
        };
        if now < at { Ok(at) } else { Err(source) }
    }

    /// Half of the remaining time. A call that waits longer is rejected: the other half is for the
    /// work, which would be wasted if it came too late.
    pub fn half_time(&self) -> Instant {
        let now = Instant::now();
        let deadline = self.check_deadline().unwrap_or(now);
        now + deadline.saturating_duration_since(now) / 2
    }

    /// Runs `work` until the server's time limit or, if that is earlier, until this time after the start of
    /// the call. Output that comes too late, because timers fire late on a busy machine, is dropped.
    pub async fn until_deadline<F: Future>(
        &self,
        timeout: Option<Duration>,
        mut work: Pin<&mut F>,
    ) -> Result<F::Output, DeadlineSource> {
        self.progress().caller_deadline = timeout.map(|timeout| self.started + timeout);
        // The deadline moves while the call waits for changes.
        loop {
            let deadline = self.check_deadline()?;
            if let Ok(output) = timeout_at(deadline, work.as_mut()).await {
                return self.check_deadline().map(|_| output);
            }
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that the work of the current call holds in addition to its request, such as a guide that is
/// analyzed. It counts until the permit is dropped. Fails with [`Error::Overloaded`] if it does not fit into the
/// memory that other calls leave.
pub fn take_memory(bytes: usize) -> Result<Permit> {
    let permit = current_limits().memory.try_take(bytes);
    permit.ok_or(Error::Overloaded(Overload::Memory))
}

/// The maximum number of bytes that all calls may hold. Work that takes more never fits.
pub fn memory_limit() -> usize {
    current_limits().memory.max()
}

fn current_limits() -> &'static CallLimits {
    let limits = CURRENT.try_with(|call| call.limits);
    limits.unwrap_or_else(|_| *OUTSIDE_OF_CALLS)
}
