//! Sizes and counts that are stored with tasks and steps, held against their content, and
//! digests, held against the tasks and steps that there are.

use expertise::{
    domain::{
        ids::{AccountId, StepId, TaskId},
        size::{StepSize, stored_count, task_size},
    },
    store::Store,
};
use sqlx::{Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

/// An id and three numbers.
type Row = (Uuid, i64, i64, i64);

const TASKS: &str = "SELECT guid, size, step_count, language_count FROM tasks \
    WHERE account_id = $1";
const STEPS: &str = "SELECT guid, size, body_size, language_count FROM steps \
    WHERE account_id = $1";

/// Asserts that every row of an account has the sizes and counts of what it holds.
pub async fn stored_sizes_are_those_of_the_content(store: &Store, url: &str, account: &str) {
    let id = AccountId::parse(account).expect("an account");
    let reader = store.account(&id);
    for (guid, size, steps, languages) in rows(url, TASKS, account).await {
        let task = reader.get_task(TaskId(guid)).await.expect("the task");
        let counts = (
            stored_count(task.steps.len()),
            stored_count(task.content.translations.len()),
        );
        let content = (task_size(&task), counts);
        assert_eq!((size, (steps, languages)), content, "{task:?}");
    }
    for (guid, listed, bodies, languages) in rows(url, STEPS, account).await {
        let step = reader.get_step(StepId(guid)).await.expect("the step");
        let content = (
            StepSize::of(&step),
            stored_count(step.content.translations.len()),
        );
        let stored = (StepSize { listed, bodies }, languages);
        assert_eq!(stored, content, "{step:?}");
    }
}

/// NameDigests of tasks and steps that do not exist, with zeros to fit [`Row`].
const ORPHANS: [&str; 2] = [
    "SELECT guid, CAST(0 AS bigint), CAST(0 AS bigint), CAST(0 AS bigint) \
     FROM name_uses WHERE account_id = $1 AND in_step = 0 \
     AND guid NOT IN (SELECT guid FROM tasks WHERE account_id = $1)",
    "SELECT guid, CAST(0 AS bigint), CAST(0 AS bigint), CAST(0 AS bigint) \
     FROM name_uses WHERE account_id = $1 AND in_step = 1 \
     AND guid NOT IN (SELECT guid FROM steps WHERE account_id = $1)",
];

/// Asserts that no row of a name outlives its task or step.
pub async fn name_uses_are_those_of_stored_tasks_and_steps(url: &str, account: &str) {
    for orphans in ORPHANS {
        assert_eq!(rows(url, orphans, account).await, [], "{orphans}");
    }
}

/// The stored sizes of the tasks and of the steps of an account, bodies included, by id.
pub async fn stored_sizes(url: &str, account: &str) -> [Vec<(Uuid, i64)>; 2] {
    let tasks = rows(url, TASKS, account).await.into_iter();
    let steps = rows(url, STEPS, account).await.into_iter();
    [
        tasks.map(|(guid, size, ..)| (guid, size)).collect(),
        steps
            .map(|(guid, listed, bodies, _)| (guid, listed + bodies))
            .collect(),
    ]
}

async fn rows(url: &str, sql: &'static str, account: &str) -> Vec<Row> {
    let query = sqlx::query_as::<sqlx::Postgres, Row>(sql).bind(account);
    let rows = if url.starts_with("sqlite:") {
        let query = sqlx::query_as::<sqlx::Sqlite, Row>(sql).bind(account);
        let mut file = SqliteConnection::connect(url).await.expect("the file");
        query.fetch_all(&mut file).await
    } else {
        let mut database = PgConnection::connect(url).await.expect("PostgreSQL");
        query.fetch_all(&mut database).await
    };
    rows.expect("the rows")
}
