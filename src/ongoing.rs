//! The call that a piece of work is done for, so that work which nobody waits
//! for any more is not begun.

use std::{
    any::Any,
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::Instant;

use crate::telemetry::Below;

tokio::task_local! {
    static CALL: Ongoing;
}

/// A call at hand. Work that outlives the call, such as a write in a task of its
/// own, keeps a clone: what the call holds is free when the last one is gone.
#[derive(Clone)]
pub struct Ongoing {
    deadline: Instant,
    caller: Weak<()>,
    below: Option<Arc<Below>>,
    _holds: Arc<dyn Any + Send + Sync>,
}

/// The caller's side of a call. Dropped, the caller has gone.
pub struct Waiting(Arc<()>);

impl Ongoing {
    /// A call until its deadline that holds something, and its caller's side.
    pub fn begin(deadline: Instant, holds: impl Any + Send + Sync) -> (Self, Waiting) {
        let waiting = Waiting(Arc::new(()));
        let ongoing = Self {
            deadline,
            caller: Arc::downgrade(&waiting.0),
            below: None,
            _holds: Arc::new(holds),
        };
        (ongoing, waiting)
    }

    /// The same call, of which somebody looks at the trace.
    pub fn traced(self, below: Option<Below>) -> Self {
        Self {
            below: below.map(Arc::new),
            ..self
        }
    }

    /// Tells the trace of the call at hand that something ended now, if somebody
    /// looks at it.
    pub fn tell(what: &'static str, took: Duration, failed: bool) {
        let _ = CALL.try_with(|call| {
            if let Some(below) = &call.below {
                below.tell(what, took, failed);
            }
        });
    }

    /// Runs the work of the call: [`Ongoing::current`] is this call in it, but not
    /// in tasks that it spawns.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CALL.scope(self, work).await
    }

    /// The call that this task works for, if it works for one.
    pub fn current() -> Option<Self> {
        CALL.try_with(Self::clone).ok()
    }

    /// Whether the deadline has passed or the caller has gone.
    pub fn is_over(&self) -> bool {
        self.caller.strong_count() == 0 || Instant::now() >= self.deadline
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_over_when_its_deadline_passed_or_its_caller_went_away() {
        let (call, waiting) = Ongoing::begin(Instant::now() + Duration::from_secs(1), ());
        assert!(!call.is_over());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(call.is_over());
        drop(waiting);

        let (call, waiting) = Ongoing::begin(Instant::now() + Duration::from_secs(1), ());
        assert!(!call.is_over());
        drop(waiting);
        assert!(call.is_over());
    }

    #[tokio::test]
    async fn what_a_call_holds_is_free_when_its_last_work_has_ended() {
        let held = Arc::new(());
        let (call, waiting) = Ongoing::begin(Instant::now(), Arc::clone(&held));
        let kept = call.scope(async { Ongoing::current() }).await;
        drop(waiting);
        assert_eq!(Arc::strong_count(&held), 2);
        drop(kept);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(Ongoing::current().is_none());
    }
}
