//! How many statements calls take: a bounded number, however large a guide is. The bounds are
//! generous. They find calls that send a statement for each step.

use crate::{
    fixture::Fixture,
    kit::{
        catalogue::catalogue,
        server::{TestServer, with_metrics},
    },
    prelude::*,
};

/// No call on a small guide takes more statements than this.
const MAX_STATEMENTS: f64 = 60.0;
/// No call takes so many more for a guide of 1,000 steps than for one of 10.
const MAX_ADDITIONAL_STATEMENTS: f64 = 60.0;

/// Counts the statements of calls, of which there is one at a time.
struct Counter {
    server: TestServer,
    client: Client,
}

impl Counter {
    async fn start(url: &str) -> Self {
        let server = TestServer::start(with_metrics(url)).await;
        let client = server.client();
        Self { server, client }
    }

    async fn statements(&self) -> f64 {
        let metrics = self.server.metrics().await;
        metrics.sum("expertise_database_statement_seconds_count", &[])
    }

    /// The result of a call, and how many statements it took.
    async fn count<T>(&self, call: impl Future<Output = T>) -> (T, f64) {
        let before = self.statements().await;
        let result = call.await;
        (result, self.statements().await - before)
    }
}

#[apply(on_both_databases)]
async fn no_call_takes_many_statements(url: String) {
    let counter = Counter::start(&url).await;
    for (call, entry) in &catalogue().calls {
        for name in entry.requests.keys() {
            let (fixture, request) = Fixture::with_request(&counter.client, call, name).await;
            let (answer, took) = counter.count(fixture.send(call, &request)).await;
            answer.unwrap_or_else(|status| panic!("{call} {name}: {status:?}"));
            assert!(took <= MAX_STATEMENTS, "{call} {name}: {took} statements");
        }
    }
}

#[apply(on_both_databases)]
async fn few_statements_however_many_steps(url: String) {
    let counter = Counter::start(&url).await;
    let few = counts(&counter, 10).await;
    let many = counts(&counter, 1_000).await;
    for ((call, few), (_, many)) in few.into_iter().zip(many) {
        let more = many - few;
        assert!(few > 0.0, "{call}: nothing is counted");
        assert!(
            more <= MAX_ADDITIONAL_STATEMENTS,
            "{call}: {few} statements, then {many}"
        );
    }
}

/// How many statements each call takes on a guide with so many steps.
async fn counts(counter: &Counter, steps: usize) -> Vec<(&'static str, f64)> {
    let client = &counter.client;
    let mut counts = Vec::new();
    let import = async |document| {
        let imported = client.import_with(AbsentSteps::Delete, document).await;
        imported.accepted().task.expect("the task")
    };
    let (task, took) = counter.count(import(guide(steps))).await;
    counts.push(("an import that creates everything", took));
    let guid = task.guid.as_str();
    let (exported, took) = counter.count(client.exported(guid)).await;
    counts.push(("an export", took));
    let (_, took) = counter.count(client.validated(validation_of(guid))).await;
    counts.push(("a validation", took));
    let preview = preview_of(guid).with(|it| it.expand = vec!["body".to_owned()]);
    let (_, took) = counter.count(client.previewed(preview)).await;
    counts.push(("a preview", took));
    let (_, took) = counter.count(import(exported.clone())).await;
    counts.push(("an import that changes nothing", took));
    let mut changed = exported;
    changed.steps.reverse();
    for step in &mut changed.steps {
        step.body = Some("changed".to_owned());
        step.translations
            .insert("fr".to_owned(), step_translation("changé"));
        for config in &mut step.feedback_config {
            for value in &mut config.values {
                value.value = "changed".to_owned();
            }
        }
    }
    let (_, took) = counter.count(import(changed.clone())).await;
    counts.push(("an import that changes everything", took));
    let rename = client.updated_task(task_of(guid).named("Renamed"), &["name"]);
    let (_, took) = counter.count(rename).await;
    counts.push(("a rename", took));
    changed.steps.clear();
    let (_, took) = counter.count(import(changed)).await;
    counts.push(("an import that deletes and unlinks everything", took));
    let (_, took) = counter.count(client.force_delete_task(guid)).await;
    counts.push(("a deletion", took));
    counts
}

/// A guide of an observation and `steps` other steps. A tenth of these are the wiring steps of
/// its linked values, each of which manages a task with a step.
fn guide(steps: usize) -> TaskDocument {
    let linked = steps / 10;
    let values = (0..linked).map(|n| {
        let document = TaskDocument {
            task: None,
            steps: vec![translated_step(StepType::Information)],
        };
        answer_with(&n.to_string(), &n.to_string(), document)
    });
    let observation =
        translated_step(StepType::Observation).with_question(linked_question(values.collect()));
    let others = vec![translated_step(StepType::Information); steps - linked];
    document("Guide", [vec![observation], others].concat())
}

fn translated_step(kind: StepType) -> Step {
    let row = step_translation("Schritt").with_body("Text");
    document_step(kind, "Step")
        .with_body("text")
        .with_translations([("de".to_owned(), row)].into())
}
