//! A task with its steps and, below linked observations, the tasks that they
//! manage: what an import changes and an export shows.

use std::collections::BTreeMap;

use sea_orm::{
    ConnectionTrait, DbBackend, FromQueryResult, IsolationLevel, TransactionOptions, Value,
};
use tracing::Instrument;
use uuid::Uuid;

use super::{
    Account, backend,
    connect::Lagging,
    database::Database,
    fault::Fault,
    step_row::{Selected, StepRow},
    task_read::{self, Numbering, TaskRow},
    transaction::statement,
};
use crate::{
    call_context::CallContext,
    domain::{
        Error, Result,
        ids::{AccountId, StepId, TaskId},
        import::Tree,
        order::Place,
        step::Step,
        task::Task,
    },
};

/// The ids of a task and of everything that is managed below it.
const TREE: &str = "WITH RECURSIVE tree AS ( \
      SELECT guid FROM tasks WHERE account_id = $1 AND guid = $2 \
      UNION \
      SELECT t.guid FROM tasks t JOIN tree ON t.parent_guid = tree.guid \
      WHERE t.account_id = $1 \
    ) ";

/// What was read of a task and everything below it.
pub(super) struct Grown {
    /// The task; `None` if the account has none of that id.
    pub tree: Option<Tree>,
    /// Where each step stands.
    pub places: BTreeMap<StepId, Place>,
    /// How each task's steps are numbered.
    pub numberings: BTreeMap<TaskId, Numbering>,
}

#[derive(FromQueryResult)]
struct IdRow {
    guid: Uuid,
}

#[derive(FromQueryResult)]
struct SizeRow {
    size: i64,
}

/// The ids of a task and of everything that is managed below it.
pub(super) async fn ids(
    db: &impl ConnectionTrait,
    account: &AccountId,
    root: TaskId,
) -> Result<Vec<TaskId>, Fault> {
    let sql = format!("{TREE} SELECT guid FROM tree ORDER BY guid");
    let statement = statement(backend(db), account, sql, [Value::from(root.0)]);
    let rows = IdRow::find_by_statement(statement).all(db).await?;
    Ok(rows.into_iter().map(|row| TaskId(row.guid)).collect())
}

/// Reads a task and everything below it, whole.
pub(super) async fn grow(
    db: &impl ConnectionTrait,
    account: &AccountId,
    root: TaskId,
) -> Result<Grown, Fault> {
    let backend = backend(db);
    let run = |sql: String| statement(backend, account, sql, [Value::from(root.0)]);
    let columns = task_read::columns(backend);
    let sql = format!(
        "{TREE} SELECT {columns} FROM tasks t JOIN tree ON tree.guid = t.guid \
         WHERE t.account_id = $1"
    );
    let tasks = TaskRow::find_by_statement(run(sql)).all(db).await?;
    let columns = Selected::WHOLE.columns(backend);
    let sql = format!(
        "{TREE} SELECT {columns} FROM steps s JOIN tree ON tree.guid = s.task \
         WHERE s.account_id = $1 ORDER BY s.task, s.position, s.fraction"
    );
    let mut places = BTreeMap::new();
    let mut steps: BTreeMap<TaskId, Vec<Step>> = BTreeMap::new();
    for row in StepRow::find_by_statement(run(sql)).all(db).await? {
        let place = row.place();
        let step = row.read(account)?;
        places.insert(step.guid, place);
        steps.entry(step.task).or_default().push(step);
    }
    let mut children: BTreeMap<Option<TaskId>, Vec<Task>> = BTreeMap::new();
    let mut top = None;
    let mut numberings = BTreeMap::new();
    for row in tasks {
        let numbering = row.numbering();
        let task = row.read(account)?;
        numberings.insert(task.guid, numbering);
        if task.guid == root {
            top = Some(task);
        } else {
            let parent = task.managed.map(|managed| managed.parent);
            children.entry(parent).or_default().push(task);
        }
    }
    let tree = top.map(|task| assemble(task, &mut children, &mut steps));
    Ok(Grown {
        tree,
        places,
        numberings,
    })
}

fn assemble(
    task: Task,
    children: &mut BTreeMap<Option<TaskId>, Vec<Task>>,
    steps: &mut BTreeMap<TaskId, Vec<Step>>,
) -> Tree {
    let below = children.remove(&Some(task.guid)).unwrap_or_default();
    Tree {
        steps: steps.remove(&task.guid).unwrap_or_default(),
        managed: below
            .into_iter()
            .map(|child| (child.guid, assemble(child, children, steps)))
            .collect(),
        task,
    }
}

impl Account {
    /// A task with its steps and everything below it, as one state.
    pub async fn export_task(&self, guid: TaskId) -> Result<Tree> {
        let account = self.clone();
        // A transaction that is cancelled while it begins would be left open on
        // its connection, so it runs in a task of its own.
        let call = CallContext::current();
        let read = async move {
            let tree = account.read_tree(guid).await.map_err(Error::from);
            drop(call);
            tree
        };
        tokio::spawn(read.in_current_span())
            .await
            .unwrap_or_else(|_| Err(Error::Internal("an export panicked".to_owned())))
    }

    async fn read_tree(&self, guid: TaskId) -> Result<Tree, Fault> {
        let Lagging { primary, replica } = self.lagging();
        if let Some(replica) = replica {
            // What is not there may not be there yet.
            let read = self.read_tree_from(replica.database(), guid);
            if let Some(tree) = replica.ask(read).await {
                return Ok(tree);
            }
        }
        self.read_tree_from(primary, guid).await
    }

    async fn read_tree_from(&self, database: &Database, guid: TaskId) -> Result<Tree, Fault> {
        let isolation_level = match backend(database) {
            DbBackend::Postgres => Some(IsolationLevel::RepeatableRead),
            // A transaction of SQLite always sees one state.
            _ => None,
        };
        let options = TransactionOptions {
            isolation_level,
            ..TransactionOptions::default()
        };
        let db = database.begin(options).await?;
        let grown = self.read_tree_in(&db, guid).await;
        db.rollback().await?;
        grown?.tree.ok_or_else(|| Error::TaskNotFound(guid).into())
    }

    async fn read_tree_in(&self, db: &impl ConnectionTrait, guid: TaskId) -> Result<Grown, Fault> {
        let sql = format!(
            "{TREE} SELECT CAST(COALESCE(SUM(s.size + s.body_size), 0) AS bigint) AS size \
             FROM steps s JOIN tree ON tree.guid = s.task WHERE s.account_id = $1"
        );
        let statement = statement(backend(db), &self.id, sql, [Value::from(guid.0)]);
        let size = SizeRow::find_by_statement(statement).one(db).await?;
        let limit = self.max_message_bytes();
        let size = size.map_or(0, |row| row.size);
        if usize::try_from(size).is_ok_and(|size| size > limit) {
            return Err(Error::TooLarge { limit }.into());
        }
        grow(db, &self.id, guid).await
    }
}
