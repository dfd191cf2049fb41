//! Task-local context of the current call: id, deadline, cancellation, trace and memory.

use std::{
    any::Any,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;

use crate::domain::{Error, Result, SizedResource};

tokio::task_local! {
    static CURRENT: CallContext;
    static SPANS: CallSpans;
}

/// Records spans below the span of a call.
pub trait SpanRecorder: Send + Sync {
    /// Records an operation that ended just now and took `duration`.
    fn record(&self, name: &'static str, duration: Duration, failed: bool);
}

/// The memory budget that a call counts against.
pub trait CallMemory: Send + Sync {
    /// Counts a response of so many bytes before it is made. Returns false, and counts nothing,
    /// if it does not fit.
    fn try_reserve_response(&self, bytes: usize) -> bool;

    /// Counts so many bytes more of what the call's work holds. Returns false, and counts
    /// nothing, if they do not fit.
    fn try_reserve_work(&self, bytes: usize) -> bool;

    /// Takes back bytes that [`Self::try_reserve_work`] counted.
    fn release_work(&self, bytes: usize);

    /// The most bytes that all calls may hold together.
    fn limit(&self) -> usize;
}

/// Memory that the work of a call holds beside its request and response, such as a guide
/// that is analysed. It counts against the memory budget until this is dropped.
pub struct WorkMemory {
    /// `None` outside of calls, where nothing is counted.
    memory: Option<Arc<dyn CallMemory>>,
    bytes: usize,
}

impl WorkMemory {
    /// Memory for the current call, of which nothing is held yet.
    pub fn of_current_call() -> Self {
        Self {
            memory: CURRENT.try_with(|call| Arc::clone(&call.memory)).ok(),
            bytes: 0,
        }
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes that all calls may hold together. Work that takes more never fits.
    pub fn limit(&self) -> usize {
        self.memory
            .as_ref()
            .map_or(usize::MAX, |memory| memory.limit())
    }

    /// Holds so many bytes more. Returns false, and holds no more, if they do not fit beside
    /// what other calls hold.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let fits = match &self.memory {
            Some(memory) => memory.try_reserve_work(bytes),
            None => true,
        };
        if fits {
            self.bytes += bytes;
        }
        fits
    }

    /// Holds so many bytes in all, for this resource. Fails with [`Error::Overloaded`] if they do
    /// not fit beside what other calls hold, and with [`Error::TooLarge`] if they would never fit
    /// beside `other` bytes that this call holds.
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

    /// Holds at most so many bytes in all.
    pub fn shrink_to(&mut self, bytes: usize) {
        let freed = self.bytes.saturating_sub(bytes);
        if let Some(memory) = &self.memory {
            memory.release_work(freed);
        }
        self.bytes -= freed;
    }
}

impl Drop for WorkMemory {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// What a call with nothing to answer waits for. Then it is asked again, as if it had just arrived.
pub struct CallWait {
    /// Ready when there may be something to answer.
    pub ready: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The longest wait from the call's arrival on, those before included.
    pub at_most: Duration,
}

/// Where a call leaves its [`CallWait`].
#[derive(Clone, Default)]
pub struct CallWaitSlot(Arc<Mutex<Option<CallWait>>>);

impl CallWaitSlot {
    /// Takes the wait that the call has left.
    pub fn take(&self) -> Option<CallWait> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The context of a call. Work that may outlive the call, such as a write in a
/// task of its own, keeps a clone: what the call holds is released with the last
/// clone.
#[derive(Clone)]
pub struct CallContext {
    id: Uuid,
    deadline: Instant,
    guard: Weak<()>,
    spans: CallSpans,
    memory: Arc<dyn CallMemory>,
    /// `None` if the call must be answered now.
    wait: Option<CallWaitSlot>,
    _held: Arc<dyn Any + Send + Sync>,
}

/// Where work for a call records its spans, if the call's trace is sampled. Unlike a
/// [`CallContext`], a clone keeps nothing that the call holds, so any spawned task may have one.
#[derive(Clone, Default)]
pub struct CallSpans(Option<Arc<dyn SpanRecorder>>);

impl CallSpans {
    /// Those of the current call; none outside of calls.
    pub fn of_current_call() -> Self {
        SPANS.try_with(Self::clone).unwrap_or_default()
    }

    /// Runs `work`, usually in a spawned task, and records its spans here.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        SPANS.scope(self, work)
    }
}

/// Held by whoever waits for the call. Dropping it cancels the call.
pub struct CallGuard(Arc<()>);

impl CallContext {
    /// A call with its id in the log, its deadline, where its memory is counted, what it holds
    /// until its work has ended, and a recorder when its trace is sampled.
    pub fn new(
        id: Uuid,
        deadline: Instant,
        memory: Arc<dyn CallMemory>,
        held: impl Any + Send + Sync,
        spans: Option<Arc<dyn SpanRecorder>>,
    ) -> (Self, CallGuard) {
        let guard = CallGuard(Arc::new(()));
        let context = Self {
            id,
            deadline,
            guard: Arc::downgrade(&guard.0),
            spans: CallSpans(spans),
            memory,
            wait: None,
            _held: Arc::new(held),
        };
        (context, guard)
    }

    /// The same context, in which the call may leave a wait in place of its answer.
    pub fn with_wait(self, wait: Option<CallWaitSlot>) -> Self {
        Self { wait, ..self }
    }

    /// Whether the current call may wait.
    pub fn may_wait() -> bool {
        CURRENT
            .try_with(|call| call.wait.is_some())
            .unwrap_or(false)
    }

    /// Has the current call wait and be asked again, whatever it answers now.
    pub fn ask_again(wait: CallWait) {
        let _ = CURRENT.try_with(|call| {
            if let Some(CallWaitSlot(slot)) = &call.wait {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(wait);
            }
        });
    }

    /// Runs `work` with this context as [`CallContext::current`]. Tasks that it
    /// spawns do not inherit the context, nor its [`CallSpans`].
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        let spans = self.spans.clone();
        spans.scope(CURRENT.scope(self, work))
    }

    /// The context that this task runs in, if any.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// The id of the current call in the log, if this task works for one.
    pub fn current_id() -> Option<Uuid> {
        CURRENT.try_with(|call| call.id).ok()
    }

    /// Reserves memory for a response of so many bytes to the current call. Returns false if it
    /// does not fit beside the messages of other calls.
    pub fn try_reserve_response(bytes: usize) -> bool {
        CURRENT
            .try_with(|call| call.memory.try_reserve_response(bytes))
            .unwrap_or(true)
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

    /// Whether the deadline has passed or the caller has gone away.
    pub fn is_over(&self) -> bool {
        self.guard.strong_count() == 0 || Instant::now() >= self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Unlimited;

    impl CallMemory for Unlimited {
        fn try_reserve_response(&self, _: usize) -> bool {
            true
        }

        fn try_reserve_work(&self, _: usize) -> bool {
            true
        }

        fn release_work(&self, _: usize) {}

        fn limit(&self) -> usize {
            usize::MAX
        }
    }

    fn memory() -> Arc<dyn CallMemory> {
        Arc::new(Unlimited)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_over_after_its_deadline_or_when_its_guard_is_dropped() {
        let deadline = || Instant::now() + Duration::from_secs(1);
        let (call, _guard) = CallContext::new(Uuid::nil(), deadline(), memory(), (), None);
        assert!(!call.is_over());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(call.is_over());

        let (call, guard) = CallContext::new(Uuid::nil(), deadline(), memory(), (), None);
        assert!(!call.is_over());
        drop(guard);
        assert!(call.is_over());
    }

    #[tokio::test]
    async fn what_a_call_holds_is_released_with_the_last_clone_of_its_context() {
        let held = Arc::new(());
        let (call, guard) = CallContext::new(
            Uuid::nil(),
            Instant::now(),
            memory(),
            Arc::clone(&held),
            None,
        );
        let kept = call.scope(async { CallContext::current() }).await;
        drop(guard);
        assert_eq!(Arc::strong_count(&held), 2);
        drop(kept);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(CallContext::current().is_none());
    }
}
