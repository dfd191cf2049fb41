//! CreateStep: appends a step and changes the etag of its task.

use expertise::proto::v1::{CreateStepRequest, CreateStepResponse, Placement, Step};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, SqliteTransactionMode, Statement,
    TransactionOptions, TransactionTrait, Value,
};
use uuid::Uuid;

use super::{
    CreateMode, Floor,
    schema::{Database, GAP, with_pool},
    sql,
    values::{ACCOUNT, etag, now, parse_id, timestamp},
};

/// A step to be written.
struct NewStep<'a> {
    task: Uuid,
    guid: Uuid,
    etag: String,
    now: i64,
    step: &'a Step,
}

impl Floor {
    pub(super) async fn create(&self, request: CreateStepRequest) -> CreateStepResponse {
        let step = request.step.expect("a step");
        let new = NewStep {
            task: parse_id(&step.task),
            guid: Uuid::now_v7(),
            etag: etag(),
            now: now(),
            step: &step,
        };
        match (self.create_mode, &self.database) {
            (CreateMode::OneStatement, _) => self.insert(&new).await,
            (CreateMode::SixStatements, Database::Sqlite { orm, .. }) => {
                six_statements(orm, &new).await.expect("SQLite answers")
            }
            (CreateMode::SixStatements, Database::Postgres(_)) => {
                panic!("SixStatements is only for SQLite")
            }
        }
        let NewStep {
            guid, etag, now, ..
        } = new;
        CreateStepResponse {
            step: Some(Step {
                guid: guid.to_string(),
                etag,
                account_id: ACCOUNT.to_owned(),
                published: Some(1),
                dirty_record: true,
                created_ts: Some(timestamp(now)),
                modified_ts: Some(timestamp(now)),
                ..step
            }),
            ignored_paths: Vec::new(),
            placement: Placement::Appended.into(),
        }
    }

    async fn insert(&self, new: &NewStep<'_>) {
        let sql = match self.database {
            Database::Sqlite { .. } => sql::CREATE_STEP_SQLITE,
            Database::Postgres(_) => sql::CREATE_STEP_POSTGRES,
        };
        let step = new.step;
        with_pool!(&self.database, writer, |pool| async {
            sqlx::query(sql)
                .bind(ACCOUNT)
                .bind(new.task)
                .bind(new.guid)
                .bind(&step.title)
                .bind(&step.body)
                .bind(step.r#type)
                .bind(step.product_id)
                .bind(step.cost)
                .bind(1)
                .bind(&new.etag)
                .bind(new.now)
                .execute(pool)
                .await
                .map(drop)
        });
    }
}

/// BEGIN, read the task and its last step, insert the step, update the task, COMMIT.
async fn six_statements(orm: &DatabaseConnection, new: &NewStep<'_>) -> Result<(), sea_orm::DbErr> {
    let statement = |sql: &str, values: Vec<Value>| {
        Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)
    };
    let key = || vec![Value::from(ACCOUNT), Value::from(new.task)];
    let tx = orm
        .begin_with_options(TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        })
        .await?;
    let read_task = "SELECT * FROM tasks WHERE account_id = $1 AND guid = $2";
    tx.query_one_raw(statement(read_task, key())).await?;
    let read_last = "SELECT position FROM steps WHERE account_id = $1 AND task = $2 \
                     ORDER BY position DESC LIMIT 1";
    let last = tx.query_one_raw(statement(read_last, key())).await?;
    let last: i64 = last.map_or(Ok(0), |row| row.try_get_by_index(0))?;
    let insert = "INSERT INTO steps (account_id, guid, task, title, body, kind, product_id, cost, \
                  published, etag, dirty_record, created_ts, modified_ts, position) \
                  VALUES ($1, $3, $2, $4, $5, $6, $7, $8, $9, $10, true, $11, $11, $12)";
    let step = new.step;
    let mut values = key();
    values.extend([
        new.guid.into(),
        step.title.as_str().into(),
        step.body.clone().into(),
        step.r#type.into(),
        step.product_id.into(),
        step.cost.into(),
        1.into(),
        new.etag.as_str().into(),
        new.now.into(),
        (last + GAP).into(),
    ]);
    tx.execute_raw(statement(insert, values)).await?;
    let update = "UPDATE tasks SET step_count = step_count + 1, last_position = $3, etag = $4, \
                  dirty_record = true, modified_ts = $5 WHERE account_id = $1 AND guid = $2";
    let mut values = key();
    values.extend([
        (last + GAP).into(),
        new.etag.as_str().into(),
        new.now.into(),
    ]);
    tx.execute_raw(statement(update, values)).await?;
    tx.commit().await
}
