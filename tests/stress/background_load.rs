//! Clients that read and write while a test takes the database away.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use expertise::proto::v1::ListTasksRequest;
use tokio::{task::JoinSet, time::sleep};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::{
    expected::{WriteError, Writer, write_error},
    kit::{
        client::Client,
        deadline::{WAIT_TIMEOUT, until},
        rng::Rng,
    },
};

/// Calls of a kind among which every fault would show: more than the server has
/// connections to its database.
const ENOUGH_CALLS: usize = 20;
/// The pause of a client after an error.
const ERROR_PAUSE: Duration = Duration::from_millis(10);
const SEED_VARIABLE: &str = "EXPERTISE_TEST_FAULTS_SEED";

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
}

/// How many calls were answered, by [`Kind`], and whether the clients stop.
#[derive(Debug, Default)]
struct Counts {
    stop: AtomicBool,
    accepted: [AtomicUsize; 2],
    refused: [AtomicUsize; 2],
}

/// The clients, until [`BackgroundLoad::end`].
pub struct BackgroundLoad {
    counts: Arc<Counts>,
    callers: JoinSet<Caller>,
}

impl BackgroundLoad {
    /// Starts so many clients, each with a connection and an account of its own.
    pub fn start(test: &str, server: SocketAddr, clients: usize) -> Self {
        let counts = Arc::new(Counts::default());
        let mut rng = Rng::from_env(test, SEED_VARIABLE);
        let callers = (0..clients).map(|_| Caller {
            client: Client::at(server),
            writers: vec![Writer::new(&mut rng)],
            rng: rng.fork(),
            counts: Arc::clone(&counts),
            calls: Vec::new(),
        });
        let callers = callers.map(Caller::run).collect();
        Self { counts, callers }
    }

    /// Waits until so many more calls of both kinds were accepted, counted from now: what ends
    /// writes may come before the reads are served.
    pub async fn wait_until_served(&mut self, more: usize) {
        let [reads, writes] = &self.counts.accepted;
        let goals = [reads, writes].map(|count| count.load(Ordering::Relaxed) + more);
        self.wait_until("reads and writes are served", |counts| {
            let accepted = counts.accepted.iter().zip(goals);
            accepted
                .into_iter()
                .all(|(count, goal)| count.load(Ordering::Relaxed) >= goal)
        })
        .await;
    }

    /// Waits until all calls of both kinds were accepted for a while.
    pub async fn wait_until_served_without_errors(&mut self) {
        let refused = |counts: &Counts| -> usize {
            let refused = counts.refused.iter();
            refused.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let started = Instant::now();
        loop {
            let before = refused(&self.counts);
            self.wait_until_served(ENOUGH_CALLS).await;
            if refused(&self.counts) == before {
                return;
            }
            let waited = started.elapsed();
            assert!(waited < WAIT_TIMEOUT, "calls are still refused");
        }
    }

    pub async fn wait_until_reads_are_served(&mut self, more: usize) {
        self.wait_for("reads are served", more, |counts| {
            &counts.accepted[Kind::Read as usize]
        })
        .await;
    }

    pub async fn wait_until_reads_are_refused(&mut self, more: usize) {
        self.wait_for("reads are refused", more, |counts| {
            &counts.refused[Kind::Read as usize]
        })
        .await;
    }

    pub async fn wait_until_writes_are_refused(&mut self, more: usize) {
        self.wait_for("writes are refused", more, |counts| {
            &counts.refused[Kind::Write as usize]
        })
        .await;
    }

    async fn wait_for(&mut self, what: &str, more: usize, which: fn(&Counts) -> &AtomicUsize) {
        let goal = which(&self.counts).load(Ordering::Relaxed) + more;
        self.wait_until(what, |counts| which(counts).load(Ordering::Relaxed) >= goal)
            .await;
    }

    async fn wait_until(&mut self, what: &str, condition: impl Fn(&Counts) -> bool) {
        until(what, async || {
            if let Some(Err(panicked)) = self.callers.try_join_next() {
                std::panic::resume_unwind(panicked.into_panic());
            }
            condition(&self.counts).then_some(())
        })
        .await;
    }

    /// Stops the clients, and asserts that the service holds what they expect.
    pub async fn end(self) -> CallHistory {
        self.counts.stop.store(true, Ordering::Relaxed);
        let mut history = CallHistory { calls: Vec::new() };
        for mut caller in self.callers.join_all().await {
            for writer in &mut caller.writers {
                writer.verify(&caller.client).await;
            }
            history.calls.append(&mut caller.calls);
        }
        history
    }
}

/// One client. It goes on with another writer when a write was not answered.
struct Caller {
    client: Client,
    writers: Vec<Writer>,
    rng: Rng,
    counts: Arc<Counts>,
    calls: Vec<Call>,
}

/// How a call went.
#[derive(Clone, Copy, Debug)]
struct Call {
    started: Instant,
    ended: Instant,
    error: Option<Code>,
}

impl Caller {
    async fn run(mut self) -> Self {
        while !self.counts.stop.load(Ordering::Relaxed) {
            let done = match self.rng.below(5) {
                0 => self.list_tasks().await,
                _ => self.write().await,
            };
            if done.is_err() {
                sleep(ERROR_PAUSE).await;
            }
        }
        self
    }

    async fn write(&mut self) -> Result<(), WriteError> {
        let free = |writer: &Writer| writer.unanswered.is_none();
        let index = self.writers.iter().position(free).unwrap_or_else(|| {
            self.writers.push(Writer::new(&mut self.rng));
            self.writers.len() - 1
        });
        let client = self.writers[index].client(&self.client);
        let started = Instant::now();
        let write = match self.writers[index].next_write(&client).await {
            Ok(None) => return Ok(()),
            Ok(Some(write)) => write,
            Err(status) => {
                let _ = self.note(Kind::Read, started, &Err::<(), _>(status));
                self.writers[index].blind_write()
            }
        };
        let started = Instant::now();
        let sent = write.call.send(&client).await;
        let _ = self.note(Kind::Write, started, &sent);
        self.writers[index].note(write, sent)
    }

    async fn list_tasks(&mut self) -> Result<(), WriteError> {
        let started = Instant::now();
        let read = self.client.call(ListTasksRequest::default()).await;
        self.note(Kind::Read, started, &read)
    }

    fn note<T>(
        &mut self,
        kind: Kind,
        started: Instant,
        result: &Result<T, Status>,
    ) -> Result<(), WriteError> {
        let (counts, error) = match result {
            Ok(_) => (&self.counts.accepted, None),
            // The answer of a rule, such as one that forbids to delete a task that others refer to.
            Err(status) if write_error(status) == WriteError::Refused => {
                (&self.counts.accepted, None)
            }
            Err(status) => {
                // The server runs on, so that it sends every error itself and no connection breaks.
                assert!(status.get_details_error_info().is_some(), "{status:?}");
                (&self.counts.refused, Some(status))
            }
        };
        counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.calls.push(Call {
            started,
            ended: Instant::now(),
            error: error.map(Status::code),
        });
        error.map_or(Ok(()), |status| Err(write_error(status)))
    }
}

/// How all calls of a load went.
pub struct CallHistory {
    calls: Vec<Call>,
}

impl CallHistory {
    /// Prints how the calls went, and asserts that each error has one of these codes.
    #[track_caller]
    pub fn has_no_errors_but(&self, name: &str, codes: &[Code]) {
        let mut answers = BTreeMap::new();
        for call in &self.calls {
            let expected = call.error.is_none_or(|code| codes.contains(&code));
            assert!(expected, "{call:?}");
            let code = call.error.unwrap_or(Code::Ok);
            *answers.entry(format!("{code:?}")).or_insert(0) += 1;
        }
        println!("{name}: {answers:?}");
    }

    /// The longest that a call took.
    pub fn longest(&self) -> Duration {
        let times = self.calls.iter().map(|call| call.ended - call.started);
        times.max().unwrap_or_default()
    }

    /// How long after the database was `back` the first call succeeded. Calls from before the
    /// outage, which began at `gone`, do not count.
    pub fn first_success(&self, gone: Instant, back: Instant) -> Duration {
        let succeeded = self.calls.iter().filter(|call| call.error.is_none());
        let after = succeeded.filter(|call| call.started > gone || call.ended > back);
        let first = after.map(|call| call.ended).min().expect("a success");
        first.saturating_duration_since(back)
    }

    /// How long after the database was `back` the last failed call began, of those that
    /// began before `end`.
    pub fn last_failure(&self, back: Instant, end: Instant) -> Duration {
        let failed = self.calls.iter().filter(|call| call.error.is_some());
        let began = failed.map(|call| call.started).filter(|at| *at < end);
        let last = began.max().unwrap_or(back);
        last.saturating_duration_since(back)
    }
}
