//! Reads a task tree: a task with its steps and the tasks that its linked observations
//! manage. Imports and exports use it.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::{
    run_to_end,
    tasks::{self, TaskTexts},
};
use crate::{
    domain::{
        Error, Result, SizedResource,
        history::TranslatedFrom,
        ids::{AccountId, StepId, TaskId},
        import::TaskTree,
        order::Place,
        size::stored_count,
        step::Step,
        task::Task,
        translation::Language,
    },
    store::{
        Account, backend,
        connection::TransactionMode,
        error::StoreError,
        json_columns,
        row_reader::{RowReader, read_all},
        schema::entity::{OfAccount, step},
        step_row::{StepColumns, read_step},
        values::{MAX_IDS_PER_STATEMENT, Values},
    },
};

/// A tree with more bytes is large: it is read under a permit.
pub const LARGE_TREE_BYTES: usize = 2 * 1024 * 1024;

/// SQL for the ids of tasks and of all tasks managed below them. SQLite reads the tables of a
/// CROSS JOIN from left to right; otherwise it may read all managed tasks of the account for
/// each task of the tree.
fn tree(roots: &str) -> String {
    format!(
        "WITH RECURSIVE tree AS ( \
           SELECT guid FROM tasks WHERE account_id = $1 AND guid IN ({roots}) \
           UNION \
           SELECT t.guid FROM tree CROSS JOIN tasks t \
           WHERE t.account_id = $1 AND t.parent_guid = tree.guid \
         ) "
    )
}

/// The ids of tasks and of all tasks managed below them, in their order.
pub async fn ids(
    db: &impl ConnectionTrait,
    account: &AccountId,
    roots: &[TaskId],
) -> Result<Vec<TaskId>, StoreError> {
    let mut values = Values::new();
    let roots = values.bind_all(roots.iter().map(|root| root.0));
    let sql = format!("{} SELECT guid FROM tree ORDER BY guid", tree(&roots));
    let statement = values.statement(sql, backend(db), account);
    let rows = db.query_all_raw(statement).await?;
    let id = |row| RowReader::new(row).take().map(TaskId);
    Ok(read_all(rows.iter(), id)?)
}

/// The tasks of trees.
struct TreeTasks {
    roots: Vec<Task>,
    /// The others, by the task that manages them.
    managed: BTreeMap<Option<TaskId>, Vec<Task>>,
    ids: Vec<TaskId>,
}

/// The bytes of the texts of a step `s`.
const STEP_BYTES: &str = "(s.size + s.body_size)";
/// The most bytes of a step that is read before the bytes of all steps are known.
const USUAL_STEP_BYTES: usize = 4 * 1024;
/// The most bytes of all of them together.
const USUAL_STEPS_BYTES: usize = 8 * 1024 * 1024;
/// About how many steps one statement reads. The driver holds a row in several times the memory
/// of a step.
const STEPS_AT_ONCE: usize = 5_000;

impl TreeTasks {
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.roots.iter().chain(self.managed.values().flatten())
    }

    fn step_count(&self) -> usize {
        self.tasks().map(|task| task.steps.len()).sum()
    }

    /// The trees of the tasks and these steps.
    fn with(mut self, mut steps: StepsOfTasks) -> Vec<TaskTree> {
        let roots = self.roots.into_iter();
        roots
            .map(|root| assemble(root, &mut self.managed, &mut steps.by_task))
            .collect()
    }

    /// The ids of the tasks, in batches whose steps one statement reads.
    fn batches(&self) -> Vec<Vec<TaskId>> {
        let (mut batches, mut batch, mut steps) = (Vec::new(), Vec::new(), 0);
        for task in self.tasks() {
            let is_full = steps + task.steps.len() > STEPS_AT_ONCE;
            if batch.len() == MAX_IDS_PER_STATEMENT || (is_full && !batch.is_empty()) {
                batches.push(std::mem::take(&mut batch));
                steps = 0;
            }
            steps += task.steps.len();
            batch.push(task.guid);
        }
        // A statement takes no empty list.
        if !batch.is_empty() {
            batches.push(batch);
        }
        batches
    }
}

/// Reads the tree of a task as [`read_trees`] does.
pub async fn read_tree(
    db: &impl ConnectionTrait,
    account: &AccountId,
    root: TaskId,
    locked: &[TaskId],
    hold: impl Fn(usize) -> Result<()>,
) -> Result<Option<TaskTree>, StoreError> {
    Ok(read_trees(db, account, &[root], locked, hold).await?.pop())
}

/// Reads the trees of those of the tasks that exist, with all texts, under locks on all of their
/// tasks, as they are at one moment. A task that another one manages is a part of its tree. Calls
/// `hold` with the bytes that the steps may have before they are read, and then with those that
/// they have. Fails with a conflict if the trees have other tasks, or if steps change meanwhile.
pub async fn read_trees(
    db: &impl ConnectionTrait,
    account: &AccountId,
    roots: &[TaskId],
    locked: &[TaskId],
    hold: impl Fn(usize) -> Result<()>,
) -> Result<Vec<TaskTree>, StoreError> {
    let tasks = read_tasks(db, account, roots, TaskTexts::All).await?;
    let mut ids = tasks.ids.clone();
    ids.sort_unstable();
    if ids != locked {
        return Err(StoreError::Conflict);
    }
    // To ask for the bytes of all steps takes half as long as to read them. So those that are
    // not large are read first, and only the bytes of the others are asked for.
    let count = tasks.step_count();
    let usual = USUAL_STEP_BYTES.min(USUAL_STEPS_BYTES / count.max(1));
    hold(count * usual)?;
    let mut steps = read_steps(db, account, &tasks, StepSizes::UpTo(usual)).await?;
    let mut is_one_state = steps.statements == 1;
    if steps.count != count {
        is_one_state = false;
        let larger = StepSizes::Above(usual);
        hold(steps.bytes + step_bytes(db, account, &tasks.ids, larger).await?)?;
        let larger = read_steps(db, account, &tasks, larger).await?;
        steps = steps.merge(larger);
        if steps.count != count {
            return Err(StoreError::Conflict);
        }
    }
    hold(steps.bytes)?;
    if !is_one_state && backend(db) != DbBackend::Sqlite {
        check_unchanged(db, account, &tasks, &steps).await?;
    }
    Ok(tasks.with(steps))
}

/// Fails with a conflict if a step has changed since it was read. Several statements see one state
/// on PostgreSQL only if none has.
async fn check_unchanged(
    db: &impl ConnectionTrait,
    account: &AccountId,
    tasks: &TreeTasks,
    steps: &StepsOfTasks,
) -> Result<(), StoreError> {
    let read = steps.by_task.values().flatten();
    let read: BTreeMap<Uuid, i64> = read
        .map(|(step, _)| (step.guid.0, step.row_version.version))
        .collect();
    for tasks in tasks.ids.chunks(MAX_IDS_PER_STATEMENT) {
        let stored: Vec<(Uuid, i64)> = step::Entity::select(account)
            .select_only()
            .columns([step::Column::Guid, step::Column::Version])
            .filter(step::Column::Task.is_in(tasks.iter().map(|task| task.0)))
            .into_tuple()
            .all(db)
            .await?;
        if stored
            .iter()
            .any(|(step, version)| read.get(step) != Some(version))
        {
            return Err(StoreError::Conflict);
        }
    }
    Ok(())
}

/// What outdated translations of the tasks and steps of trees were made from. Trees without
/// translations need no statement.
pub async fn outdated_translations<'t>(
    db: &impl ConnectionTrait,
    account: &AccountId,
    trees: impl IntoIterator<Item = &'t TaskTree>,
) -> Result<TranslatedFrom, StoreError> {
    fn add(tree: &TaskTree, translated: &mut [Vec<Uuid>; 2]) {
        let [tasks, of_steps] = translated;
        if !tree.task.content.translations.is_empty() {
            tasks.push(tree.task.guid.0);
        }
        let mut steps = tree.steps.iter();
        if steps.any(|step| !step.content.translations.is_empty()) {
            of_steps.push(tree.task.guid.0);
        }
        tree.managed.values().for_each(|tree| add(tree, translated));
    }
    let mut translated = [Vec::new(), Vec::new()];
    trees
        .into_iter()
        .for_each(|tree| add(tree, &mut translated));
    let [tasks, of_steps] = translated;
    let mut outdated = TranslatedFrom::default();
    for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
        let mut values = Values::new();
        let ids = values.bind_all(tasks.iter().copied());
        let sql = format!(
            "SELECT l.task, l.language, l.translated_from_name FROM tasks t JOIN task_translations l \
             ON l.account_id = $1 AND l.task = t.guid AND l.translated_from_name <> t.name \
             WHERE t.account_id = $1 AND t.guid IN ({ids})"
        );
        let statement = values.statement(sql, backend(db), account);
        for row in db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            let key = (TaskId(row.take()?), Language::stored(row.take()?));
            outdated.tasks.insert(key, row.take()?);
        }
    }
    for tasks in of_steps.chunks(MAX_IDS_PER_STATEMENT) {
        let mut values = Values::new();
        let ids = values.bind_all(tasks.iter().copied());
        let sql = format!(
            "SELECT l.step, l.language, l.translated_from_title, l.translated_from_rest \
             FROM steps s JOIN step_translations l ON l.account_id = $1 AND l.step = s.guid \
               AND (l.translated_from_title <> s.title OR l.translated_from_rest <> s.rest_digest) \
             WHERE s.account_id = $1 AND s.task IN ({ids}) AND s.language_count > 0"
        );
        let statement = values.statement(sql, backend(db), account);
        for row in db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            let key = (StepId(row.take()?), Language::stored(row.take()?));
            let title = row.take()?;
            let rest = json_columns::read_digest(row.take()?, "translated_from_rest")?;
            outdated.steps.insert(key, (title, rest));
        }
    }
    Ok(outdated)
}

/// SQL for these columns of the tasks of trees.
pub(super) fn tree_sql(columns: &str, roots: &str) -> String {
    format!(
        "{} SELECT {columns} FROM tree CROSS JOIN tasks t \
         WHERE t.account_id = $1 AND t.guid = tree.guid",
        tree(roots)
    )
}

async fn read_tasks(
    db: &impl ConnectionTrait,
    account: &AccountId,
    roots: &[TaskId],
    texts: TaskTexts,
) -> Result<TreeTasks, StoreError> {
    let mut values = Values::new();
    let placeholders = values.bind_all(roots.iter().map(|root| root.0));
    let sql = tree_sql(&tasks::columns(backend(db), texts, "SUM"), &placeholders);
    let statement = values.statement(sql, backend(db), account);
    let rows = db.query_all_raw(statement).await?;
    let tasks = tasks::read_tasks(&rows, 0, texts, account)?;
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.guid).collect();
    let read: BTreeSet<TaskId> = ids.iter().copied().collect();
    let mut found = TreeTasks {
        roots: Vec::new(),
        managed: BTreeMap::new(),
        ids,
    };
    for task in tasks {
        match task.managed.map(|managed| managed.parent) {
            Some(parent) if read.contains(&parent) => {
                found.managed.entry(Some(parent)).or_default().push(task);
            }
            Some(_) | None => found.roots.push(task),
        }
    }
    Ok(found)
}

/// Which steps are read, by the bytes of all their texts.
#[derive(Clone, Copy, Debug)]
pub enum StepSizes {
    All,
    UpTo(usize),
    Above(usize),
}

impl StepSizes {
    /// The condition on steps `s`.
    fn condition(self, values: &mut Values) -> String {
        let (comparison, bytes) = match self {
            Self::All => return String::new(),
            Self::UpTo(bytes) => ("<=", bytes),
            Self::Above(bytes) => (">", bytes),
        };
        let bytes = values.bind(stored_count(bytes));
        format!(" AND {STEP_BYTES} {comparison} {bytes}")
    }
}

/// Steps of tasks, with their places and in their order.
#[derive(Default)]
struct StepsOfTasks {
    by_task: BTreeMap<TaskId, Vec<(Step, Place)>>,
    count: usize,
    bytes: usize,
    /// How many statements have read them.
    statements: usize,
}

impl StepsOfTasks {
    /// All steps of both. One that is in both counts once.
    fn merge(mut self, other: Self) -> Self {
        for (task, others) in other.by_task {
            let steps = self.by_task.entry(task).or_default();
            steps.extend(others);
            steps.sort_by(|(_, place), (_, other)| place.cmp(other));
            steps.dedup_by_key(|(step, _)| step.guid);
        }
        self.count = self.by_task.values().map(Vec::len).sum();
        self.bytes += other.bytes;
        self
    }
}

/// Reads steps of the tasks. The statement names the tasks: joined with a recursive
/// query, PostgreSQL expects many of them and would read all steps of the account.
async fn read_steps(
    db: &impl ConnectionTrait,
    account: &AccountId,
    tasks: &TreeTasks,
    sizes: StepSizes,
) -> Result<StepsOfTasks, StoreError> {
    let columns = StepColumns::ALL.columns(backend(db));
    let mut steps = StepsOfTasks::default();
    // Of the steps above a size there are few.
    if !matches!(sizes, StepSizes::Above(_)) {
        let lists = tasks.tasks();
        let lists = lists.map(|task| (task.guid, Vec::with_capacity(task.steps.len())));
        steps.by_task = lists.collect();
    }
    for ids in tasks.batches() {
        let mut values = Values::new();
        let ids = values.bind_all(ids.iter().map(|task| task.0));
        let condition = sizes.condition(&mut values);
        let sql = format!(
            "SELECT {STEP_BYTES}, {columns} FROM steps s \
             WHERE s.account_id = $1 AND s.task IN ({ids}){condition} \
             ORDER BY s.task, s.position, s.fraction"
        );
        let statement = values.statement(sql, backend(db), account);
        steps.statements += 1;
        for row in db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            let bytes: i64 = row.take()?;
            let (step, place) = read_step(&mut row, account)?;
            let of_task = steps.by_task.entry(step.task).or_default();
            of_task.push((step, place));
            steps.count += 1;
            steps.bytes += usize::try_from(bytes).unwrap_or_default();
        }
    }
    Ok(steps)
}

fn assemble(
    task: Task,
    children: &mut BTreeMap<Option<TaskId>, Vec<Task>>,
    steps: &mut BTreeMap<TaskId, Vec<(Step, Place)>>,
) -> TaskTree {
    let managed = children.remove(&Some(task.guid)).unwrap_or_default();
    let own_steps = steps.remove(&task.guid).unwrap_or_default();
    let mut ordered = Vec::with_capacity(own_steps.len());
    let mut places = BTreeMap::new();
    for (step, place) in own_steps {
        places.insert(step.guid, place);
        ordered.push(step);
    }
    TaskTree {
        steps: ordered,
        places,
        managed: managed
            .into_iter()
            .map(|child| (child.guid, assemble(child, children, steps)))
            .collect(),
        task,
    }
}

impl Account {
    /// Reads a task tree in one transaction, so that it is one state of the database. A large
    /// one is read again under a permit.
    pub async fn export_task(&self, guid: TaskId) -> Result<TaskTree> {
        let account = self.clone();
        run_to_end(async move {
            match account.read_task_tree(guid, TaskTexts::Small).await {
                Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                    let _permit = account.large_read_permit(bytes).await?;
                    Ok(account.read_task_tree(guid, TaskTexts::All).await?)
                }
                tree => Ok(tree?),
            }
        })
        .await
    }

    /// Reads a tree in one transaction. Fails if its texts are larger than a message may be, or
    /// with [`StoreError::NeedsLargeReadPermit`] if it is large and only [`TaskTexts::Small`] may
    /// be read.
    async fn read_task_tree(&self, guid: TaskId, texts: TaskTexts) -> Result<TaskTree, StoreError> {
        let db = &self.reader().begin(TransactionMode::Snapshot).await?;
        let tasks = read_tasks(db, &self.id, &[guid], texts).await;
        if texts == TaskTexts::Small {
            let (ids, of_tasks) = match &tasks {
                Ok(tasks) => (tasks.ids.clone(), 0),
                Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                    (ids(db, &self.id, &[guid]).await?, *bytes)
                }
                Err(_) => (Vec::new(), 0),
            };
            let of_steps = step_bytes(db, &self.id, &ids, StepSizes::All).await?;
            let bytes = of_tasks.saturating_add(of_steps);
            let limit = self.max_message_bytes();
            if bytes > limit {
                let resource = SizedResource::Guide;
                return Err(Error::TooLarge { resource, limit }.into());
            }
            if bytes > LARGE_TREE_BYTES {
                return Err(StoreError::NeedsLargeReadPermit(bytes));
            }
        }
        let tasks = tasks?;
        let steps = read_steps(db, &self.id, &tasks, StepSizes::All).await?;
        let tree = tasks.with(steps).pop();
        Ok(tree.ok_or_else(|| Error::task_not_found(guid, "guid"))?)
    }
}

/// The bytes of steps of tasks.
pub async fn step_bytes(
    db: &impl ConnectionTrait,
    account: &AccountId,
    tasks: &[TaskId],
    sizes: StepSizes,
) -> Result<usize, StoreError> {
    let mut bytes = 0_usize;
    for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
        let mut values = Values::new();
        let ids = values.bind_all(tasks.iter().map(|task| task.0));
        let condition = sizes.condition(&mut values);
        let sql = format!(
            "SELECT CAST(COALESCE(SUM({STEP_BYTES}), 0) AS bigint) \
             FROM steps s WHERE s.account_id = $1 AND s.task IN ({ids}){condition}"
        );
        let statement = values.statement(sql, backend(db), account);
        if let Some(row) = db.query_one_raw(statement).await? {
            let size: i64 = RowReader::new(&row).take()?;
            bytes = bytes.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        }
    }
    Ok(bytes)
}
