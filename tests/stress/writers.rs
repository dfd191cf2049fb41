//! Clients that read and write while a test stops, crashes or takes away the server or its
//! database. What the service holds afterwards is compared with what they expect.
//!
//! `EXPERTISE_TEST_FAULTS_SEED` repeats the choices of a failed run, though not their timing.

mod cancelling_client;
mod errors;
mod history;
mod writer;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use expertise::proto::v1::{ListTasksRequest, Task};
use futures_util::future::join_all;
use tokio::{task::JoinSet, time::sleep};
use tonic::Status;
use tonic_types::StatusExt;

pub(crate) use self::errors::retry_while_unavailable;
use self::{cancelling_client::CancellingClient, history::Call, writer::Writer};
pub use self::{
    errors::{RetryLoop, WriteError, write_error},
    history::CallHistory,
};
use crate::{
    kit::{
        client::Client,
        deadline::{WAIT_TIMEOUT, until},
        rng::Rng,
        sample::{information_step, task},
    },
    variables::rng_from_env,
};

/// Calls of a kind among which every fault would show: more than the server has
/// connections to its database.
const ENOUGH_CALLS: usize = 20;
/// The pause of a client after an error.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
}

/// How many calls were answered, by [`Kind`], and what the clients do.
#[derive(Debug, Default)]
struct Counts {
    stop: AtomicBool,
    /// Most calls are cancelled.
    cancel: AtomicBool,
    accepted: [AtomicUsize; 2],
    refused: [AtomicUsize; 2],
    cancelled: AtomicUsize,
}

/// The clients, until [`Writers::end`].
pub struct Writers {
    server: SocketAddr,
    counts: Arc<Counts>,
    clients: JoinSet<WritingClient>,
    pub rng: Rng,
}

impl Writers {
    /// Starts so many clients.
    pub async fn start(test: &str, server: SocketAddr, clients: usize) -> Self {
        Self::start_counting(test, server, clients, Arc::default()).await
    }

    /// Starts so many clients that cancel most of their calls.
    pub async fn start_cancelling(test: &str, server: SocketAddr, clients: usize) -> Self {
        let counts = Arc::new(Counts::default());
        counts.cancel.store(true, Ordering::Relaxed);
        Self::start_counting(test, server, clients, counts).await
    }

    async fn start_counting(
        test: &str,
        server: SocketAddr,
        clients: usize,
        counts: Arc<Counts>,
    ) -> Self {
        let mut rng = rng_from_env(test, "EXPERTISE_TEST_FAULTS_SEED");
        let shared = Client::at(server);
        let shared_task = shared.given_task(task("shared")).await;
        let clients = (0..clients).map(|number| WritingClient {
            number,
            client: Client::at(server),
            cancelling: CancellingClient::new(&mut rng, server),
            writers: vec![Writer::new(&mut rng)],
            shared_account: shared.account().to_owned(),
            shared_task: shared_task.clone(),
            appended: Vec::new(),
            perhaps_appended: Vec::new(),
            rng: rng.fork(),
            counts: Arc::clone(&counts),
            calls: Vec::new(),
        });
        let clients = clients.map(WritingClient::run).collect();
        Self {
            server,
            counts,
            clients,
            rng,
        }
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
        let reads = |counts: &Counts| counts.accepted[Kind::Read as usize].load(Ordering::Relaxed);
        self.wait_for("reads are served", more, reads).await;
    }

    pub async fn wait_until_reads_are_refused(&mut self, more: usize) {
        let reads = |counts: &Counts| counts.refused[Kind::Read as usize].load(Ordering::Relaxed);
        self.wait_for("reads are refused", more, reads).await;
    }

    pub async fn wait_until_writes_are_refused(&mut self, more: usize) {
        let writes = |counts: &Counts| counts.refused[Kind::Write as usize].load(Ordering::Relaxed);
        self.wait_for("writes are refused", more, writes).await;
    }

    /// Waits until so many more writes were cancelled. Then no more are.
    pub async fn wait_until_cancelled(&mut self, more: usize) {
        let cancelled = |counts: &Counts| counts.cancelled.load(Ordering::Relaxed);
        self.wait_for("writes are cancelled", more, cancelled).await;
        self.counts.cancel.store(false, Ordering::Relaxed);
    }

    async fn wait_for(&mut self, what: &str, more: usize, count: fn(&Counts) -> usize) {
        let mut found = count(&self.counts);
        let goal = found + more;
        // Each wait is for the next call: many calls may take longer than one wait.
        while found < goal {
            self.wait_until(what, |counts| count(counts) > found).await;
            found = count(&self.counts);
        }
    }

    async fn wait_until(&mut self, what: &str, condition: impl Fn(&Counts) -> bool) {
        until(what, async || {
            if let Some(Err(panicked)) = self.clients.try_join_next() {
                std::panic::resume_unwind(panicked.into_panic());
            }
            condition(&self.counts).then_some(())
        })
        .await;
    }

    /// Stops the clients, and asserts that the service holds what they expect.
    pub async fn end(self) -> CallHistory {
        self.end_after(async || {}).await
    }

    /// Like [`Writers::end`], with something to do when the clients have stopped.
    pub async fn end_after(self, then: impl AsyncFnOnce()) -> CallHistory {
        self.counts.stop.store(true, Ordering::Relaxed);
        let clients = self.clients.join_all().await;
        then().await;
        let shared = Client::at(self.server).with_account(&clients[0].shared_account);
        let task = &clients[0].shared_task.guid;
        retry_while_unavailable!(shared.get_task(task).await);
        let titles = shared.step_titles(task).await;
        let verified = clients.into_iter().map(|client| client.verify(&titles));
        let histories = join_all(verified).await;
        histories
            .into_iter()
            .fold(CallHistory::default(), CallHistory::and)
    }
}

/// One client, with a connection of its own. It also appends steps to a task that all share, so
/// that they wait for each other.
struct WritingClient {
    number: usize,
    client: Client,
    cancelling: CancellingClient,
    /// Only the last one still writes.
    writers: Vec<Writer>,
    shared_account: String,
    shared_task: Task,
    /// The titles of its steps in the shared task.
    appended: Vec<String>,
    /// Those whose writes were not answered.
    perhaps_appended: Vec<String>,
    rng: Rng,
    counts: Arc<Counts>,
    calls: Vec<Call>,
}

impl WritingClient {
    async fn run(mut self) -> Self {
        while !self.counts.stop.load(Ordering::Relaxed) {
            let done = match self.rng.below(6) {
                0 => self.read().await,
                1 => self.append_to_shared_task().await,
                _ => self.write().await,
            };
            if done.is_err() {
                sleep(ERROR_PAUSE).await;
            }
        }
        self
    }

    async fn write(&mut self) -> Result<(), WriteError> {
        if self.writers.last().is_none_or(Writer::has_ended) {
            self.writers.push(Writer::new(&mut self.rng));
        }
        let writer = self.writers.last_mut().expect("a writer");
        let account = writer.account().to_owned();
        let started = Instant::now();
        let write = match writer.next_write(&self.client.with_account(&account)).await {
            Ok(None) => return Ok(()),
            Ok(Some(write)) => write,
            Err(status) => {
                let is_answered = status.get_details_error_info().is_some();
                let blind = writer.blind_write();
                self.note(Kind::Read, started, Err::<(), _>(status))
                    .or_else(|error| {
                        // Without a server, nothing is sent.
                        is_answered.then_some(()).ok_or(error)
                    })?;
                blind
            }
        };
        let call = async |client: Client| write.call.send(&client).await;
        let sent = self.send(&account, call).await;
        let result = sent.as_ref().map(drop).map_err(|error| *error);
        let writer = self.writers.last_mut().expect("a writer");
        writer.note(write, sent);
        result
    }

    async fn append_to_shared_task(&mut self) -> Result<(), WriteError> {
        let count = self.appended.len() + self.perhaps_appended.len();
        let title = format!("{} {count}", self.number);
        let step = information_step(&self.shared_task, &title);
        let account = self.shared_account.clone();
        let sent = self.send(&account, async |client| client.create_step(step).await);
        match sent.await {
            Ok(_) => self.appended.push(title),
            Err(WriteError::Unknown) => {
                self.perhaps_appended.push(title);
                return Err(WriteError::Unknown);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a write, and cancels it if the clients cancel.
    async fn send<T>(
        &mut self,
        account: &str,
        call: impl AsyncFnOnce(Client) -> Result<T, Status>,
    ) -> Result<T, WriteError> {
        let started = Instant::now();
        let sent = match self.counts.cancel.load(Ordering::Relaxed) {
            true => self.cancelling.call(account, call).await,
            false => Some(call(self.client.with_account(account)).await),
        };
        match sent {
            Some(sent) => self.note(Kind::Write, started, sent),
            None => {
                self.counts.cancelled.fetch_add(1, Ordering::Relaxed);
                Err(WriteError::Unknown)
            }
        }
    }

    async fn read(&mut self) -> Result<(), WriteError> {
        if self.counts.cancel.load(Ordering::Relaxed) {
            // An export reads in a transaction.
            let task = self.shared_task.guid.clone();
            let export = async |client: Client| client.export(&task).await.map(drop);
            let account = self.shared_account.clone();
            drop(self.cancelling.cancel(&account, export).await);
            return Ok(());
        }
        let started = Instant::now();
        let read = self.client.call(ListTasksRequest::default()).await;
        self.note(Kind::Read, started, read).map(drop)
    }

    fn note<T>(
        &mut self,
        kind: Kind,
        started: Instant,
        result: Result<T, Status>,
    ) -> Result<T, WriteError> {
        let status = result.as_ref().err();
        // The answer of a rule is an answer, such as one that forbids to delete a task that others
        // refer to.
        let failed = status.filter(|it| write_error(it) != WriteError::Refused);
        let counts = match failed {
            None => &self.counts.accepted,
            Some(_) => &self.counts.refused,
        };
        counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.calls.push(Call::new(started, failed));
        result.map_err(|status| write_error(&status))
    }

    /// Asserts that the shared task, whose steps have these titles, has the acknowledged steps in
    /// their order, and no step twice. How many unanswered steps are there.
    fn verify_shared_task(&self, titles: &[String]) -> usize {
        let own = format!("{} ", self.number);
        let own = titles.iter().filter(|title| title.starts_with(&own));
        let (perhaps, sure): (Vec<&String>, Vec<&String>) =
            own.partition(|title| self.perhaps_appended.contains(title));
        assert_eq!(sure, self.appended.iter().collect::<Vec<_>>());
        let different: BTreeSet<&String> = perhaps.iter().copied().collect();
        assert_eq!(different.len(), perhaps.len(), "{perhaps:?}");
        perhaps.len()
    }

    async fn verify(self, shared_titles: &[String]) -> CallHistory {
        let done = self.verify_shared_task(shared_titles);
        let mut history = CallHistory {
            done,
            not_done: self.perhaps_appended.len() - done,
            calls: self.calls,
        };
        for writer in self.writers {
            match writer.verify(&self.client).await {
                Some(true) => history.done += 1,
                Some(false) => history.not_done += 1,
                None => {}
            }
        }
        history
    }
}
