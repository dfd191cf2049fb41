//! Writes that need no comparison of accounts: each has a number, which what it writes has, too.

use std::collections::HashMap;

use expertise::proto::v1::{StepType, Task, TaskDocument};
use futures_util::future::join_all;
use tonic::Status;

use super::cancelling_client::CancellingClient;
use crate::{
    expected::{WriteError, write_error},
    kit::{
        client::{Client, unknown_guid},
        documents::documents_in,
        rng::Rng,
        sample::{
            answer_with, document, document_step, information_step, linked_question,
            observation_asking,
        },
    },
    service::Service,
};

/// Writes of each client between two comparisons.
const WRITES: usize = 60;
/// Steps of an imported guide.
const STEPS: usize = 5;
/// The answer whose task an imported guide manages, and the name of that task.
const MANAGED: &str = "managed";

/// A client that appends steps to a task that all such clients share, and imports guides into an
/// account of its own.
pub struct NumberedWrites {
    client: CancellingClient,
    shared_account: String,
    account: String,
    /// Titles of appended steps, and whether the call was acknowledged.
    steps: HashMap<String, bool>,
    /// Names of imported guides, and whether the call was acknowledged.
    guides: HashMap<String, bool>,
    canceled: u64,
}

/// What became of the writes.
#[derive(Debug, Default)]
pub struct Counts {
    pub canceled: u64,
    acknowledged: u64,
    /// Not acknowledged, and found done.
    pub done: u64,
    /// Not acknowledged, and found not done.
    pub not_done: u64,
}

impl NumberedWrites {
    pub fn new(rng: &mut Rng, service: &Service) -> Self {
        Self {
            client: CancellingClient::new(rng, service),
            shared_account: service.client_of_shared_account().account().to_owned(),
            account: unknown_guid(),
            steps: HashMap::new(),
            guides: HashMap::new(),
            canceled: 0,
        }
    }

    /// Writes, cancels most of the writes, and exports between them.
    pub async fn write_and_cancel(mut self, shared: Task) -> Self {
        self.account = unknown_guid();
        for _ in 0..WRITES {
            if self.client.rng.one_in(8) {
                let export = self
                    .client
                    .cancel_an_export(&self.shared_account, &shared.guid);
                export.await;
            }
            let name = unknown_guid();
            // Appends wait for each other.
            if self.client.rng.one_in(4) {
                let append = async |client: Client| append(&client, &shared, &name).await;
                let sent = self.client.call(&self.shared_account, append).await;
                note(&mut self.steps, name, sent, &mut self.canceled);
            } else {
                let import = async |client: Client| import(&client, &name).await;
                let sent = self.client.call(&self.account, import).await;
                note(&mut self.guides, name, sent, &mut self.canceled);
            }
        }
        self
    }

    /// Writes and waits for each answer.
    pub async fn write(mut self, shared: Task, direct: Client) -> Self {
        self.account = unknown_guid();
        for _ in 0..WRITES / 10 {
            let name = unknown_guid();
            append(&direct, &shared, &name).await.expect("a step");
            self.steps.insert(name, true);
            let name = unknown_guid();
            let client = direct.with_account(&self.account);
            import(&client, &name).await.expect("a guide");
            self.guides.insert(name, true);
        }
        self
    }

    /// Asserts that the guides of its account are whole, and those that it imported. Their names.
    async fn imported(&self, direct: &Client) -> Vec<String> {
        let client = direct.with_account(&self.account);
        let tasks = client.all_tasks().await;
        let (guides, managed): (Vec<Task>, Vec<Task>) =
            (tasks.into_iter()).partition(|task| task.name != MANAGED);
        assert_eq!(
            guides.len(),
            managed.len(),
            "each guide has one managed task"
        );
        for guide in &guides {
            let exported = client.exported(&guide.guid).await;
            assert_eq!(steps_named(&guide.name, &exported), [STEPS; 2]);
        }
        guides.into_iter().map(|guide| guide.name).collect()
    }
}

impl Counts {
    /// Asserts that every acknowledged write was done once, an unanswered one at most once, and
    /// nothing else; and counts.
    pub async fn verify(
        &mut self,
        service: &Service,
        shared: &Task,
        clients: &mut [NumberedWrites],
    ) {
        let direct = service.client_of_shared_account();
        let titles = direct.step_titles(&shared.guid).await;
        let steps = clients.iter_mut().flat_map(|client| client.steps.drain());
        self.verify_names(titles, steps.collect());
        let imported = clients.iter().map(|client| client.imported(&direct));
        let imported = join_all(imported).await;
        for (client, imported) in clients.iter_mut().zip(imported) {
            self.verify_names(imported, std::mem::take(&mut client.guides));
            self.canceled += std::mem::take(&mut client.canceled);
        }
    }

    fn verify_names(&mut self, found: Vec<String>, mut sent: HashMap<String, bool>) {
        for name in found {
            let acknowledged = sent.remove(&name);
            match acknowledged.expect("nothing else is there, and nothing twice") {
                true => self.acknowledged += 1,
                false => self.done += 1,
            }
        }
        let is_lost = |(name, acknowledged): (&String, &bool)| acknowledged.then(|| name.clone());
        let lost: Vec<String> = sent.iter().filter_map(is_lost).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        self.not_done += sent.len() as u64;
    }
}

async fn append(client: &Client, task: &Task, title: &str) -> Result<(), Status> {
    let step = information_step(task, title);
    client.create_step(step).await.map(drop)
}

async fn import(client: &Client, name: &str) -> Result<(), Status> {
    client.import(guide_named(name)).await.map(drop)
}

/// A guide of some steps. The first one manages a task that has as many.
fn guide_named(name: &str) -> TaskDocument {
    let steps = || (0..STEPS).map(|_| document_step(StepType::Information, name));
    let managed = document(MANAGED, steps().collect());
    let values = vec![answer_with("yes", MANAGED, managed)];
    let asking = observation_asking(linked_question(values));
    document(name, [asking].into_iter().chain(steps()).collect())
}

/// How many steps of the guide, and of its managed task, have the name.
fn steps_named(name: &str, guide: &TaskDocument) -> Vec<usize> {
    let count = |document: &TaskDocument| {
        let named = document.steps.iter().filter(|step| step.title == name);
        named.count()
    };
    documents_in(guide).into_iter().map(count).collect()
}

/// Keeps what was sent, unless it is known that it was not done.
fn note(
    names: &mut HashMap<String, bool>,
    name: String,
    sent: Option<Result<(), Status>>,
    canceled: &mut u64,
) {
    let acknowledged = match sent {
        Some(Ok(())) => true,
        None => false,
        Some(Err(status)) => match write_error(&status) {
            WriteError::Unknown => false,
            WriteError::NotDone => return,
            WriteError::Refused => panic!("nothing forbids it: {status:?}"),
        },
    };
    *canceled += u64::from(!acknowledged);
    names.insert(name, acknowledged);
}
