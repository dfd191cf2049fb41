//! Writes to an account whose outcomes are noted, and what the account must hold after them.

use expertise::proto::v1::*;
use tonic::Status;

use super::{WriteError, retry_while_unavailable, write_error};
use crate::kit::{
    client::{Client, unknown_guid},
    deadline::until,
    links::links_are_consistent,
    random_writes::{Call, Kind, Write},
    rng::Rng,
    sample::{With, list_steps_of},
    snapshot::{message, number_ids},
};

/// All of an account is read before each write, so it is left for an empty one after some writes.
const MAX_WRITES: usize = 40;
const PAGE_SIZE: i32 = 500;

/// It alone writes to its account, until a write is not answered.
///
/// Afterwards, when nothing is wrong any more, it makes the same writes in a second account, its
/// twin: both must hold the same. An unanswered write is whole in its account, or nothing of it is
/// there.
pub struct Writer {
    random: Rng,
    account: String,
    twin: String,
    /// Answered writes, which the twin lacks.
    answered: Vec<PlannedWrite>,
    /// A write that was sent and not answered.
    unanswered: Option<SentWrite>,
    /// An acknowledged call with a request id, and its answer.
    remembered: Option<(Call, String)>,
}

type PlannedWrite = (Write, usize);

/// A write with its call.
#[derive(Clone, Debug)]
pub struct SentWrite {
    planned: PlannedWrite,
    pub call: Call,
}

impl Writer {
    pub fn new(rng: &mut Rng) -> Self {
        Self {
            random: rng.fork(),
            account: unknown_guid(),
            twin: unknown_guid(),
            answered: Vec::new(),
            unanswered: None,
            remembered: None,
        }
    }

    /// The account that it writes to.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Whether it has written enough, or does not know what became of its last write.
    pub fn has_ended(&self) -> bool {
        self.unanswered.is_some() || self.answered.len() >= MAX_WRITES
    }

    /// The next write, if what there is allows one.
    pub async fn next_write(&mut self, client: &Client) -> Result<Option<SentWrite>, Status> {
        // Texts grow with the number.
        let planned = (Write::random(&mut self.random), self.answered.len());
        let call = planned.0.call(client, planned.1).await?;
        Ok(call.map(|call| SentWrite { planned, call }))
    }

    /// A write that needs to know nothing of what there is.
    pub fn blind_write(&mut self) -> SentWrite {
        let number = self.answered.len();
        SentWrite {
            planned: (
                Write::random(&mut self.random).of_kind(Kind::CreateRole),
                number,
            ),
            call: Call::blind(number),
        }
    }

    /// Notes the result of a write that was sent.
    pub fn note(&mut self, write: SentWrite, sent: Result<String, WriteError>) {
        match sent {
            Ok(answer) => {
                self.answered.push(write.planned);
                if write.call.has_request_id() {
                    self.remembered = Some((write.call, answer));
                }
            }
            Err(WriteError::Refused) => self.answered.push(write.planned),
            Err(WriteError::NotDone) => {}
            Err(WriteError::Unknown) => self.unanswered = Some(write),
        }
    }

    /// Asserts that everything acknowledged is in the account, an unanswered write whole or not at
    /// all, and nothing else. Repeats an unanswered call with a request id, and one that was
    /// acknowledged: neither is done twice. Whether the unanswered write was done.
    pub async fn verify(mut self, client: &Client) -> Option<bool> {
        let own = client.with_account(&self.account);
        let twin = client.with_account(&self.twin);
        for planned in &self.answered {
            repeat(&twin, planned).await;
        }
        let found = settled_state(&own).await;
        let mut expected = settled_state(&twin).await;
        let mut was_done = None;
        if let Some(SentWrite { planned, call }) = &self.unanswered {
            let done = found != expected;
            was_done = Some(done);
            if call.has_request_id() {
                let answer = retry_while_unavailable!(answer_or_refusal(call, &own).await);
                self.remembered = answer.map(|answer| (call.clone(), answer));
            }
            if done || call.has_request_id() {
                repeat(&twin, planned).await;
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
        }
        let state = settled_state(&own).await;
        assert_eq!(state, expected, "after calls were repeated");
        was_done
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

/// Reads until two states are equal: a write that nobody waits for any more may still be under
/// way.
async fn settled_state(client: &Client) -> String {
    let mut last = String::new();
    until("the state settles", async || {
        let state = retry_while_unavailable!(read_state(client).await)?;
        let before = std::mem::replace(&mut last, state);
        (before == last).then_some(())
    })
    .await;
    last
}

/// Everything of an account, with numbers for ids and without times and etags: its tasks with their
/// steps and the newest revision of each, deleted tasks with theirs, and roles. None when something
/// was deleted meanwhile.
async fn read_state(client: &Client) -> Result<Option<String>, Status> {
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
    Ok(Some(number_ids(&text)))
}
