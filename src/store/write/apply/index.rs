//! Deletions that an external index must forget.

use sea_orm::{
    ColumnTrait, QueryFilter, QuerySelect, QueryTrait,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::{Tx, parts};
use crate::{
    domain::index_work::IndexKind,
    store::{
        entity::{AccountEntity, index_deletion, step, task},
        write::batch::Batch,
    },
};

impl Tx<'_> {
    /// Deletes steps by their own ids or by the ids of their tasks.
    pub fn delete_steps(&self, by: step::Column, ids: Vec<Uuid>, batch: &mut Batch) {
        use step::Column;
        let columns = [Column::Guid, Column::Task, Column::Indexed];
        self.delete_indexed::<step::Entity>(IndexKind::Step, columns, by, ids, batch);
    }

    pub fn delete_task(&self, id: Uuid, batch: &mut Batch) {
        use task::Column;
        let columns = [Column::Guid, Column::Guid, Column::MvnIndexed];
        self.delete_indexed::<task::Entity>(
            IndexKind::Task,
            columns,
            Column::Guid,
            vec![id],
            batch,
        );
    }

    /// Deletes rows, and records those that the index holds. No acknowledgement can come in between,
    /// because it locks the task, too.
    fn delete_indexed<E: AccountEntity>(
        &self,
        kind: IndexKind,
        [guid, task, indexed]: [E::Column; 3],
        by: E::Column,
        ids: Vec<Uuid>,
        batch: &mut Batch,
    ) {
        use index_deletion::{Column, Entity};
        for ids in parts(&ids) {
            let held = self
                .find::<E>()
                .select_only()
                .column(E::ACCOUNT)
                .expr(Expr::col(guid))
                .expr(Expr::col(task))
                .expr(Expr::value(kind.number()))
                .expr(Expr::value((self.context.new_id)()))
                .filter(by.is_in(ids.clone()))
                .filter(indexed.eq(true));
            let mut note = Query::insert();
            note.into_table(Entity).columns([
                Column::AccountId,
                Column::Guid,
                Column::Task,
                Column::Kind,
                Column::Mark,
            ]);
            // The note comes first: SQLite runs statements in their order.
            if note.select_from(held.into_query()).is_ok() {
                batch.add(note);
            }
            let delete = self.scope().delete::<E>();
            batch.add(delete.filter(by.is_in(ids)).into_query());
        }
    }

    /// Forgets the deletions of tasks and steps that came back. The index may still hold their earlier
    /// states.
    pub fn forget_index_deletions(&self, came_back: &[Uuid], batch: &mut Batch) {
        for ids in parts(came_back) {
            let held = self
                .find::<index_deletion::Entity>()
                .select_only()
                .column(index_deletion::Column::Guid)
                .filter(index_deletion::Column::Guid.is_in(ids))
                .into_query();
            let tasks = self
                .scope()
                .update::<task::Entity>()
                .col_expr(task::Column::MvnIndexed, Expr::value(true))
                .filter(task::Column::Guid.in_subquery(held.clone()));
            batch.add(tasks.into_query());
            let steps = self
                .scope()
                .update::<step::Entity>()
                .col_expr(step::Column::Indexed, Expr::value(true))
                .filter(step::Column::Guid.in_subquery(held));
            batch.add(steps.into_query());
        }
        self.delete_index_deletions(came_back, batch);
    }

    pub fn delete_index_deletions(&self, ids: &[Uuid], batch: &mut Batch) {
        for ids in parts(ids) {
            let delete = self.scope().delete::<index_deletion::Entity>();
            let delete = delete.filter(index_deletion::Column::Guid.is_in(ids));
            batch.add(delete.into_query());
        }
    }
}
