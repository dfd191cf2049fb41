//! Reads a task tree: a task with its steps and the tasks that its linked observations manage. Imports
//! and exports use it.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{
    ColumnTrait, ConnectionTrait, ExprTrait, JoinType, QueryFilter, QueryOrder, QuerySelect,
    RelationTrait, sea_query::Expr,
};
use uuid::Uuid;

use super::{
    MAX_IDS_PER_STATEMENT, Texts,
    steps::{self, Bodies},
    tasks,
};
use crate::{
    domain::{
        Error, Result, SizedResource,
        history::TranslatedFrom,
        ids::{StepId, TaskId},
        import::TaskTree,
        order::Place,
        step::Step,
        task::Task,
        translation::Language,
    },
    store::{
        Account,
        account::Scope,
        entity::{step, step_translation, task, task_translation},
        error::StoreError,
        rows::read_digest,
    },
};

/// A tree with more bytes is large: it is read under a permit.
pub const LARGE_TREE_BYTES: usize = 2 * 1024 * 1024;

/// The ids of tasks and of all tasks managed below them, sorted.
pub async fn ids(
    scope: Scope<'_, impl ConnectionTrait>,
    roots: &[TaskId],
) -> Result<Vec<TaskId>, StoreError> {
    let sizes = task_sizes(scope, roots).await?;
    Ok(sizes.into_keys().map(TaskId).collect())
}

/// The same tasks with their bytes. Reads one level of tasks at a time.
async fn task_sizes(
    scope: Scope<'_, impl ConnectionTrait>,
    roots: &[TaskId],
) -> Result<BTreeMap<Uuid, i64>, StoreError> {
    let mut sizes = BTreeMap::new();
    let mut level: Vec<Uuid> = roots.iter().map(|root| root.0).collect();
    let mut level_column = task::Column::Guid;
    while !level.is_empty() {
        let mut found = Vec::new();
        for ids in level.chunks(MAX_IDS_PER_STATEMENT) {
            let rows: Vec<(Uuid, i64)> = scope
                .find::<task::Entity>()
                .select_only()
                .columns([task::Column::Guid, task::Column::Size])
                .filter(level_column.is_in(ids.iter().copied()))
                .into_tuple()
                .all(scope.db)
                .await?;
            found.extend(rows);
        }
        // A root may be managed below another one.
        found.retain(|(task, bytes)| sizes.insert(*task, *bytes).is_none());
        level = found.into_iter().map(|(task, _)| task).collect();
        level_column = task::Column::ParentGuid;
    }
    Ok(sizes)
}

/// The bytes of the steps of tasks.
pub async fn step_bytes(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[TaskId],
) -> Result<usize, StoreError> {
    let mut bytes = 0_usize;
    for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
        let sums: Vec<Option<i64>> = scope
            .find::<step::Entity>()
            .select_only()
            .expr(steps::step_bytes().sum().cast_as("bigint"))
            .filter(step::Column::Task.is_in(tasks.iter().map(|task| task.0)))
            .into_tuple()
            .all(scope.db)
            .await?;
        for sum in sums.into_iter().flatten() {
            bytes = bytes.saturating_add(usize::try_from(sum).unwrap_or(usize::MAX));
        }
    }
    Ok(bytes)
}

/// Reads the trees of tasks with all texts. The tasks and their steps are locked. A managed task is part
/// of the tree of the task that manages it.
pub async fn read_trees(
    scope: Scope<'_, impl ConnectionTrait>,
    locked: &[TaskId],
) -> Result<Vec<TaskTree>, StoreError> {
    let tasks = read_tasks(scope, locked).await?;
    Ok(assemble(tasks, read_steps(scope, locked).await?))
}

/// The tasks, without the ids of their steps.
async fn read_tasks(
    scope: Scope<'_, impl ConnectionTrait>,
    ids: &[TaskId],
) -> Result<Vec<Task>, StoreError> {
    let mut tasks = Vec::with_capacity(ids.len());
    for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
        let rows = scope
            .find::<task::Entity>()
            .filter(task::Column::Guid.is_in(ids.iter().map(|id| id.0)))
            .all(scope.db)
            .await?;
        tasks.extend(tasks::without_steps(scope, rows).await?);
    }
    Ok(tasks)
}

/// The steps of each task in their order, with their places.
type StepsOfTasks = BTreeMap<TaskId, Vec<(Step, Place)>>;

async fn read_steps(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[TaskId],
) -> Result<StepsOfTasks, StoreError> {
    let mut by_task = StepsOfTasks::new();
    for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
        let rows = scope
            .find::<step::Entity>()
            .filter(step::Column::Task.is_in(tasks.iter().map(|task| task.0)))
            .order_by_asc(step::Column::Task)
            .order_by_asc(step::Column::Position)
            .all(scope.db)
            .await?;
        for (step, place) in steps::with_translations(scope, rows, Bodies::Read).await? {
            by_task.entry(step.task).or_default().push((step, place));
        }
    }
    Ok(by_task)
}

/// The trees of tasks and their steps.
fn assemble(tasks: Vec<Task>, mut steps: StepsOfTasks) -> Vec<TaskTree> {
    let ids: BTreeSet<TaskId> = tasks.iter().map(|task| task.guid).collect();
    let mut by_parent: BTreeMap<Option<TaskId>, Vec<Task>> = BTreeMap::new();
    for task in tasks {
        let parent = task.managed.map(|managed| managed.parent);
        let parent = parent.filter(|parent| ids.contains(parent));
        by_parent.entry(parent).or_default().push(task);
    }
    trees_below(None, &mut by_parent, &mut steps)
}

/// The trees of the tasks that a task manages, or of the roots.
fn trees_below(
    parent: Option<TaskId>,
    by_parent: &mut BTreeMap<Option<TaskId>, Vec<Task>>,
    steps: &mut StepsOfTasks,
) -> Vec<TaskTree> {
    let tasks = by_parent.remove(&parent).unwrap_or_default();
    let trees = tasks.into_iter().map(|mut task| {
        let placed = steps.remove(&task.guid).unwrap_or_default();
        task.steps = placed.iter().map(|(step, _)| step.guid).collect();
        let places = placed.iter().map(|(step, place)| (step.guid, *place));
        let managed = trees_below(Some(task.guid), by_parent, steps).into_iter();
        TaskTree {
            places: places.collect(),
            steps: placed.into_iter().map(|(step, _)| step).collect(),
            managed: managed.map(|tree| (tree.task.guid, tree)).collect(),
            task,
        }
    });
    trees.collect()
}

/// What outdated translations of the tasks and steps of trees were made from. Trees without
/// translations need no statement.
pub async fn outdated_translations<'t>(
    scope: Scope<'_, impl ConnectionTrait>,
    trees: impl IntoIterator<Item = &'t TaskTree>,
) -> Result<TranslatedFrom, StoreError> {
    let mut translated = Translated::default();
    trees.into_iter().for_each(|tree| translated.add(tree));
    let mut outdated = TranslatedFrom::default();
    for tasks in translated.tasks.chunks(MAX_IDS_PER_STATEMENT) {
        use task_translation::{Column, Relation};
        let rows: Vec<(Uuid, String, String)> = scope
            .find::<task_translation::Entity>()
            .join(JoinType::InnerJoin, Relation::Task.def())
            .select_only()
            .columns([Column::Task, Column::Language, Column::TranslatedFromName])
            .filter(Column::Task.is_in(tasks.iter().copied()))
            .filter(differ(Column::TranslatedFromName, task::Column::Name))
            .into_tuple()
            .all(scope.db)
            .await?;
        for (task, language, name) in rows {
            let key = (TaskId(task), Language::stored(language));
            outdated.tasks.insert(key, name);
        }
    }
    for steps in translated.steps.chunks(MAX_IDS_PER_STATEMENT) {
        use step_translation::{Column, Relation};
        let other_title = differ(Column::TranslatedFromTitle, step::Column::Title);
        let other_rest = differ(Column::TranslatedFromRest, step::Column::RestDigest);
        let rows: Vec<(Uuid, String, String, Vec<u8>)> = scope
            .find::<step_translation::Entity>()
            .join(JoinType::InnerJoin, Relation::Step.def())
            .select_only()
            .columns([
                Column::Step,
                Column::Language,
                Column::TranslatedFromTitle,
                Column::TranslatedFromRest,
            ])
            .filter(Column::Step.is_in(steps.iter().copied()))
            .filter(other_title.or(other_rest))
            .into_tuple()
            .all(scope.db)
            .await?;
        for (step, language, title, rest) in rows {
            let key = (StepId(step), Language::stored(language));
            let rest = read_digest(rest, "translated_from_rest")?;
            outdated.steps.insert(key, (title, rest));
        }
    }
    Ok(outdated)
}

fn differ(column: impl ColumnTrait, other: impl ColumnTrait) -> Expr {
    column.into_expr().ne(other.into_expr())
}

/// The tasks and steps of trees that have translations.
#[derive(Default)]
struct Translated {
    tasks: Vec<Uuid>,
    steps: Vec<Uuid>,
}

impl Translated {
    fn add(&mut self, tree: &TaskTree) {
        if !tree.task.content.translations.is_empty() {
            self.tasks.push(tree.task.guid.0);
        }
        let steps = tree.steps.iter();
        let translated = steps.filter(|step| !step.content.translations.is_empty());
        self.steps.extend(translated.map(|step| step.guid.0));
        tree.managed.values().for_each(|tree| self.add(tree));
    }
}

impl Account {
    /// Reads a task tree. Fails if its texts are larger than a message may be.
    pub async fn export_task(&self, guid: TaskId) -> Result<TaskTree> {
        let limit = self.max_message_bytes();
        self.read_snapshot(move |snapshot, texts| async move {
            let scope = snapshot.scope();
            let sizes = task_sizes(scope, &[guid]).await?;
            let ids: Vec<TaskId> = sizes.keys().copied().map(TaskId).collect();
            let of_tasks = usize::try_from(sizes.values().sum::<i64>()).unwrap_or(usize::MAX);
            let bytes = of_tasks.saturating_add(step_bytes(scope, &ids).await?);
            if bytes > limit {
                let resource = SizedResource::Guide;
                return Err(Error::TooLarge { resource, limit }.into());
            }
            if texts == Texts::Small && bytes > LARGE_TREE_BYTES {
                return Err(StoreError::NeedsLargeReadPermit(bytes));
            }
            let tasks = read_tasks(scope, &ids).await?;
            let steps = read_steps(scope, &ids).await?;
            let tree = assemble(tasks, steps).pop();
            Ok(tree.ok_or_else(|| Error::task_not_found(guid, "guid"))?)
        })
        .await
    }
}
