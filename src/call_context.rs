//! Task-local context of the current call: id, deadline, cancellation, trace, and what it holds.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Poll, ready},
    time::Duration,
};

use tokio::{
    sync::OwnedSemaphorePermit,
    task::block_in_place,
    time::{Instant, sleep_until, timeout_at},
};
use uuid::Uuid;

use crate::{
    call_limits::{CallLimits, CallPermit},
    domain::{Error, Result, SizedResource, ids::AccountId},
};

/// Up to this size, a message is converted in less than a millisecond, so other calls on the same
/// thread can wait for it.
const MAX_QUICK_BYTES: usize = 256 * 1024;
/// How long before the caller's deadline a waiting call is answered.
const ANSWER_TIME: Duration = Duration::from_millis(250);

tokio::task_local! {
    static CURRENT: CallContext;
    static SPANS: CallSpans;
}

/// Records child spans of the span of a call.
pub trait SpanRecorder: Send + Sync {
    /// Records an operation that ended just now and took `duration`.
    fn record(&self, name: &'static str, duration: Duration, failed: bool);
}

/// Where work for a call records its spans, if the call's trace is sampled. Unlike a
/// [`CallContext`], a clone keeps nothing that the call holds, so any spawned task may have one.
#[derive(Clone, Default)]
pub struct CallSpans(Option<Arc<dyn SpanRecorder>>);

impl CallSpans {
    /// The spans of the current call; none outside of calls.
    pub fn for_current_call() -> Self {
        SPANS.try_with(Self::clone).unwrap_or_default()
    }

    /// Runs `work`, usually in a spawned task, and records its spans here.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        SPANS.scope(self, work)
    }
}

/// The context of a call. Work that may outlive the call, such as a write in a task of its own, keeps a
/// clone: what the call holds is released with the last clone.
#[derive(Clone)]
pub struct CallContext(Arc<Call>);

struct Call {
    id: Uuid,
    started: Instant,
    /// How long a call may take, from the server's setting.
    time_limit: Duration,
    limits: Arc<CallLimits>,
    spans: CallSpans,
    state: Mutex<CallState>,
    is_cancelled: AtomicBool,
    is_heavy: AtomicBool,
    _counted: Arc<()>,
}

struct CallState {
    /// When the server's time limit ends the call; `None` while it waits for changes.
    server_deadline: Option<Instant>,
    caller_deadline: Option<Instant>,
    waited: Duration,
    /// The account, once the call is admitted.
    account: Option<AccountId>,
    /// `None` while it waits for changes.
    permit: Option<CallPermit>,
    /// Of a large message, and of its elements.
    message: [Option<OwnedSemaphorePermit>; 2],
    response: WorkMemory,
}

/// Whose limit ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineSource {
    /// The caller, by `grpc-timeout`.
    Caller,
    /// The server, by its setting.
    Server,
}

/// Held while someone waits for the call. Dropping it cancels the call.
pub struct CallGuard(CallContext);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.0.is_cancelled.store(true, Relaxed);
    }
}

impl CallContext {
    /// A call that starts now, with its id in the log and a recorder if its trace is sampled.
    pub fn new(
        id: Uuid,
        time_limit: Duration,
        limits: &Arc<CallLimits>,
        spans: Option<Arc<dyn SpanRecorder>>,
    ) -> Self {
        let started = Instant::now();
        Self(Arc::new(Call {
            id,
            started,
            time_limit,
            limits: Arc::clone(limits),
            spans: CallSpans(spans),
            state: Mutex::new(CallState {
                server_deadline: Some(started + time_limit),
                caller_deadline: None,
                waited: Duration::ZERO,
                account: None,
                permit: None,
                message: [None, None],
                response: WorkMemory::new(Some(Arc::clone(limits))),
            }),
            is_cancelled: AtomicBool::new(false),
            is_heavy: AtomicBool::new(false),
            _counted: limits.count_call(),
        }))
    }

    /// Runs `work` with this context as [`CallContext::current`]. Tasks that it
    /// spawns do not inherit the context, nor its [`CallSpans`].
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        let spans = self.0.spans.clone();
        spans.scope(CURRENT.scope(self, work))
    }

    /// The context that this task runs in, if any.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// The id of the current call in the log, if this task works for one.
    pub fn current_id() -> Option<Uuid> {
        CURRENT.try_with(|call| call.0.id).ok()
    }

    /// Records an operation that ended just now in the trace of the current call, if
    /// it is sampled.
    pub fn record_span(name: &'static str, duration: Duration, failed: bool) {
        let _ = SPANS.try_with(|CallSpans(recorder)| {
            if let Some(recorder) = recorder {
                recorder.record(name, duration, failed);
            }
        });
    }

    /// Reserves memory for a response of this size until the current call ends. Returns false if it
    /// does not fit into the memory that other calls leave.
    pub fn try_reserve_response(bytes: usize) -> bool {
        Self::current().is_none_or(|call| {
            let response = &mut call.state().response;
            response.try_grow(bytes.saturating_sub(response.bytes()))
        })
    }

    /// Records that the current call works on this many bytes. See [`Self::in_turns`].
    pub fn note_size(bytes: usize) {
        let _ = CURRENT.try_with(|call| call.note_bytes(bytes));
    }

    /// Records that this call works on this many bytes.
    pub fn note_bytes(&self, bytes: usize) {
        if bytes > MAX_QUICK_BYTES {
            self.0.is_heavy.store(true, Relaxed);
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
            if !self.0.is_heavy.load(Relaxed) {
                return work.as_mut().poll(context);
            }
            let turns = &self.0.limits.turns;
            let turn = next_turn.get_or_insert_with(|| Box::pin(Arc::clone(turns).acquire_owned()));
            // The semaphore is never closed.
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
        let (until, account) = {
            let mut state = call.state();
            state.permit = None;
            state.message = [None, None];
            state.server_deadline = None;
            let longest = call.0.started + at_most;
            let until = state.caller_deadline.map_or(longest, |deadline| {
                longest.min(deadline - ANSWER_TIME.min(deadline - began))
            });
            (until, state.account.clone())
        };
        let is_ready = timeout_at(until, ready).await.is_ok();
        {
            let mut state = call.state();
            state.waited += began.elapsed();
            state.server_deadline = Some(Instant::now() + call.0.time_limit);
        }
        if let Some(account) = account {
            let place = call.0.limits.place(&account)?;
            let permit = place.permit(call.half_time()).await?;
            call.state().permit = Some(permit);
        }
        Ok(is_ready)
    }

    pub fn id(&self) -> Uuid {
        self.0.id
    }

    pub fn limits(&self) -> &Arc<CallLimits> {
        &self.0.limits
    }

    /// How long the call has taken, and how long it has also waited for something to answer.
    pub fn durations(&self) -> (Duration, Duration) {
        let waited = self.state().waited;
        (self.0.started.elapsed().saturating_sub(waited), waited)
    }

    /// Ends the call after this time from its start, if the server's time limit is not shorter.
    pub fn set_timeout(&self, timeout: Duration) {
        self.state().caller_deadline = Some(self.0.started + timeout);
    }

    /// Holds a permit to work on the call, and what its message holds, until the work has ended.
    pub fn hold(
        &self,
        account: AccountId,
        permit: CallPermit,
        message: [Option<OwnedSemaphorePermit>; 2],
    ) {
        let mut state = self.state();
        state.account = Some(account);
        state.permit = Some(permit);
        state.message = message;
    }

    /// The work has ended, and its response is sent.
    pub fn end_work(&self) {
        let mut state = self.state();
        state.permit = None;
        state.message = [None, None];
    }

    /// Cancels the call when the result is dropped.
    pub fn guard(&self) -> CallGuard {
        CallGuard(self.clone())
    }

    /// Whether the deadline has passed or the caller has gone away.
    pub fn is_over(&self) -> bool {
        self.0.is_cancelled.load(Relaxed)
            || self.deadline().is_some_and(|(at, _)| Instant::now() >= at)
    }

    /// When the call must have ended, and who says so.
    fn deadline(&self) -> Option<(Instant, DeadlineSource)> {
        let state = self.state();
        let of_caller = state.caller_deadline.map(|at| (at, DeadlineSource::Caller));
        let of_server = state.server_deadline.map(|at| (at, DeadlineSource::Server));
        of_caller
            .into_iter()
            .chain(of_server)
            .min_by_key(|(at, _)| *at)
    }

    /// Half of the remaining time. A call that waits longer is rejected: the other half is for the
    /// work, which would be wasted if it came too late.
    pub fn half_time(&self) -> Instant {
        let now = Instant::now();
        self.deadline().map_or(now + self.0.time_limit, |(at, _)| {
            at - at.saturating_duration_since(now) / 2
        })
    }

    /// Runs `work` until the deadline, which may move in the meantime. Each poll reads the clock,
    /// because timers fire late on a busy machine. Output that comes too late is dropped.
    pub async fn until_deadline<F: Future>(
        &self,
        mut work: Pin<&mut F>,
    ) -> Result<F::Output, DeadlineSource> {
        let over = || self.deadline().filter(|(at, _)| Instant::now() >= *at);
        if let Some((_, source)) = over() {
            return Err(source);
        }
        let mut timer = pin!(sleep_until(self.0.started + self.0.time_limit));
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            loop {
                match (self.deadline(), &polled) {
                    (Some((at, source)), _) if Instant::now() >= at => {
                        return Poll::Ready(Err(source));
                    }
                    (_, Poll::Ready(_)) => break,
                    (None, Poll::Pending) => return Poll::Pending,
                    (Some((at, _)), Poll::Pending) => {
                        if timer.deadline() != at {
                            timer.as_mut().reset(at);
                        }
                        if timer.as_mut().poll(context).is_pending() {
                            return Poll::Pending;
                        }
                    }
                }
            }
            polled.map(Ok)
        })
        .await
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that the work of a call holds in addition to its request, such as a guide that is analyzed or a
/// large response. It counts until this is dropped.
#[derive(Default)]
pub struct WorkMemory {
    /// `None` outside of calls, where nothing is counted.
    limits: Option<Arc<CallLimits>>,
    permit: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

impl WorkMemory {
    /// Memory for the current call, which holds nothing yet.
    pub fn for_current_call() -> Self {
        let limits = CURRENT.try_with(|call| Arc::clone(&call.0.limits));
        Self::new(limits.ok())
    }

    fn new(limits: Option<Arc<CallLimits>>) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The maximum number of bytes that all calls may hold. Work that takes more never fits.
    pub fn limit(&self) -> usize {
        self.limits
            .as_ref()
            .map_or(usize::MAX, |limits| limits.max_bytes())
    }

    /// Holds this many additional bytes. Returns false, and holds no more, if they do not fit into
    /// the memory that other calls leave.
    pub fn try_grow(&mut self, more: usize) -> bool {
        let bytes = self.bytes.saturating_add(more);
        if let Some(limits) = &self.limits {
            let held = self.permit.as_ref().map_or(0, |it| it.num_permits());
            let kib = bytes.div_ceil(1024).saturating_sub(held);
            match (limits.try_work(kib), &mut self.permit) {
                (Ok(more), Some(held)) => held.merge(more),
                (Ok(first), None) => self.permit = Some(first),
                (Err(_), _) => return false,
            }
        }
        self.bytes = bytes;
        true
    }

    /// Holds this many bytes in total, for this resource. Fails with [`Error::Overloaded`] if they
    /// do not fit into the memory that other calls leave. Fails with [`Error::TooLarge`] if they
    /// would never fit in addition to the `other` bytes that this call holds.
    pub fn hold(&mut self, resource: SizedResource, bytes: usize, other: usize) -> Result<()> {
        let limit = self.limit();
        if bytes.saturating_add(other) > limit {
            return Err(Error::TooLarge { resource, limit });
        }
        if !self.try_grow(bytes.saturating_sub(self.bytes)) {
            return Err(Error::Overloaded);
        }
        self.shrink_to(bytes);
        Ok(())
    }

    /// Releases all but this many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.bytes = self.bytes.min(bytes);
        if let Some(permit) = &mut self.permit {
            let freed = permit
                .num_permits()
                .saturating_sub(self.bytes.div_ceil(1024));
            drop(permit.split(freed));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn call() -> CallContext {
        let limits = CallLimits::new(1 << 20);
        CallContext::new(Uuid::nil(), LIMIT, &limits, None)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_over_after_its_deadline_or_when_its_guard_is_dropped() {
        let (one, other) = (call(), call());
        other.set_timeout(LIMIT / 2);
        assert!(!one.is_over() && !other.is_over());
        advance(LIMIT / 2).await;
        assert!(!one.is_over() && other.is_over());
        let guard = one.guard();
        assert!(!one.is_over());
        drop(guard);
        assert!(one.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_does_not_count_for_the_time_limit_of_the_server() {
        let call = call();
        let work = async {
            let ready = tokio::time::sleep(3 * LIMIT);
            CallContext::wait(ready, 6 * LIMIT).await
        };
        let ended = call.until_deadline(pin!(call.clone().scope(work))).await;
        assert!(matches!(ended, Ok(Ok(true))));
        assert_eq!(call.durations(), (Duration::ZERO, 3 * LIMIT));
        assert!(!call.is_over());
        advance(LIMIT).await;
        assert!(call.is_over());
    }

    #[tokio::test]
    async fn work_does_not_start_after_its_deadline() {
        let call = call();
        call.set_timeout(Duration::ZERO);
        let ended = call
            .until_deadline(pin!(async { unreachable!("it started") }))
            .await;
        assert_eq!(ended, Err::<(), _>(DeadlineSource::Caller));
    }

    #[test]
    fn work_holds_what_fits_until_it_is_dropped() {
        let limits = CallLimits::new(10 * 1024);
        let mut one = WorkMemory::new(Some(Arc::clone(&limits)));
        let mut other = WorkMemory::new(Some(Arc::clone(&limits)));
        assert!(one.try_grow(6_000) && one.try_grow(100));
        assert!(!other.try_grow(5_000));
        one.shrink_to(100);
        assert!(other.try_grow(9 * 1024) && !other.try_grow(1));
        assert_eq!((one.bytes(), other.bytes()), (100, 9 * 1024));
        drop((one, other));
        assert_eq!(limits.bytes(), 0);
    }
}
