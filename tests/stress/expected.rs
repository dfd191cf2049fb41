//! What the service must hold after the writes of some writers, each of which was acknowledged,
//! refused or not answered.
//!
//! Each writer alone writes to an account. Afterwards, when nothing is wrong any more, it makes the
//! same writes in a second account, its twin: both must hold the same. An unanswered write is
//! whole in its account, or nothing of it is there.

mod errors;

use std::sync::atomic::{AtomicBool, Ordering};

use expertise::proto::v1::*;
use tonic::Status;

pub(crate) use self::errors::retry_while_unavailable;
pub use self::errors::{RetryLoop, WriteError, write_error};
use crate::kit::{
    client::{Client, unknown_guid},
    deadline::until,
    links::links_are_consistent,
    random_writes::{self, Call, Kind, Write},
    rng::Rng,
    sample::{With, information_step, list_steps_of},
    snapshot::{message, number_ids},
};

/// The account is left for an empty one when it has more tasks: all are read before each write.
const MAX_TASKS: usize = 8;
const PAGE_SIZE: i32 = 500;

/// It alone writes to its account.
pub struct Writer {
    pub rng: Rng,
    plans: Box<dyn FnMut() -> Write + Send>,
    account: String,
    twin: String,
    /// Answered writes that the twin lacks.
    missing: Vec<PlannedWrite>,
    /// A write that was sent and not answered.
    pub unanswered: Option<SentWrite>,
    /// An acknowledged call with a request id, and its answer.
    remembered: Option<(Call, String)>,
    /// How many writes were planned.
    planned: usize,
    shared: Option<SharedTask>,
    /// How many writes were acknowledged.
    pub acknowledged: u64,
    /// How many writes were repeated.
    pub repeated: u64,
}

/// A task that the steps of several writers are in.
struct SharedTask {
    account: String,
    task: Task,
    /// How many steps the writer has sent.
    sent: usize,
    /// The titles of the writer's steps.
    appended: Vec<String>,
    unanswered: Option<String>,
}

type PlannedWrite = (Write, usize);

/// A write with its call.
#[derive(Clone, Debug)]
pub struct SentWrite {
    planned: PlannedWrite,
    pub call: Call,
}

/// What became of a write that was not answered.
#[derive(Debug, PartialEq, Eq)]
pub enum UnansweredOutcome {
    /// All of it is there.
    Done,
    /// Nothing of it is there.
    NotDone,
}

impl Writer {
    pub fn new(rng: &mut Rng) -> Self {
        let mut rng = rng.fork();
        Self {
            plans: Box::new(random_writes::writes(&mut rng)),
            rng,
            account: unknown_guid(),
            twin: unknown_guid(),
            missing: Vec::new(),
            unanswered: None,
            remembered: None,
            planned: 0,
            shared: None,
            acknowledged: 0,
            repeated: 0,
        }
    }

    /// Some that also append steps to one task, so that they wait for each other.
    pub fn several_sharing(task: &Task, client: &Client, count: usize, rng: &mut Rng) -> Vec<Self> {
        let writer = |_| Self {
            shared: Some(SharedTask {
                account: client.account().to_owned(),
                task: task.clone(),
                sent: 0,
                appended: Vec::new(),
                unanswered: None,
            }),
            ..Self::new(rng)
        };
        (0..count).map(writer).collect()
    }

    /// The account that it writes to.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The client as the writer's account.
    pub fn client(&self, client: &Client) -> Client {
        client.with_account(&self.account)
    }

    /// Writes until told to stop, or until a call is not answered.
    pub async fn write_until(&mut self, client: &Client, stop: &AtomicBool) {
        let own = self.client(client);
        while !stop.load(Ordering::Relaxed) {
            if self.shared.is_some() && self.rng.one_in(4) {
                match self.append_to_shared_task(client).await {
                    Err(WriteError::Unknown) => return,
                    _ => continue,
                }
            }
            let written = match self.next_write(&own).await {
                Ok(None) => continue,
                Ok(Some(write)) => {
                    let sent = write.call.send(&own).await;
                    self.note(write, sent)
                }
                Err(status) => Err(write_error(&status)),
            };
            if written == Err(WriteError::Unknown) {
                return;
            }
        }
    }

    /// The next write, if what there is allows one.
    pub async fn next_write(&mut self, client: &Client) -> Result<Option<SentWrite>, Status> {
        let planned = ((self.plans)(), self.planned);
        // Texts grow with the number.
        self.planned = (self.planned + 1) % 100;
        let call = planned.0.call(client, planned.1).await?;
        Ok(call.map(|call| SentWrite { planned, call }))
    }

    /// A write that needs to know nothing of what there is.
    pub fn blind_write(&mut self) -> SentWrite {
        self.planned += 1;
        let write = (self.plans)().of_kind(Kind::CreateRole);
        SentWrite {
            planned: (write, self.planned),
            call: Write::blind_call(self.planned),
        }
    }

    /// Notes the result of a write that was sent.
    pub fn note(
        &mut self,
        write: SentWrite,
        sent: Result<String, Status>,
    ) -> Result<(), WriteError> {
        match sent.map_err(|status| write_error(&status)) {
            Ok(answer) => {
                self.acknowledged += 1;
                self.missing.push(write.planned);
                if write.call.has_request_id() {
                    self.remembered = Some((write.call, answer));
                }
                Ok(())
            }
            Err(WriteError::Refused) => {
                self.missing.push(write.planned);
                Ok(())
            }
            Err(WriteError::NotDone) => Err(WriteError::NotDone),
            Err(WriteError::Unknown) => {
                self.unanswered = Some(write);
                Err(WriteError::Unknown)
            }
        }
    }

    async fn append_to_shared_task(&mut self, client: &Client) -> Result<(), WriteError> {
        let Some(shared) = &mut self.shared else {
            return Ok(());
        };
        shared.sent += 1;
        let title = format!("{} {}", self.account, shared.sent);
        let step = information_step(&shared.task, &title);
        let client = client.with_account(&shared.account);
        match client.create_step(step).await {
            Ok(_) => {
                self.acknowledged += 1;
                shared.appended.push(title);
                Ok(())
            }
            Err(status) => {
                let error = write_error(&status);
                if error == WriteError::Unknown {
                    shared.unanswered = Some(title);
                }
                Err(error)
            }
        }
    }

    /// Asserts that the shared task, whose steps have these titles, has the writer's steps in
    /// their order. What became of the unanswered one.
    pub fn verify_shared_task(&mut self, titles: &[String]) -> Option<UnansweredOutcome> {
        let shared = self.shared.as_mut()?;
        let is_own = |title: &&String| {
            shared.appended.contains(title) || shared.unanswered.as_ref() == Some(title)
        };
        let found: Vec<String> = titles.iter().filter(is_own).cloned().collect();
        let unanswered = shared.unanswered.take();
        let outcome = unanswered.map(|title| match found.last() == Some(&title) {
            true => {
                shared.appended.push(title);
                UnansweredOutcome::Done
            }
            false => UnansweredOutcome::NotDone,
        });
        assert_eq!(found, shared.appended);
        outcome
    }

    /// How many steps of the shared task are the writer's.
    pub fn shared_steps(&self) -> usize {
        self.shared
            .as_ref()
            .map_or(0, |shared| shared.appended.len())
    }

    /// Asserts that everything acknowledged is in the account, an unanswered write whole or not at
    /// all, and nothing else. Repeats an unanswered call with a request id, and one that was
    /// acknowledged: neither is done twice. What became of the unanswered write.
    pub async fn verify(&mut self, client: &Client) -> Option<UnansweredOutcome> {
        let (own, twin) = (self.client(client), client.with_account(&self.twin));
        for planned in std::mem::take(&mut self.missing) {
            repeat(&twin, &planned).await;
        }
        let found = settled_state(&own).await;
        let mut expected = settled_state(&twin).await;
        let mut outcome = None;
        if let Some(SentWrite { planned, call }) = self.unanswered.take() {
            let done = found != expected;
            outcome = Some(match done {
                true => UnansweredOutcome::Done,
                false => UnansweredOutcome::NotDone,
            });
            if call.has_request_id() {
                let answer = retry_while_unavailable!(answer_or_refusal(&call, &own).await);
                self.remembered = answer.map(|answer| (call.clone(), answer));
                self.repeated += 1;
            }
            if done || call.has_request_id() {
                repeat(&twin, &planned).await;
                expected = settled_state(&twin).await;
            }
            if !call.has_request_id() {
                assert_eq!(found, expected, "with or without {call:?}");
            }
        } else {
            assert_eq!(found, expected);
        }
        if let Some((call, answer)) = &self.remembered {
            let again = retry_while_unavailable!(call.send(&own).await);
            assert_eq!(again, *answer, "{call:?}");
            self.repeated += 1;
        }
        let state = settled_state(&own).await;
        assert_eq!(state, expected, "after calls were repeated");
        if state.tasks > MAX_TASKS {
            (self.account, self.twin) = (unknown_guid(), unknown_guid());
            self.remembered = None;
        }
        outcome
    }
}

/// Makes the write in the twin.
async fn repeat(twin: &Client, (write, number): &PlannedWrite) {
    let call = retry_while_unavailable!(write.call(twin, *number).await);
    let call = call.expect("the twin has what the account had");
    retry_while_unavailable!(answer_or_refusal(&call, twin).await);
}

/// The answer; none when what is stored does not allow the call.
async fn answer_or_refusal(call: &Call, client: &Client) -> Result<Option<String>, Status> {
    match call.send(client).await {
        Ok(answer) => Ok(Some(answer)),
        Err(status) if write_error(&status) == WriteError::Refused => Ok(None),
        Err(status) => Err(status),
    }
}

/// Everything of an account, with numbers for ids and without times and etags.
#[derive(Debug, Default, PartialEq)]
struct State {
    tasks: usize,
    text: String,
}

/// Reads until two states are equal: a write that nobody waits for any more may still be under
/// way.
async fn settled_state(client: &Client) -> State {
    let mut last = State::default();
    until("the state settles", async || {
        let state = retry_while_unavailable!(read_state(client).await)?;
        let before = std::mem::replace(&mut last, state);
        (before == last).then_some(())
    })
    .await;
    last
}

/// Its tasks with their steps and the newest revision of each, deleted tasks with theirs, and
/// roles. None when something was deleted meanwhile.
async fn read_state(client: &Client) -> Result<Option<State>, Status> {
    let list = ListTasksRequest::default().with(|it| it.page_size = PAGE_SIZE);
    let mut tasks = Vec::new();
    let mut revisions = Vec::new();
    for task in client.call(list).await?.tasks {
        let list = list_steps_of(&task.guid)
            .with(|it| it.expand = vec!["body".to_owned()])
            .with(|it| it.page_size = PAGE_SIZE);
        let steps = match client.call(list).await {
            Ok(page) => page.steps,
            Err(status) if write_error(&status) == WriteError::Refused => return Ok(None),
            Err(status) => return Err(status),
        };
        let list = ListRevisionsRequest::default()
            .with(|it| it.task = task.guid.clone())
            .with(|it| it.page_size = PAGE_SIZE);
        let listed = client.call(list).await?;
        revisions.extend(listed.revisions.into_iter().next());
        tasks.push((task, steps));
    }
    links_are_consistent(&tasks);
    let list = ListDeletedTasksRequest::default().with(|it| it.page_size = PAGE_SIZE);
    let deleted = client.call(list).await?;
    revisions.extend(deleted.tasks.into_iter().filter_map(|task| task.latest));
    let mut text = Vec::new();
    for (task, steps) in &tasks {
        text.push(message("Task", task));
        text.extend(steps.iter().map(|step| message("Step", step)));
    }
    for revision in revisions {
        let kept = client.get_revision(&revision.task, revision.revision);
        let mut kept = kept.await?;
        if let Some(revision) = &mut kept.revision {
            // It is that of a compressed text with ids.
            revision.size_bytes = 0;
        }
        text.push(message("GetRevisionResponse", &kept));
    }
    let roles = client.list_roles(PAGE_SIZE, "").await?;
    text.push(message("ListRolesResponse", &roles));
    let text = format!("{text:#?}").replace(client.account(), "account");
    Ok(Some(State {
        tasks: tasks.len(),
        text: number_ids(&text),
    }))
}
