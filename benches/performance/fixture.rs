//! The data of a database before the measurement: the same in the service and in the
//! floor, written by calls.

use expertise::proto::v1::{
    ImportTaskRequest, ListTranslationWorkRequest, Step, StepType, Task, TaskDocument,
};
use futures_util::future::join_all;

use super::{
    kit::sample,
    testbed::{Program, Server, Testbed},
};

/// The number of tasks of 50 steps.
pub const FULL_TASKS: usize = 20;
pub const STEPS_OF_FULL: usize = 50;
/// Tasks with more steps than a page; one per connection, as WriteTranslations locks the task.
pub const LONG_TASKS: usize = 16;
pub const STEPS_OF_LONG: usize = 150;
/// The number of tasks to import again, one for each connection.
const LARGE_TASKS: usize = 16;
const STEPS_OF_LARGE: usize = 1_000;
/// The number of translations of one call.
const TRANSLATIONS: usize = 100;
/// The number of tasks without steps.
pub const EMPTY_TASKS: usize = 1_000;
/// Bytes of a body.
pub const BODY_BYTES: usize = 1_024;
/// The product of all tasks and steps.
pub const PRODUCT: i64 = 1_204;
/// The number of variables that conditions of the measured requests name.
const VARIABLES: usize = 20;
const CONCURRENT_IMPORTS: usize = 8;

/// The ids of the data.
#[derive(Clone, Debug, Default)]
pub struct Fixture {
    /// Tasks of 50 steps.
    pub full: Vec<String>,
    /// Their steps.
    pub steps: Vec<String>,
    /// Tasks of more steps than a page.
    pub long: Vec<String>,
    /// Tasks without steps.
    pub empty: Vec<String>,
    /// Tasks to import again.
    pub large: Vec<LargeTask>,
    /// Steps to translate, of each of the long tasks.
    pub work: Vec<Vec<Work>>,
}

/// A task whose steps are [`step`]s of consecutive numbers.
#[derive(Clone, Debug)]
pub struct LargeTask {
    pub task: Task,
    pub first_step: usize,
}

/// A step to translate.
#[derive(Clone, Debug)]
pub struct Work {
    pub guid: String,
    pub source_digest: String,
}

/// A step of 1 KB.
pub fn step(number: usize) -> Step {
    Step {
        product_id: Some(PRODUCT),
        r#type: StepType::Solution.into(),
        title: format!("Replace the fuse behind panel {number:08}"),
        body: Some(body(BODY_BYTES)),
        cost: Some(2),
        ..Step::default()
    }
}

/// A step of 1 KB with two conditions, whose variables depend on a number.
pub fn step_with_conditions(number: usize) -> Step {
    let answers = [(number, "on"), (number + 1, "off")];
    let condition = |(variable, key): (usize, &str)| {
        sample::when(&account_wide_name(variable % VARIABLES), "=", key)
    };
    Step {
        dependencies: Some(sample::all_of(answers.map(condition).to_vec())),
        ..step(number)
    }
}

/// A variable's own name.
pub fn variable(number: usize) -> String {
    format!("state_{number}")
}

/// A variable's name in the whole account.
pub fn account_wide_name(number: usize) -> String {
    format!("components.{PRODUCT}.{}", variable(number))
}

/// A text of `bytes` bytes.
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

impl Fixture {
    /// Starts a program on a new database of this name and writes the data.
    pub async fn create(testbed: &Testbed, program: Program, name: &str) -> (Server, Self) {
        let database = testbed.make_database(name);
        Self::create_in(testbed, program, name, &database).await
    }

    /// Starts a program on this database and writes the data.
    pub async fn create_in(
        testbed: &Testbed,
        program: Program,
        name: &str,
        database: &str,
    ) -> (Server, Self) {
        let server = testbed.serve(program, name, database);
        let fixture = Self::write(&server, program).await;
        testbed.run_maintenance(database).await;
        (server, fixture)
    }

    /// The ids of the tasks to import again.
    pub fn large_guids(&self) -> Vec<String> {
        let large = self.large.iter();
        large.map(|large| large.task.guid.clone()).collect()
    }

    async fn write(server: &Server, program: Program) -> Self {
        let mut importer = Importer::of(server);
        let full = importer.tasks(FULL_TASKS, STEPS_OF_FULL).await;
        let long = importer.tasks(LONG_TASKS, STEPS_OF_LONG).await;
        let empty = importer.tasks(EMPTY_TASKS, 0).await;
        let first_step = importer.last_step + 1;
        let large = importer.tasks(LARGE_TASKS, STEPS_OF_LARGE).await;
        let large = large
            .into_iter()
            .enumerate()
            .map(|(index, task)| LargeTask {
                task,
                first_step: first_step + index * STEPS_OF_LARGE,
            });
        let mut work = Vec::new();
        for task in &long {
            work.push(match program {
                Program::Floor => work_of_floor(task),
                Program::Service | Program::OtherBuild => work_of(server, task).await,
            });
        }
        let guids = |made: Vec<Task>| made.into_iter().map(|task| task.guid).collect();
        Self {
            steps: full.iter().flat_map(|task| task.steps.clone()).collect(),
            full: guids(full),
            long: guids(long),
            empty: guids(empty),
            large: large.collect(),
            work,
        }
    }
}

/// Steps of a task to translate in the floor, which has no digests.
fn work_of_floor(task: &Task) -> Vec<Work> {
    let steps = task.steps.iter().take(TRANSLATIONS);
    let work = steps.map(|guid| Work {
        guid: guid.clone(),
        source_digest: "0".repeat(32),
    });
    work.collect()
}

/// Steps of a task to translate.
async fn work_of(server: &Server, task: &Task) -> Vec<Work> {
    let request = ListTranslationWorkRequest {
        languages: vec!["de".to_owned()],
        task: Some(task.guid.clone()),
        // One more, as the task itself may be among the items.
        page_size: i32::try_from(TRANSLATIONS).expect("a page") + 1,
        ..ListTranslationWorkRequest::default()
    };
    let answer = server.translations().list_translation_work(request).await;
    let work = answer.expect("it is listed").into_inner().work;
    let steps = work.into_iter().filter(|work| work.guid != task.guid);
    let steps = steps.map(|work| Work {
        guid: work.guid,
        source_digest: work.source_digest,
    });
    steps.take(TRANSLATIONS).collect()
}

/// Creates `count` tasks of `steps` steps.
pub async fn tasks(server: &Server, count: usize, steps: usize) -> Vec<Task> {
    Importer::of(server).tasks(count, steps).await
}

struct Importer<'a> {
    server: &'a Server,
    /// The number of the last task.
    last_task: usize,
    /// The number of the last step.
    last_step: usize,
}

impl<'a> Importer<'a> {
    fn of(server: &'a Server) -> Self {
        Self {
            server,
            last_task: 0,
            last_step: 0,
        }
    }

    async fn tasks(&mut self, count: usize, steps: usize) -> Vec<Task> {
        let documents: Vec<_> = (0..count).map(|_| self.document(steps)).collect();
        let client = self.server.tasks();
        let mut made = Vec::new();
        for documents in documents.chunks(CONCURRENT_IMPORTS) {
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
        self.last_task += 1;
        let first = self.last_step + 1;
        self.last_step += steps;
        let name = format!("Guide {:06}", self.last_task);
        document(&name, (first..=self.last_step).map(step).collect())
    }
}
