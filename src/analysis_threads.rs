//! Runs work that takes more than a millisecond of processor time on separate threads, so that the
//! threads of the runtime are free for other calls.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, oneshot};
use tracing::Instrument;

use crate::{
    call_context::{CallContext, WorkMemory},
    domain::{
        Error, Result,
        analysis::{NEVER, StopSignal},
    },
};

/// Work of at most this weight, in steps, conditions, targets and keys, is light: it takes less
/// time than moving it to another thread.
const MAX_LIGHT_WEIGHT: usize = 300;
/// How long light work may take on a thread of the runtime. If it takes longer, it is restarted on
/// a separate thread.
const MAX_LIGHT_TIME: Duration = Duration::from_millis(1);
/// The niceness of [`AnalysisThreads`]. Each gets a third of the processor time of a normal thread.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;
/// The bytes that an analysis takes for each step, condition, target and key of a guide, in
/// addition to the guide itself: findings, and formulas of walkthroughs.
const ANALYSIS_BYTES_PER_WEIGHT: usize = 4 * 1024;
/// The maximum memory of an analysis in addition to the guide.
const MAX_ANALYSIS_BYTES: usize = 96 * 1024 * 1024;
/// An analysis may reserve one eighth of the memory of all calls.
const ANALYSIS_SHARE: usize = 8;

/// The threads that analyses may use concurrently.
pub struct AnalysisThreads(Arc<Semaphore>);

impl AnalysisThreads {
    /// One per processor. More would only take turns, and use more memory.
    pub fn new() -> Self {
        let count = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Runs an analysis of a guide of this weight. The analysis stops when its call is over. What
    /// the call holds is released only after the analysis has stopped.
    ///
    /// *Invariant:* a call that waits for a thread holds no connection.
    pub async fn run<T: Send + 'static>(
        &self,
        weight: usize,
        analysis: impl Fn(StopSignal<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        if weight <= MAX_LIGHT_WEIGHT {
            let started = Instant::now();
            let takes_long = || started.elapsed() >= MAX_LIGHT_TIME;
            if let Some(result) = analysis(&takes_long) {
                return Ok(result);
            }
        }
        self.run_on_own_thread(weight, analysis).await
    }

    /// Runs work whose duration depends only on its weight. Light work runs on this thread, other
    /// work on a separate thread, as in [`Self::run`].
    pub async fn run_once<T: Send + 'static>(
        &self,
        weight: usize,
        analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        match weight {
            ..=MAX_LIGHT_WEIGHT => analysis(NEVER).ok_or(Error::CallOver),
            _ => self.run_on_own_thread(weight, analysis).await,
        }
    }

    async fn run_on_own_thread<T: Send + 'static>(
        &self,
        weight: usize,
        analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await.ok();
        let mut memory = WorkMemory::for_current_call();
        let bytes = weight.saturating_mul(ANALYSIS_BYTES_PER_WEIGHT);
        let most = MAX_ANALYSIS_BYTES.min(memory.limit() / ANALYSIS_SHARE);
        if !memory.try_grow(bytes.min(most)) {
            return Err(Error::Overloaded);
        }
        let work = stopping_with_call(analysis);
        let result = on_yielding_thread(move || {
            let result = work();
            drop((memory, permit));
            result
        });
        result.await?.ok_or(Error::CallOver)
    }
}

/// Runs light work on this thread, and other work on a separate one. It is for short work of calls
/// that hold something that others need, such as a transaction, and so must not wait for an
/// analysis thread.
pub async fn run_by_weight<T: Send + 'static>(
    weight: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    match weight {
        ..=MAX_LIGHT_WEIGHT => Ok(work()),
        _ => on_own_thread(work).await,
    }
}

/// Like [`run_by_weight`], for analyses that stop when the call is over. They may hold a connection
/// that other calls wait for, so they do not yield.
pub async fn analyse_by_weight<T: Send + 'static>(
    weight: usize,
    analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
) -> Result<T> {
    match weight {
        ..=MAX_LIGHT_WEIGHT => analysis(NEVER).ok_or(Error::CallOver),
        _ => on_own_thread(stopping_with_call(analysis))
            .await?
            .ok_or(Error::CallOver),
    }
}

/// An analysis with a signal that stops it when the current call is over.
fn stopping_with_call<T>(
    analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
) -> impl FnOnce() -> Option<T> + Send + 'static {
    let call = CallContext::current();
    move || {
        let is_over = || call.as_ref().is_some_and(CallContext::is_over);
        analysis(&is_over)
    }
}

/// Runs an analysis on a separate low-priority thread.
async fn on_yielding_thread<T: Send + 'static>(
    analysis: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let span = tracing::Span::current();
    let (sender, result) = oneshot::channel();
    let thread = thread::Builder::new().name("analysis".to_owned());
    let thread = thread.spawn(move || {
        yield_to_others();
        // This fails when the caller has gone.
        let _ = sender.send(span.in_scope(analysis));
    });
    thread.map_err(|_| Error::Overloaded)?;
    result.await.map_err(|_| panicked())
}

/// Lowers the priority of this thread, if the system allows it.
fn yield_to_others() {
    // On other systems this would lower the priority of the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICENESS);
}

async fn on_own_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let span = tracing::Span::current();
    // The work continues if the call is cancelled, so its memory counts until the work ends.
    let call = CallContext::current();
    let work = tokio::task::spawn_blocking(move || {
        let result = span.in_scope(work);
        drop(call);
        result
    });
    let result = work.in_current_span().await;
    result.map_err(|_| panicked())
}

fn panicked() -> Error {
    Error::Internal("work on a guide panicked".to_owned())
}
