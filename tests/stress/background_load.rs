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
    expected::{ObservedState, WriteError, Writer, retry_while_unavailable, verify, write_error},
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
        let writers = Writer::several(clients, 1, &mut rng).into_iter();
        let callers = writers.map(|writer| Caller {
            client: Client::at(server),
            writer,
            counts: Arc::clone(&counts),
            calls: Vec::new(),
        });
        let callers = callers.map(Caller::run).collect();
        Self { counts, callers }
    }

    /// Waits until so many more calls of both kinds were accepted.
    pub async fn wait_until_served(&mut self, more: usize) {
        self.wait_until_reads_are_served(more).await;
        self.wait_until_writes_are_served(more).await;
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

    pub async fn wait_until_writes_are_served(&mut self, more: usize) {
        self.wait_for("writes are served", more, |counts| {
            &counts.accepted[Kind::Write as usize]
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
        until(what, async || {
            if let Some(Err(panicked)) = self.callers.try_join_next() {
                std::panic::resume_unwind(panicked.into_panic());
            }
            (which(&self.counts).load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await;
    }

    /// Stops the clients, and asserts that the service holds what they expect.
    pub async fn end(self) -> CallHistory {
        self.counts.stop.store(true, Ordering::Relaxed);
        let mut history = CallHistory {
            calls: Vec::new(),
            verified: 0,
        };
        for mut caller in self.callers.join_all().await {
            history.verified += caller.verify().await;
            history.calls.append(&mut caller.calls);
        }
        history
    }
}

/// One client, the only one of its account.
struct Caller {
    client: Client,
    writer: Writer,
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
            let workspace = match self.writer.pick_workspace() {
                Some(workspace) => workspace,
                None => self.writer.add_workspace(),
            };
            let done = match self.writer.rng.below(5) {
                0 => self.list_tasks().await,
                1 => self.get_task(workspace).await,
                _ => self.write(workspace).await,
            };
            match done {
                Ok(()) => {}
                Err(WriteError::NotDone | WriteError::Unknown) => sleep(ERROR_PAUSE).await,
                Err(other) => panic!("{other:?}, but nobody else writes here"),
            }
        }
        self
    }

    async fn write(&mut self, workspace: usize) -> Result<(), WriteError> {
        let started = Instant::now();
        let write = match self.writer.next_write(&self.client, workspace).await {
            Ok(write) => write,
            failed => return self.note(Kind::Read, started, &failed),
        };
        let started = Instant::now();
        let sent = write.send(&self.client).await;
        let _ = self.note(Kind::Write, started, &sent);
        self.writer.note(workspace, write, sent)
    }

    async fn get_task(&mut self, workspace: usize) -> Result<(), WriteError> {
        let mut tasks = self.writer.workspaces[workspace].tasks.clone();
        tasks.retain(|expected| !expected.has_placeholder());
        let Some(expected) = self.writer.rng.try_pick(&tasks) else {
            return Ok(());
        };
        let started = Instant::now();
        let read = self.client.get_task(&expected.task.guid).await;
        self.note(Kind::Read, started, &read)?;
        if let Ok(task) = read {
            expected
                .matches(&task)
                .unwrap_or_else(|why| panic!("{why}"));
        }
        Ok(())
    }

    async fn list_tasks(&mut self) -> Result<(), WriteError> {
        let started = Instant::now();
        let read = self.client.list_tasks(ListTasksRequest::default()).await;
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

    /// Asserts that the account holds what is expected, and that a repeated write is
    /// done once. How many tasks and steps were compared.
    async fn verify(&mut self) -> usize {
        let state = self.read_settled_state().await;
        let compared = state.tasks.iter().map(|(_, steps)| 1 + steps.len());
        let compared = compared.sum();
        let resolved = verify([&mut self.writer], None, &state);
        let resolved = resolved.into_iter().flatten().collect();
        self.writer.repeat(&self.client, resolved).await;
        compared
    }

    /// Reads until two states are equal: a write that nobody waits for any more may
    /// still be under way.
    async fn read_settled_state(&self) -> ObservedState {
        let mut last = ObservedState::default();
        until("the state settles", async || {
            let state = retry_while_unavailable!(ObservedState::read(&self.client).await);
            let before = std::mem::replace(&mut last, state);
            (before == last).then_some(())
        })
        .await;
        last
    }
}

/// How all calls of a load went.
pub struct CallHistory {
    calls: Vec<Call>,
    /// How many tasks and steps were compared in the end.
    verified: usize,
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
        let verified = self.verified;
        println!("{name}: {answers:?}, {verified} tasks and steps are as expected");
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
