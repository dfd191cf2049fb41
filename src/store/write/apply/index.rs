//! Acknowledgements of an external index, and the deletions that it must forget.

use sea_orm::{
    ColumnTrait, QueryFilter, QuerySelect, QueryTrait,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::{Tx, parts};
use crate::{
    domain::{changes::AcknowledgedItem, index_work::IndexKind},
    store::{
        entity::{index_deletion, step, task},
        error::StoreError,
        write::batch::Batch,
    },
};

/// Rows of tasks or steps that are deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Steps by their ids.
    Steps,
    /// All steps of tasks.
    StepsOfTasks,
    /// Tasks by their ids.
    Tasks,
}

impl Tx<'_> {
    /// Deletes rows by id, and records those that the index holds. No acknowledgement can come in
    /// between, because it locks the task, too.
    pub fn add_deletion(&self, deleted: Deleted, ids: Vec<Uuid>, batch: &mut Batch) {
        for ids in parts(&ids) {
            let count = ids.len() + 6;
            let mark = (self.context.new_id)();
            let mut note = Query::insert();
            note.into_table(index_deletion::Entity).columns([
                index_deletion::Column::AccountId,
                index_deletion::Column::Guid,
                index_deletion::Column::Task,
                index_deletion::Column::Kind,
                index_deletion::Column::Mark,
            ]);
            let (held, delete) = match deleted {
                Deleted::Steps | Deleted::StepsOfTasks => {
                    use step::{Column, Entity};
                    let by = match deleted {
                        Deleted::Steps => Column::Guid,
                        _ => Column::Task,
                    };
                    let held = self
                        .find::<Entity>()
                        .select_only()
                        .columns([Column::AccountId, Column::Guid, Column::Task])
                        .expr(Expr::value(IndexKind::Step.number()))
                        .expr(Expr::value(mark))
                        .filter(by.is_in(ids.clone()))
                        .filter(Column::Indexed.eq(true));
                    let delete = self.scope().delete::<Entity>().filter(by.is_in(ids));
                    (held.into_query(), delete.into_query())
                }
                Deleted::Tasks => {
                    use task::{Column, Entity};
                    let held = self
                        .find::<Entity>()
                        .select_only()
                        .column(Column::AccountId)
                        .column(Column::Guid)
                        .column_as(Column::Guid, "task")
                        .expr(Expr::value(IndexKind::Task.number()))
                        .expr(Expr::value(mark))
                        .filter(Column::Guid.is_in(ids.clone()))
                        .filter(Column::MvnIndexed.eq(true));
                    let delete = self.scope().delete::<Entity>();
                    (
                        held.into_query(),
                        delete.filter(Column::Guid.is_in(ids)).into_query(),
                    )
                }
            };
            // The note comes first: SQLite runs statements in their order.
            if note.select_from(held).is_ok() {
                batch.insert(note, count);
            }
            batch.delete(delete, count);
        }
    }

    /// Records what the index reports to hold. Rows that are written later become dirty again.
    pub async fn acknowledge(&self, items: Vec<AcknowledgedItem>) -> Result<(), StoreError> {
        let (mut held, mut not_held, mut deletions) = (vec![], vec![], vec![]);
        let mut batch = Batch::new(self);
        for AcknowledgedItem { kind, item } in items {
            match kind {
                Some(IndexKind::Task) => {
                    use task::{Column, Entity};
                    let update = self
                        .scope()
                        .update::<Entity>()
                        .col_expr(Column::DirtyRecord, Expr::value(false))
                        .col_expr(Column::MvnIndexed, Expr::value(item.indexed))
                        .col_expr(Column::MvnVersion, Expr::value(item.index_version))
                        .col_expr(Column::MvnInfo, Expr::value(item.info.into_string()))
                        .col_expr(Column::MvnTs, Expr::value(self.context.now.0))
                        .filter(Column::Guid.eq(item.guid));
                    batch.update(update.into_query(), 7);
                }
                Some(IndexKind::Step) if item.indexed => held.push(item.guid),
                Some(IndexKind::Step) => not_held.push(item.guid),
                None => deletions.push(item.guid),
            }
        }
        for (indexed, steps) in [(true, held), (false, not_held)] {
            use step::{Column, Entity};
            for ids in parts(&steps) {
                let count = ids.len() + 3;
                let update = self
                    .scope()
                    .update::<Entity>()
                    .col_expr(Column::DirtyRecord, Expr::value(false))
                    .col_expr(Column::Indexed, Expr::value(indexed))
                    .filter(Column::Guid.is_in(ids));
                batch.update(update.into_query(), count);
            }
        }
        self.add_forgotten(&deletions, &mut batch);
        batch.send(self).await
    }

    /// Forgets the deletions of tasks and steps that came back. The index may still hold their earlier
    /// states.
    pub async fn forget_index_deletions(&self, came_back: &[Uuid]) -> Result<(), StoreError> {
        let mut batch = Batch::new(self);
        for ids in parts(came_back) {
            let held = self
                .find::<index_deletion::Entity>()
                .select_only()
                .column(index_deletion::Column::Guid)
                .filter(index_deletion::Column::Guid.is_in(ids));
            let held = held.into_query();
            let tasks = self
                .scope()
                .update::<task::Entity>()
                .col_expr(task::Column::MvnIndexed, Expr::value(true))
                .filter(task::Column::Guid.in_subquery(held.clone()));
            tasks.exec(self.db()).await?;
            let steps = self
                .scope()
                .update::<step::Entity>()
                .col_expr(step::Column::Indexed, Expr::value(true))
                .filter(step::Column::Guid.in_subquery(held));
            steps.exec(self.db()).await?;
        }
        self.add_forgotten(came_back, &mut batch);
        batch.send(self).await
    }

    fn add_forgotten(&self, ids: &[Uuid], batch: &mut Batch) {
        for ids in parts(ids) {
            let count = ids.len() + 1;
            let delete = self.scope().delete::<index_deletion::Entity>();
            let delete = delete.filter(index_deletion::Column::Guid.is_in(ids));
            batch.delete(delete.into_query(), count);
        }
    }
}
