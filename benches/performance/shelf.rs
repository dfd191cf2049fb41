//! What is there before anything is measured: the same in the service and in the
//! floor, made through the wire.

use expertise::proto::v1::{ImportTaskRequest, Step, StepType, Task, TaskDocument};
use futures_util::future::join_all;

use super::ground::{Ground, Program, Server};

/// Tasks of 50 steps.
pub const FULL: usize = 20;
pub const STEPS_OF_FULL: usize = 50;
/// Tasks of more steps than a page.
pub const LONG: usize = 10;
pub const STEPS_OF_LONG: usize = 150;
/// Tasks without steps.
pub const EMPTY: usize = 1_000;
/// Bytes of a body.
pub const BODY: usize = 1_024;
/// The product of everything.
pub const PRODUCT: i64 = 1_204;
/// Imports at once.
const AT_ONCE: usize = 8;

/// Ids of what is there.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    /// Tasks of 50 steps.
    pub full: Vec<String>,
    /// Their steps.
    pub steps: Vec<String>,
    /// Tasks of more steps than a page.
    pub long: Vec<String>,
    /// Tasks without steps.
    pub empty: Vec<String>,
}

/// Whether ids are sent along: the floor takes them, for pgbench to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// The server's own.
    Made,
    /// Numbers from 1, see [`id`].
    Numbered,
}

/// The id of a number.
pub fn id(number: usize) -> String {
    format!("00000000-0000-0000-0000-{number:012}")
}

/// A step of 1 KB.
pub fn step(number: usize) -> Step {
    Step {
        product_id: Some(PRODUCT),
        r#type: StepType::Solution.into(),
        title: format!("Replace the fuse behind panel {number:08}"),
        body: Some(body(BODY)),
        cost: Some(2),
        ..Step::default()
    }
}

/// A text of this many bytes.
pub fn body(bytes: usize) -> String {
    const SENTENCE: &str = "<p>Switch the mains off, open the panel and look at the fuse.</p>\n";
    SENTENCE.chars().cycle().take(bytes).collect()
}

/// A task with steps.
pub fn document(name: &str, steps: Vec<Step>) -> TaskDocument {
    TaskDocument {
        task: Some(Task {
            name: name.to_owned(),
            product_id: Some(PRODUCT),
            ..Task::default()
        }),
        steps,
    }
}

impl Shelf {
    /// Starts a program on a new database of this name and fills it.
    pub async fn fill(ground: &Ground, program: Program, name: &str, ids: Ids) -> (Server, Self) {
        let database = ground.database(name);
        let server = ground.serve(program, name, &database);
        let shelf = Self::of(&server, ids).await;
        ground.settle(&database).await;
        (server, shelf)
    }

    async fn of(server: &Server, ids: Ids) -> Self {
        let mut filler = Filler {
            server,
            ids,
            tasks: 0,
            steps: 0,
        };
        let full = filler.tasks(FULL, STEPS_OF_FULL).await;
        let long = filler.tasks(LONG, STEPS_OF_LONG).await;
        let empty = filler.tasks(EMPTY, 0).await;
        let task = |made: Vec<Task>| made.into_iter().map(|task| task.guid).collect();
        Self {
            steps: full.iter().flat_map(|task| task.steps.clone()).collect(),
            full: task(full),
            long: task(long),
            empty: task(empty),
        }
    }
}

/// Makes this many tasks of as many steps.
pub async fn tasks(server: &Server, count: usize, steps: usize) -> Vec<Task> {
    let mut filler = Filler {
        server,
        ids: Ids::Made,
        tasks: 0,
        steps: 0,
    };
    filler.tasks(count, steps).await
}

struct Filler<'a> {
    server: &'a Server,
    ids: Ids,
    tasks: usize,
    steps: usize,
}

impl Filler<'_> {
    async fn tasks(&mut self, count: usize, steps: usize) -> Vec<Task> {
        let documents: Vec<_> = (0..count).map(|_| self.document(steps)).collect();
        let client = self.server.tasks();
        let mut made = Vec::new();
        for documents in documents.chunks(AT_ONCE) {
            let sent = documents.iter().map(|document| {
                let mut client = client.clone();
                let request = ImportTaskRequest {
                    document: Some(document.clone()),
                    ..ImportTaskRequest::default()
                };
                async move { client.import_task(request).await }
            });
            for answer in join_all(sent).await {
                let answer = answer.expect("it is imported").into_inner();
                made.push(answer.task.expect("a task"));
            }
        }
        made
    }

    fn document(&mut self, steps: usize) -> TaskDocument {
        self.tasks += 1;
        let mut document = document(&format!("Guide {:06}", self.tasks), Vec::new());
        for _ in 0..steps {
            self.steps += 1;
            let mut step = step(self.steps);
            if self.ids == Ids::Numbered {
                step.guid = id(self.steps);
            }
            document.steps.push(step);
        }
        if let (Some(task), Ids::Numbered) = (&mut document.task, self.ids) {
            task.guid = id(self.tasks);
        }
        document
    }
}
