//! The number of statements of imports and exports does not grow with the steps, but
//! for batches of 1,000 rows. Every key of the schema begins with the account.

use expertise::{
    config::DatabaseUrl,
    store::{Store, migrate},
};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};

use crate::{
    kit::{
        databases::{empty_postgres, is_distributed},
        prelude::*,
        store_server,
    },
    validate_task::clean,
};

/// No call takes more than this.
const STATEMENTS: u64 = 21;

/// No write takes more than so many more on Citus: one keeps its account on its node, one reads
/// numbers for the entries of the feed, and those are not attached to other statements.
const MORE_ON_CITUS: u64 = 3;

/// The same for a validation.
const STATEMENTS_OF_A_VALIDATION: u64 = 6;

/// The levels of the guide of [`previews_take_few_statements`].
const LEVELS: u64 = 9;
/// Two for each level, its tasks and their steps; one for what sets variables elsewhere, and
/// one for the bodies of the page.
const STATEMENTS_OF_A_PREVIEW: u64 = 2 * LEVELS + 2;

on_own_databases![
    few_statements_however_many_steps,
    references_take_four_statements_at_most,
    validations_take_six_statements_at_most,
    previews_take_few_statements,
];

/// For every index, and for both ends of every foreign key: its first column. For every table:
/// `account_id`, or which of the two it lacks, a primary key or that column.
const KEYS: &str = "
    SELECT format('index %s of %s', i.relname, t.relname), a.attname::text
    FROM pg_index x
    JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_class t ON t.oid = x.indrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
    WHERE t.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('foreign key %s of %s', c.conname, e.side::regclass), a.attname::text
    FROM pg_constraint c
    CROSS JOIN LATERAL (VALUES (c.conrelid, c.conkey[1]), (c.confrelid, c.confkey[1]))
        AS e (side, first)
    JOIN pg_attribute a ON a.attrelid = e.side AND a.attnum = e.first
    WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('table %s', t.relname),
           CASE WHEN NOT EXISTS (SELECT FROM pg_index WHERE indrelid = t.oid AND indisprimary)
                THEN 'no primary key' ELSE COALESCE(a.attname::text, 'no account') END
    FROM pg_class t
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'account_id'
    WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r'";

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn every_key_of_the_schema_begins_with_the_account() {
    let url = empty_postgres("schema");
    let database = DatabaseUrl::parse(&url).expect("the URL of a database");
    migrate(&database).await.expect("the schema");
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let keys = sqlx::query_as::<_, (String, String)>(KEYS);
    let keys = keys.fetch_all(&mut connection).await.expect("the keys");
    let of = |kind| keys.iter().filter(move |(what, _)| what.starts_with(kind));
    assert!(of("table").count() >= 9 && of("index").count() >= 15 && of("foreign").count() >= 10);
    // These do not belong to an account.
    let shared = [
        "table server_keys",
        "index server_keys_pkey of server_keys",
        "table seaql_migrations",
        "index seaql_migrations_pkey of seaql_migrations",
    ];
    let straying = keys
        .iter()
        .filter(|(what, first)| first != "account_id" && !shared.contains(&what.as_str()));
    assert_eq!(
        straying.collect::<Vec<_>>(),
        Vec::<&(String, String)>::new()
    );
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn postgres_finds_rows_by_their_ids_before_it_has_statistics() {
    let url = empty_postgres("plans");
    migrate(&DatabaseUrl::parse(&url).expect("the URL of a database"))
        .await
        .expect("the schema");
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let (by_id, in_order) = ("guid = $2", "task = $2 ORDER BY position, fraction");
    for (table, condition, index) in [
        ("tasks", by_id, "tasks_pkey"),
        ("steps", by_id, "steps_pkey"),
        ("steps", in_order, "steps_order"),
    ] {
        let ask = format!(
            "SET plan_cache_mode = force_generic_plan; \
             SET enable_seqscan = off; \
             DEALLOCATE ALL; \
             PREPARE one (text, uuid) AS \
             SELECT * FROM {table} WHERE account_id = $1 AND {condition}"
        );
        let asked = connection.execute(AssertSqlSafe(ask)).await;
        asked.expect("a statement");
        let plan = sqlx::raw_sql("EXPLAIN EXECUTE one ('', gen_random_uuid())");
        let plan = plan.fetch_all(&mut connection).await.expect("its plan");
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(&format!("using {index} on")), "{plan}");
    }
}

async fn references_take_four_statements_at_most(url: String) {
    let (store, client) = store_server::serve(&url, 4).await;
    let reads = Step {
        dependencies: Some(all_of(vec![when("it", "=", "on"), when("age", "=", "1")])),
        ..document_step(StepType::Information, "Step")
    };
    let question = linked_observation(&[("on", "On")]);
    let own = [vec![question], vec![reads; 150]].concat();
    let guide = client.imported(document("Guide", own)).await;
    let steps = client.steps_with_bodies(&guide.guid).await;
    let managed = answers_of(&steps[0])[0].link.as_str();
    for (task, variable, answer) in [
        (managed, "", ""),
        // Each step reads the `it` that its own task sets, so none is listed.
        ("", "it", ""),
        (guide.guid.as_str(), "it", "off"),
        (guide.guid.as_str(), "age", "2"),
        ("", "age", "2"),
        ("", "components.7.it", "off"),
    ] {
        let mut request = ListReferencesRequest {
            task: task.to_owned(),
            variable: variable.to_owned(),
            answer: answer.to_owned(),
            page_size: 1,
            page_token: String::new(),
        };
        loop {
            let before = store.statements();
            let page = client.analysis().list_references(request.clone()).await;
            let took = store.statements() - before;
            assert!((1..=4).contains(&took), "{request:?}: {took} statements");
            request.page_token = page.accepted().into_inner().next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
    }
}

async fn few_statements_however_many_steps(url: String) {
    let (store, client) = store_server::serve(&url, 4).await;
    let is_on_citus = url.starts_with("postgres") && is_distributed();
    let limit = STATEMENTS + if is_on_citus { MORE_ON_CITUS } else { 0 };
    let few = Counts::of(&store, &client, 10).await;
    let many = Counts::of(&store, &client, 1_000).await;
    for ((call, few), (_, many)) in few.0.into_iter().zip(many.0) {
        assert!(few > 0, "{call}: nothing is counted");
        // Steps, bodies and translations of 1,000 steps fill two batches each, and their
        // observation, which is large, is measured and read apart. A revision keeps one state: on
        // PostgreSQL another statement checks that it is one. The entries of the change feed fill
        // two batches, too.
        assert!(many <= few + 7, "{call}: {few} statements, then {many}");
        assert!(many <= limit, "{call}: {many} statements");
    }
}

/// How many statements each call takes.
#[derive(Debug, PartialEq)]
struct Counts(Vec<(&'static str, u64)>);

impl Counts {
    /// Of imports and exports of a [`guide`] with `steps` steps.
    async fn of(store: &Store, client: &Client, steps: usize) -> Self {
        let mut counts = Vec::new();
        let mut before = store.statements();
        let mut count = |call| {
            let now = store.statements();
            counts.push((call, now - std::mem::replace(&mut before, now)));
        };
        let task = import(client, guide(steps)).await;
        count("an import that makes everything");
        assert_eq!(task.steps.len(), steps + 1);
        let exported = client.exported(&task.guid).await;
        count("an export");
        import(client, exported.clone()).await;
        count("an import that changes nothing");
        let mut changed = exported;
        changed.steps.reverse();
        for step in &mut changed.steps {
            step.body = Some("changed".to_owned());
            step.translations
                .insert("fr".to_owned(), step_translation("changé"));
            for value in step
                .feedback_config
                .iter_mut()
                .flat_map(|config| &mut config.values)
            {
                value.value = "changed".to_owned();
                if let Some(document) = &mut value.task_json {
                    document.steps[0].title = "changed".to_owned();
                }
            }
        }
        import(client, changed.clone()).await;
        count("an import that changes everything");
        changed.steps.clear();
        import(client, changed).await;
        count("an import that deletes and unlinks everything");
        Self(counts)
    }
}

async fn import(client: &Client, document: TaskDocument) -> Task {
    let imported = client.import_with(AbsentSteps::Delete, document).await;
    imported.accepted().task.expect("the task")
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
    Step {
        body: Some("text".to_owned()),
        translations: [("de".to_owned(), row)].into(),
        ..document_step(kind, "Step")
    }
}

async fn validations_take_six_statements_at_most(url: String) {
    let (store, client) = store_server::serve(&url, 4).await;
    let inner = client.imported(document("Inner", clean())).await;
    let linked = || document("", clean());
    let values = (0..20).map(|index| {
        let key = index.to_string();
        answer_with(&key, &format!("Text {key}"), linked())
    });
    let mut steps = clean();
    steps.insert(0, subtask(&Task::default(), &inner));
    steps.insert(1, observation_asking(linked_question(values.collect())));
    let guide = document("Outer", steps);
    let outer = client.imported(guide.clone()).await;
    for request in [validation_of(&outer.guid), validation_of_document(guide)] {
        let before = store.statements();
        client.validated(request).await;
        let took = store.statements() - before;
        assert!(
            (1..=STATEMENTS_OF_A_VALIDATION).contains(&took),
            "{took} statements"
        );
    }
}

async fn previews_take_few_statements(url: String) {
    let (store, client) = store_server::serve(&url, 4).await;
    let alone = document("alone", document_steps(&["a"; 100]));
    let alone = client.imported(alone).await;
    let count = async |request: PreviewTaskRequest| statements_of(&store, &client, request).await;
    assert_eq!(count(preview_of(&alone.guid)).await, 2);
    let guide = guide_of_levels(&client).await;
    let stored = preview_of(&guide)
        .to_depth(8)
        .expanding(vec!["body".to_owned()])
        .in_language("de");
    assert_eq!(count(stored).await, STATEMENTS_OF_A_PREVIEW);
    let exported = client.exported(&guide).await;
    let document = preview_of_document(exported).to_depth(8);
    assert!(count(document).await < STATEMENTS_OF_A_PREVIEW);
}

/// A guide with levels of subtasks, conditions, bodies and translations.
async fn guide_of_levels(client: &Client) -> String {
    let mut below: Option<Task> = None;
    for level in 0..LEVELS {
        let condition = comparison(Condition {
            variable: "light".to_owned(),
            operator: "=".to_owned(),
            targets: vec![text("off")],
            path: "components.7".to_owned(),
        });
        let body = step_translation("Schritt").with_body("Text");
        let mut steps = vec![
            document_step(StepType::Information, "source").with_body("text"),
            document_step(StepType::Information, "translated")
                .with_body("text")
                .translated("de", body)
                .depending_on(all_of(vec![condition])),
        ];
        let subtasks = below.iter().map(|task| subtask(&Task::default(), task));
        steps.extend(subtasks.cycle().take(2));
        let document = document(&format!("level {level}"), steps);
        below = Some(client.imported(document).await);
    }
    below.expect("a task").guid
}

async fn statements_of(store: &Store, client: &Client, request: PreviewTaskRequest) -> u64 {
    let before = store.statements();
    client.previewed(request).await;
    store.statements() - before
}
