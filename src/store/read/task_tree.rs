//! Reads task trees: a task with its steps and the tasks that its linked observations manage. Imports,
//! exports and the history use them.

use std::collections::BTreeMap;

use sea_orm::ConnectionTrait;
use uuid::Uuid;

use super::{
    MAX_TASKS_PER_STATEMENT,
    steps::{self, Bodies, steps_by_subtask},
    tasks::{self, task_sizes},
};
use crate::{
    domain::{
        Error, Result, SizedResource,
        history::TranslatedFrom,
        ids::{AccountId, StepId, TaskId},
        import::TaskTree,
        translation::Language,
    },
    store::{
        Account,
        account::Scope,
        entity::task,
        error::StoreError,
        rows::{StepRows, TaskRows, read_digest, read_step, read_task},
    },
};

/// The ids of tasks and of all tasks managed below them, sorted.
pub async fn ids(
    scope: Scope<'_, impl ConnectionTrait>,
    roots: &[TaskId],
) -> Result<Vec<TaskId>, StoreError> {
    let sizes = find_tasks(scope, roots).await?;
    Ok(sizes.into_keys().map(TaskId).collect())
}

/// The same tasks with their bytes. Reads one level of tasks at a time.
async fn find_tasks(
    scope: Scope<'_, impl ConnectionTrait>,
    roots: &[TaskId],
) -> Result<BTreeMap<Uuid, i64>, StoreError> {
    let mut sizes = BTreeMap::new();
    let roots = roots.iter().map(|root| root.0);
    let mut level = task_sizes(scope, task::Column::Guid, roots).await?;
    while !level.is_empty() {
        // A root may be managed below another root.
        level.retain(|task| sizes.insert(task.guid, task.size).is_none());
        let level_ids = level.into_iter().map(|task| task.guid);
        level = task_sizes(scope, task::Column::ParentGuid, level_ids).await?;
    }
    Ok(sizes)
}

/// Reads the trees of tasks with all texts, and what their outdated translations were made from. A
/// managed task is part of the tree of the task that manages it. The caller ensures that the statements
/// read one state.
pub async fn read_trees(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[TaskId],
) -> Result<(Vec<TaskTree>, TranslatedFrom), StoreError> {
    let mut ids: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
    ids.sort_unstable();
    let mut outdated = TranslatedFrom::default();
    let mut by_parent: BTreeMap<Option<Uuid>, Vec<TaskTree>> = BTreeMap::new();
    for part in ids.chunks(MAX_TASKS_PER_STATEMENT) {
        let mut steps = steps::find_rows(scope, part).await?;
        for task in tasks::find_rows(scope, part, Vec::new()).await? {
            let parent = task.0.parent_guid;
            let parent = parent.filter(|parent| ids.binary_search(parent).is_ok());
            let steps = steps.remove(&task.0.guid).unwrap_or_default();
            add_outdated(&mut outdated, &task, &steps)?;
            by_parent
                .entry(parent)
                .or_default()
                .push(build_tree(scope.account, task, steps)?);
        }
    }
    Ok((trees_below(None, &mut by_parent), outdated))
}

/// Adds the outdated translations of a task and its steps.
fn add_outdated(
    outdated: &mut TranslatedFrom,
    (task, translations): &TaskRows,
    steps: &[StepRows],
) -> Result<(), StoreError> {
    let outdated_names = translations.iter();
    let outdated_names =
        outdated_names.filter(|translation| translation.translated_from_name != task.name);
    outdated.tasks.extend(outdated_names.map(|translation| {
        let language = Language::stored(translation.language.clone());
        let key = (TaskId(task.guid), language);
        (key, translation.translated_from_name.clone())
    }));
    for (step, translations) in steps {
        let source = (&step.title, &step.rest_digest);
        for translation in translations {
            let title = &translation.translated_from_title;
            let rest = &translation.translated_from_rest;
            if (title, rest) != source {
                let language = Language::stored(translation.language.clone());
                let rest = read_digest(rest.clone(), "translated_from_rest")?;
                let key = (StepId(step.guid), language);
                outdated.steps.insert(key, (title.clone(), rest));
            }
        }
    }
    Ok(())
}

/// A task with its steps, without the tasks that it manages.
fn build_tree(
    account: &AccountId,
    task: TaskRows,
    steps: Vec<StepRows>,
) -> Result<TaskTree, StoreError> {
    let ids = steps.iter().map(|(step, _)| StepId(step.guid)).collect();
    let mut tree = TaskTree {
        task: read_task(account, task, ids)?,
        steps: Vec::with_capacity(steps.len()),
        places: BTreeMap::new(),
        managed: BTreeMap::new(),
    };
    for rows in steps {
        let (step, place) = read_step(account, rows)?;
        tree.places.insert(step.guid, place);
        tree.steps.push(step);
    }
    Ok(tree)
}

/// The trees of the tasks that a task manages, or of the roots.
fn trees_below(
    parent: Option<Uuid>,
    by_parent: &mut BTreeMap<Option<Uuid>, Vec<TaskTree>>,
) -> Vec<TaskTree> {
    let mut trees = by_parent.remove(&parent).unwrap_or_default();
    for tree in &mut trees {
        let managed = trees_below(Some(tree.task.guid.0), by_parent).into_iter();
        tree.managed = managed.map(|tree| (tree.task.guid, tree)).collect();
    }
    trees
}

impl Account {
    /// Reads a task tree. Fails if its texts are larger than a message may be.
    pub async fn export_task(&self, guid: TaskId) -> Result<TaskTree> {
        let limit = self.max_message_bytes();
        self.read_snapshot(|snapshot, max_bytes| async move {
            let scope = snapshot.scope();
            let tasks = find_tasks(scope, &[guid]).await?;
            let ids: Vec<Uuid> = tasks.keys().copied().collect();
            let steps = steps_by_subtask(scope, &ids, Bodies::Read).await?;
            let step_bytes = steps.iter().map(|steps| steps.bytes);
            let bytes: i64 = tasks.values().copied().chain(step_bytes).sum();
            if usize::try_from(bytes).is_ok_and(|bytes| bytes > limit) {
                let resource = SizedResource::Guide;
                return Err(Error::TooLarge { resource, limit }.into());
            }
            max_bytes.check(bytes)?;
            let ids: Vec<TaskId> = tasks.into_keys().map(TaskId).collect();
            let (mut trees, _) = read_trees(scope, &ids).await?;
            let tree = trees.pop();
            Ok(tree.ok_or_else(|| Error::task_not_found(guid, "guid"))?)
        })
        .await
    }
}
