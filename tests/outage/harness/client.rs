//! One caller, who keeps a record of what must be there.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use expertise::proto::v1::*;
use tonic::{Code, Status};

use super::{
    load::{Kind, Tally},
    sample,
    until::until,
    verdict::{self, Verdict},
    world::{World, unknown_guid},
};

/// How long it pauses after a refusal.
const PAUSE: Duration = Duration::from_millis(10);

/// The only caller of an account, so that it knows what must be there.
pub struct Client {
    world: World,
    tally: Arc<Tally>,
    made: u64,
    tasks: BTreeMap<String, Known>,
    /// Creates that may have been done.
    open: Vec<CreateTaskRequest>,
    pub calls: Vec<Call>,
}

/// What must be there of a task.
#[derive(Debug)]
struct Known {
    /// One of these is its name.
    names: Vec<String>,
    /// The titles of its steps in order; those that are not certain may be missing.
    steps: Vec<(String, bool)>,
}

/// How a call went.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub begun: Instant,
    pub ended: Instant,
    pub error: Option<Code>,
}

impl Client {
    pub fn new(world: World, tally: Arc<Tally>) -> Self {
        Self {
            world,
            tally,
            made: 0,
            tasks: BTreeMap::new(),
            open: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Reads and writes until the load is over.
    pub async fn run(mut self) -> Self {
        while !self.tally.is_over() {
            self.made += 1;
            let done = match self.made % 5 {
                1 => self.create_task().await,
                2 => self.rename_a_task().await,
                3 => self.create_step().await,
                4 => self.get_a_task().await,
                _ => self.list_tasks().await,
            };
            if done.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
        self
    }

    async fn create_task(&mut self) -> Result<(), Verdict> {
        let name = self.name();
        let request = CreateTaskRequest {
            task: Some(sample::task(&name)),
            request_id: unknown_guid(),
            ..CreateTaskRequest::default()
        };
        let begun = Instant::now();
        let sent = self.world.tasks().create_task(request.clone()).await;
        match self.note(Kind::Write, begun, sent) {
            Ok(response) => self.learn(response.into_inner()),
            Err(Verdict::Nothing) => return Err(Verdict::Nothing),
            Err(Verdict::Unknown) => self.open.push(request),
        }
        Ok(())
    }

    async fn rename_a_task(&mut self) -> Result<(), Verdict> {
        let Some(guid) = self.a_task() else {
            return Ok(());
        };
        let name = self.name();
        let task = Task {
            name: name.clone(),
            ..sample::task_of(&guid)
        };
        let begun = Instant::now();
        let sent = self.world.update_task(task, &["name"]).await;
        let noted = self.note(Kind::Write, begun, sent);
        let names = &mut self.known(&guid).names;
        match noted {
            Ok(_) => *names = vec![name],
            Err(Verdict::Unknown) => names.push(name),
            Err(Verdict::Nothing) => {}
        }
        noted.map(drop)
    }

    async fn create_step(&mut self) -> Result<(), Verdict> {
        let Some(guid) = self.a_task() else {
            return Ok(());
        };
        let title = self.name();
        let step = sample::note(&sample::task_of(&guid), &title);
        let begun = Instant::now();
        let sent = self.world.create_step(step).await;
        let noted = self.note(Kind::Write, begun, sent);
        let steps = &mut self.known(&guid).steps;
        match noted {
            Ok(_) => steps.push((title, true)),
            Err(Verdict::Unknown) => steps.push((title, false)),
            Err(Verdict::Nothing) => {}
        }
        noted.map(drop)
    }

    async fn get_a_task(&mut self) -> Result<(), Verdict> {
        let Some(guid) = self.a_task() else {
            return Ok(());
        };
        let begun = Instant::now();
        let sent = self.world.get_task(&guid).await;
        let task = self.note(Kind::Read, begun, sent)?;
        let names = &self.known(&guid).names;
        assert!(names.contains(&task.name), "{names:?}, but {task:?}");
        Ok(())
    }

    async fn list_tasks(&mut self) -> Result<(), Verdict> {
        let begun = Instant::now();
        let sent = self.world.list_tasks(ListTasksRequest::default()).await;
        self.note(Kind::Read, begun, sent).map(drop)
    }

    /// Asserts that all that was acknowledged is there and nothing that was
    /// refused, and that what may have been done is done once when it is repeated.
    pub async fn audit(&mut self) {
        for request in std::mem::take(&mut self.open) {
            // Somebody who is gone may hold it up for a while.
            let repeated = until("a repeated create is answered", async || {
                let repeated = self.world.tasks().create_task(request.clone()).await;
                repeated.map_err(|status| verdict::of(&status)).ok()
            });
            let repeated = repeated.await;
            self.learn(repeated.into_inner());
        }
        let found = self.world.everything().await;
        let ids: Vec<&String> = found.iter().map(|(task, _)| &task.guid).collect();
        // Ids are made in the order of time.
        assert!(ids.iter().all(|guid| self.tasks.contains_key(*guid)));
        assert_eq!(ids.len(), self.tasks.len());
        for (task, steps) in &found {
            let known = &self.tasks[&task.guid];
            assert!(known.names.contains(&task.name), "{known:?}, but {task:?}");
            let titles: Vec<&String> = steps.iter().map(|step| &step.title).collect();
            let expected = known.steps.iter();
            let expected = expected.filter(|(title, certain)| *certain || titles.contains(&title));
            let expected: Vec<&String> = expected.map(|(title, _)| title).collect();
            assert_eq!(titles, expected, "{task:?}");
        }
    }

    /// How many tasks there are, and how many steps are certain.
    pub fn holdings(&self) -> usize {
        let steps = self.tasks.values().map(|known| known.steps.len());
        self.tasks.len() + steps.sum::<usize>()
    }

    fn learn(&mut self, response: CreateTaskResponse) {
        let task = response.task.expect("the response holds the task");
        let known = Known {
            names: vec![task.name],
            steps: Vec::new(),
        };
        let twice = self.tasks.insert(task.guid, known);
        assert!(twice.is_none(), "made twice: {twice:?}");
    }

    fn note<T>(
        &mut self,
        kind: Kind,
        begun: Instant,
        sent: Result<T, Status>,
    ) -> Result<T, Verdict> {
        self.calls.push(Call {
            begun,
            ended: Instant::now(),
            error: sent.as_ref().err().map(Status::code),
        });
        self.tally.count(kind, sent.is_ok());
        sent.map_err(|status| verdict::of(&status))
    }

    fn name(&self) -> String {
        format!("{}", self.made)
    }

    /// One of its tasks, another each time.
    fn a_task(&self) -> Option<String> {
        let index = self.made.checked_rem(self.tasks.len() as u64)?;
        self.tasks.keys().nth(index as usize).cloned()
    }

    fn known(&mut self, guid: &str) -> &mut Known {
        self.tasks.get_mut(guid).expect("a task of its own")
    }
}
