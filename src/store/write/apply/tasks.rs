use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ExprTrait, QueryFilter, QueryTrait,
    sea_query::{Expr, Func, OnConflict},
};

use super::{Tx, index::Deleted, set_changed, translations::Rows};
use crate::{
    domain::{
        changes::{Changes, RoleChange, StepListChange, TaskChange},
        history::TranslatedFrom,
        ids::{StepId, TaskId},
        text::Name,
    },
    store::{
        entity::{role, step, task},
        error::StoreError,
        rows::task_row,
        write::batch::Batch,
    },
};

/// The tasks that get another name, with that name.
pub fn names_of_renamed(changes: &Changes) -> Vec<(TaskId, Name)> {
    let tasks = changes.tasks.iter();
    let renamed = tasks.filter_map(|change| match change {
        TaskChange::Update { after, .. } if changes.renamed.contains(&after.guid) => {
            Some((after.guid, after.name.clone()))
        }
        _ => None,
    });
    renamed.collect()
}

impl Tx<'_> {
    /// Inserts and updates tasks, and returns the deleted ones.
    pub fn put_tasks(
        &self,
        tasks: Vec<TaskChange>,
        translations: &mut Rows,
        translated_from: &TranslatedFrom,
        batch: &mut Batch,
    ) -> Vec<(TaskId, Vec<StepId>)> {
        let (mut created, mut updated, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for change in tasks {
            match change {
                TaskChange::Create(task) => {
                    translations.add_task(None, &task, translated_from);
                    created.push(task_row(&task));
                }
                TaskChange::Update { before, after } => {
                    translations.add_task(Some(&before), &after, translated_from);
                    updated.push((before, after));
                }
                TaskChange::Delete { task, steps } => deleted.push((task, steps)),
            }
        }
        batch.insert_rows(created, None);
        if let [(before, after)] = updated.as_slice() {
            let row = task::ActiveModel {
                // An index may have cleared it since.
                dirty_record: Set(after.row_version.dirty),
                ..set_changed(&task_row(before), task_row(after))
            };
            let update = self.scope().update::<task::Entity>().set(row);
            let update = update.filter(task::Column::Guid.eq(after.guid.0));
            batch.update(update.into_query(), 25);
        } else {
            let rows = updated.iter().map(|(_, after)| task_row(after));
            batch.insert_rows(rows.collect(), Some(updating_tasks()));
        }
        deleted
    }

    /// Changes the lists of steps of tasks.
    pub fn change_step_lists(&self, lists: Vec<StepListChange>, batch: &mut Batch) {
        use task::Column;
        for list in lists {
            let StepListChange {
                task,
                added,
                numbering,
            } = list;
            let mut update = self
                .scope()
                .update::<task::Entity>()
                .col_expr(Column::StepCount, Expr::col(Column::StepCount).add(added))
                .col_expr(Column::Version, Expr::col(Column::Version).add(1))
                .col_expr(Column::DirtyRecord, Expr::value(true))
                .col_expr(Column::ModifiedTs, Expr::value(self.context.now.0));
            if let Some(numbering) = numbering {
                update = update
                    .col_expr(Column::LastPosition, Expr::value(numbering.last_position))
                    .col_expr(Column::OrderEpoch, Expr::value(numbering.epoch));
            }
            let update = update.filter(Column::Guid.eq(task.0));
            batch.update(update.into_query(), 8);
        }
    }

    /// Deletes tasks with their steps.
    pub async fn delete_tasks(&self, tasks: Vec<(TaskId, Vec<StepId>)>) -> Result<(), StoreError> {
        for (task, steps) in tasks {
            let mut batch = Batch::new(self);
            if !steps.is_empty() {
                self.add_deletion(Deleted::StepsOfTasks, vec![task.0], &mut batch);
            }
            self.add_deletion(Deleted::Tasks, vec![task.0], &mut batch);
            batch.send(self).await?;
        }
        Ok(())
    }

    /// Gives subtask steps, which are locked, the new names of the tasks that they refer to.
    pub async fn update_subtask_titles(&self, names: &[(TaskId, Name)]) -> Result<(), StoreError> {
        use step::Column;
        for (task, name) in names {
            let name = name.as_str();
            let bytes = i64::try_from(name.len()).unwrap_or(i64::MAX);
            let old_bytes = Func::cust("octet_length").arg(Expr::col(Column::Title));
            self.scope()
                .update::<step::Entity>()
                .col_expr(Column::Title, Expr::value(name))
                .col_expr(
                    Column::Size,
                    Expr::col(Column::Size).add(bytes).sub(old_bytes),
                )
                .col_expr(Column::Version, Expr::col(Column::Version).add(1))
                .col_expr(Column::DirtyRecord, Expr::value(true))
                .col_expr(Column::ModifiedTs, Expr::value(self.context.now.0))
                .filter(Column::SubtaskId.eq(task.0))
                .filter(Column::Title.ne(name))
                .exec(self.db())
                .await?;
        }
        Ok(())
    }

    pub fn change_role(&self, change: RoleChange, batch: &mut Batch) {
        match change {
            RoleChange::Create(id, name) => {
                let row = role::ActiveModel {
                    account_id: Set(self.context.account.as_str().to_owned()),
                    id: Set(id.0),
                    name: Set(name.into_string()),
                };
                batch.insert_rows(vec![row], None);
            }
            RoleChange::Delete(id) => {
                let delete = self.scope().delete::<role::Entity>();
                batch.delete(delete.filter(role::Column::Id.eq(id.0)).into_query(), 2);
            }
        }
    }
}

/// Updates what an update may change of a task.
fn updating_tasks() -> OnConflict {
    use sea_orm::Iterable;
    use task::Column;
    let fixed = |column: &Column| {
        matches!(
            column,
            Column::AccountId | Column::Guid | Column::ProductId | Column::CreatedTs
        )
    };
    OnConflict::columns([Column::AccountId, Column::Guid])
        .update_columns(Column::iter().filter(|column| !fixed(column)))
        .to_owned()
}
