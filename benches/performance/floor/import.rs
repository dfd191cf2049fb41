//! ImportTask of a new task with its steps.

use std::sync::OnceLock;

use expertise::proto::v1::{
    ImportOutcome, ImportTaskRequest, ImportTaskResponse, Step, Task, TaskDocument,
};
use sqlx::{AssertSqlSafe, PgPool, SqlSafeStr, SqlStr, SqlitePool};
use uuid::Uuid;

use super::{
    Floor,
    schema::{Database, GAP},
    sql,
    values::{ACCOUNT, etag, now, timestamp},
};

/// Steps of the measured import.
const STEPS: usize = 1_000;

/// A document to be written.
struct NewTask {
    guid: Uuid,
    etag: String,
    now: i64,
    roles: Vec<u8>,
    task: Task,
    steps: Vec<Step>,
    guids: Vec<Uuid>,
}

impl Floor {
    pub(super) async fn import(&self, request: ImportTaskRequest) -> ImportTaskResponse {
        let TaskDocument { task, steps } = request.document.expect("a document");
        let task = task.expect("a task");
        // All levels, the default of the service.
        let roles = vec![0, 1, 2, 3, 5, 7, 8];
        let new = NewTask {
            guid: Uuid::now_v7(),
            etag: etag(),
            now: now(),
            guids: steps.iter().map(|_| Uuid::now_v7()).collect(),
            roles,
            task,
            steps,
        };
        match &self.database {
            Database::Sqlite { writer, .. } => new.write_to_sqlite(writer).await,
            Database::Postgres(pool) => new.write_to_postgres(pool).await,
        }
        .expect("the database answers");
        ImportTaskResponse {
            task: Some(Task {
                guid: new.guid.to_string(),
                etag: new.etag,
                roles: new.roles.into_iter().map(i32::from).collect(),
                steps: new.guids.iter().map(Uuid::to_string).collect(),
                account_id: ACCOUNT.to_owned(),
                published: Some(1),
                r#type: Some(0),
                dirty_record: true,
                created_ts: Some(timestamp(new.now)),
                modified_ts: Some(timestamp(new.now)),
                ..new.task
            }),
            ignored_paths: Vec::new(),
            outcome: ImportOutcome::Created.into(),
            guide_etag: String::new(),
            previous_revision: 0,
            document: None,
        }
    }
}

/// Binds the values of the task.
macro_rules! bind_task {
    ($query:expr, $new:expr, $steps:expr) => {
        $query
            .bind(ACCOUNT)
            .bind($new.guid)
            .bind(&$new.task.name)
            .bind($new.task.product_id)
            .bind(&$new.roles)
            .bind($steps)
            .bind($steps * GAP)
            .bind(&$new.etag)
            .bind($new.now)
    };
}

impl NewTask {
    fn count(&self) -> i64 {
        i64::try_from(self.steps.len()).expect("a number of steps")
    }

    async fn write_to_sqlite(&self, pool: &SqlitePool) -> Result<(), sqlx::Error> {
        static MEASURED_SQL: OnceLock<SqlStr> = OnceLock::new();
        let make_sql = |steps| AssertSqlSafe(sql::import_sqlite(steps)).into_sql_str();
        let sql = match self.steps.len() {
            STEPS => MEASURED_SQL.get_or_init(|| make_sql(STEPS)).clone(),
            other => make_sql(other),
        };
        let mut query = bind_task!(sqlx::query(sql), self, self.count());
        for (guid, step) in self.guids.iter().zip(&self.steps) {
            query = query
                .bind(guid)
                .bind(step.r#type)
                .bind(&step.title)
                .bind(&step.body)
                .bind(step.cost);
        }
        let query = query.bind(ACCOUNT).bind(self.guid);
        let query = query.bind(ACCOUNT).bind(Uuid::now_v7());
        let query = query.bind(self.now).bind(self.guid);
        query.execute(pool).await.map(drop)
    }

    async fn write_to_postgres(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let each = self.steps.iter();
        let kinds: Vec<i32> = each.clone().map(|step| step.r#type).collect();
        let titles: Vec<&str> = each.clone().map(|step| step.title.as_str()).collect();
        let bodies: Vec<Option<&str>> = each.clone().map(|step| step.body.as_deref()).collect();
        let costs: Vec<i32> = each.map(Step::cost).collect();
        bind_task!(sqlx::query(sql::IMPORT_POSTGRES), self, self.count())
            .bind(&self.guids)
            .bind(kinds)
            .bind(titles)
            .bind(bodies)
            .bind(costs)
            .bind(Uuid::now_v7())
            .execute(pool)
            .await
            .map(drop)
    }
}
