//! Runs work that takes more than a millisecond of processor time on separate threads, so that the
//! threads of the runtime are free for other calls.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::{block_in_place, spawn_blocking},
};
use tracing::warn;

use crate::{
    call_context::{CallContext, memory_limit, take_memory},
    domain::{
        Error, Overload, Result,
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
    /// One per processor. More threads would only compete, and use more memory.
    pub fn new() -> Self {
        let count = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Runs `prepare`, whose time depends only on the weight, and then `analyze`. Light work runs
    /// here; if `analyze` takes long, it starts again on its own thread. Work there stops when the
    /// call is over, and the call's resources stay reserved until it has stopped.
    ///
    /// *Invariant:* a call that waits for a thread holds no connection.
    pub async fn run<S: Send + 'static, T: Send + 'static>(
        &self,
        weight: usize,
        prepare: impl FnOnce(StopSignal<'_>) -> Option<S> + Send + 'static,
        analyze: impl Fn(&S, StopSignal<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        if weight > MAX_LIGHT_WEIGHT {
            let work = move |stop: StopSignal<'_>| analyze(&prepare(stop)?, stop);
            return self.run_on_own_thread(weight, work).await;
        }
        let prepared = prepare(NEVER).ok_or(Error::CallOver)?;
        let started = Instant::now();
        let takes_long = || started.elapsed() >= MAX_LIGHT_TIME;
        if let Some(result) = analyze(&prepared, &takes_long) {
            return Ok(result);
        }
        let again = move |stop: StopSignal<'_>| analyze(&prepared, stop);
        self.run_on_own_thread(weight, again).await
    }

    /// Like [`Self::run`], for work whose time depends only on the weight.
    pub async fn run_once<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        match weight {
            ..=MAX_LIGHT_WEIGHT => work(NEVER).ok_or(Error::CallOver),
            _ => self.run_on_own_thread(weight, work).await,
        }
    }

    /// Runs an analysis on its own thread, which yields to other work.
    async fn run_on_own_thread<T: Send + 'static>(
        &self,
        weight: usize,
        analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let bytes = weight.saturating_mul(ANALYSIS_BYTES_PER_WEIGHT);
        let most = MAX_ANALYSIS_BYTES.min(memory_limit() / ANALYSIS_SHARE);
        let memory = take_memory(bytes.min(most))?;
        let work = stopping_with_call(analysis);
        let (sender, result) = oneshot::channel();
        let thread = thread::Builder::new().name("analysis".to_owned());
        let thread = thread.spawn(move || {
            yield_to_others();
            let result = work();
            drop((memory, permit));
            // This fails when the caller has gone.
            let _ = sender.send(result);
        });
        if let Err(error) = thread {
            warn!(%error, "no thread for an analysis could be started: check the limit of threads");
            return Err(Error::Overloaded(Overload::Threads));
        }
        let result = result.await.map_err(|_| panicked())?;
        result.ok_or(Error::CallOver)
    }
}

/// Runs short work on this thread. Unless it is light, the other tasks of this thread move to
/// another thread. This is for calls that hold a transaction: they must not wait for
/// [`AnalysisThreads`].
pub fn run_by_weight<T>(weight: usize, work: impl FnOnce() -> T) -> T {
    match weight {
        ..=MAX_LIGHT_WEIGHT => work(),
        _ => block_in_place(work),
    }
}

/// Runs light work on this thread, and other work on another thread, so that a large call does not
/// block this one. The work stops when the call is over. This is for calls that hold a connection:
/// other calls wait for that connection, so these calls must not wait for [`AnalysisThreads`].
pub async fn analyze_by_weight<T: Send + 'static>(
    weight: usize,
    analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
) -> Result<T> {
    let result = match weight {
        ..=MAX_LIGHT_WEIGHT => analysis(NEVER),
        _ => spawn_blocking(stopping_with_call(analysis))
            .await
            .map_err(|_| panicked())?,
    };
    result.ok_or(Error::CallOver)
}

/// An analysis in the span of the current call, which stops when the call is over. The call's
/// context is kept until the analysis has ended, and its memory counts until then.
fn stopping_with_call<T>(
    analysis: impl FnOnce(StopSignal<'_>) -> Option<T> + Send + 'static,
) -> impl FnOnce() -> Option<T> + Send + 'static {
    let span = tracing::Span::current();
    let call = CallContext::current();
    move || {
        let is_over = || call.as_ref().is_some_and(|call| call.is_over());
        span.in_scope(|| analysis(&is_over))
    }
}

/// Lowers the priority of this thread. Does nothing if the system does not allow it.
fn yield_to_others() {
    // On other systems, this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICENESS);
}

fn panicked() -> Error {
    Error::Internal("work on a guide panicked".to_owned())
}
