//! What imports and exports ask of the database: a number of statements that
//! does not grow with the steps, but for batches of 1,000 rows. And that its schema
//! can be spread by account.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "kit/mod.rs"]
mod kit;
use kit::{postgres as cluster, scratch};

use std::{env, sync::OnceLock};

use expertise::{
    auth::{Caller, Scope},
    config::DatabaseUrl,
    domain::ids::AccountId,
    grpc::{self, Limits},
    proto::v1::{task_service_client::TaskServiceClient, *},
    store::{Options, Store, migrate},
};
use scratch::Scratch;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request,
    service::InterceptorLayer,
    transport::{Channel, Server},
};

/// No call takes more than this.
const STATEMENTS: u64 = 20;
/// Largest message, in bytes.
const MESSAGE_LIMIT: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_gets_few_statements_however_many_steps() {
    let file = Scratch::of_this_run().path("statements.db");
    few_statements_however_many_steps(&format!("sqlite:{}", file.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_gets_few_statements_however_many_steps() {
    let Some(url) = postgres() else { return };
    few_statements_however_many_steps(url).await;
}

/// Every index and both ends of every foreign key with its first column, and every
/// table without a primary key or without accounts.
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
async fn every_key_of_the_schema_begins_with_the_account() {
    let Some(url) = postgres() else { return };
    let database = DatabaseUrl::parse(url).expect("the URL of a database");
    migrate(&database).await.expect("the schema");
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let keys = sqlx::query_as::<_, (String, String)>(KEYS);
    let keys = keys.fetch_all(&mut connection).await.expect("the keys");
    let of = |kind| keys.iter().filter(move |(what, _)| what.starts_with(kind));
    assert!(of("table").count() >= 10 && of("index").count() >= 16 && of("foreign").count() >= 14);
    // These are not an account's.
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
async fn postgres_finds_rows_by_their_ids_before_it_has_statistics() {
    let Some(url) = postgres() else { return };
    migrate(&DatabaseUrl::parse(url).expect("the URL of a database"))
        .await
        .expect("the schema");
    let mut connection = PgConnection::connect(url).await.expect("a connection");
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

/// The PostgreSQL of this run.
fn postgres() -> Option<&'static str> {
    static URL: OnceLock<Option<String>> = OnceLock::new();
    let url = URL.get_or_init(cluster::database_url).as_deref();
    let required = env::var("EXPERTISE_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
    assert!(
        url.is_some() || !required,
        "EXPERTISE_REQUIRE_POSTGRES=1, but there is none"
    );
    url
}

async fn few_statements_however_many_steps(url: &str) {
    let store = Store::open(Options {
        database: DatabaseUrl::parse(url).expect("the URL of a database"),
        replica: None,
        migrate: true,
        max_connections: 4,
        max_message_bytes: MESSAGE_LIMIT,
    });
    let store = store.await.expect("a database");
    let mut tasks = serve(&store).await;
    let few = Counts::of(&store, &mut tasks, 10).await;
    let many = Counts::of(&store, &mut tasks, 1_000).await;
    for ((call, few), (_, many)) in few.0.into_iter().zip(many.0) {
        assert!(few > 0, "{call}: nothing is counted");
        // Steps, bodies and translations of 1,000 steps fill two batches each.
        assert!(many <= few + 3, "{call}: {few} statements, then {many}");
        assert!(many <= STATEMENTS, "{call}: {many} statements");
    }
}

/// A client of the services on the store, called as an account.
async fn serve(store: &Store) -> TaskServiceClient<Channel> {
    let limits = Limits {
        max_message_bytes: MESSAGE_LIMIT,
    };
    let caller = Caller {
        account: AccountId::parse("statements").expect("an account"),
        subject: String::new(),
        scopes: Scope::ALL.to_vec(),
    };
    let authenticated = InterceptorLayer::new(move |mut request: Request<()>| {
        request.extensions_mut().insert(caller.clone());
        Ok(request)
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = Server::builder()
        .layer(authenticated)
        .add_routes(grpc::routes(store.clone(), limits))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serving);
    TaskServiceClient::connect(format!("http://{address}"))
        .await
        .expect("the server")
        .max_decoding_message_size(MESSAGE_LIMIT)
}

/// How many statements each call takes.
#[derive(Debug, PartialEq)]
struct Counts(Vec<(&'static str, u64)>);

impl Counts {
    /// Of imports and exports of a guide with as many steps: a tenth are linked
    /// values, each of which manages a task with a step.
    async fn of(store: &Store, tasks: &mut TaskServiceClient<Channel>, steps: usize) -> Self {
        let mut counts = Vec::new();
        let mut before = store.statements();
        let mut count = |call| {
            let now = store.statements();
            counts.push((call, now - std::mem::replace(&mut before, now)));
        };
        let task = import(tasks, guide(steps)).await;
        count("an import that makes everything");
        assert_eq!(task.steps.len(), steps + 1);
        let exported = export(tasks, &task.guid).await;
        count("an export");
        import(tasks, exported.clone()).await;
        count("an import that changes nothing");
        let mut changed = exported;
        changed.steps.reverse();
        for step in &mut changed.steps {
            step.body = Some("changed".to_owned());
            let row = StepTranslation {
                title: Some("changé".to_owned()),
                ..StepTranslation::default()
            };
            step.translations.insert("fr".to_owned(), row);
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
        import(tasks, changed.clone()).await;
        count("an import that changes everything");
        changed.steps.clear();
        import(tasks, changed).await;
        count("an import that deletes and unlinks everything");
        Self(counts)
    }
}

async fn import(tasks: &mut TaskServiceClient<Channel>, document: TaskDocument) -> Task {
    let request = ImportTaskRequest {
        document: Some(document),
        absent_steps: AbsentSteps::Delete.into(),
        ..ImportTaskRequest::default()
    };
    let response = tasks.import_task(request).await.expect("an import");
    response.into_inner().task.expect("the task")
}

async fn export(tasks: &mut TaskServiceClient<Channel>, guid: &str) -> TaskDocument {
    let guid = guid.to_owned();
    let response = tasks.export_task(ExportTaskRequest { guid }).await;
    let response = response.expect("an export").into_inner();
    response.document.expect("the document")
}

fn guide(steps: usize) -> TaskDocument {
    let linked = steps / 10;
    let values = (0..linked).map(|n| FeedbackValue {
        key: n.to_string(),
        value: n.to_string(),
        task_json: Some(TaskDocument {
            task: None,
            steps: vec![step(StepType::Information)],
        }),
        ..FeedbackValue::default()
    });
    let question = FeedbackConfig {
        name: "which".to_owned(),
        r#type: "enum".to_owned(),
        linked: Some(true),
        values: values.collect(),
    };
    let observation = Step {
        feedback_config: vec![question],
        ..step(StepType::Observation)
    };
    let others = vec![step(StepType::Information); steps - linked];
    TaskDocument {
        task: Some(Task {
            name: "Guide".to_owned(),
            product_id: Some(7),
            ..Task::default()
        }),
        steps: [vec![observation], others].concat(),
    }
}

fn step(kind: StepType) -> Step {
    let row = StepTranslation {
        title: Some("Schritt".to_owned()),
        body: Some("Text".to_owned()),
        ..StepTranslation::default()
    };
    Step {
        product_id: Some(7),
        r#type: kind.into(),
        title: "Step".to_owned(),
        body: Some("text".to_owned()),
        translations: [("de".to_owned(), row)].into(),
        ..Step::default()
    }
}
