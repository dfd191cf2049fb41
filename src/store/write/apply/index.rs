//! Deletions that an external index must forget.

use sea_orm::{
    ColumnTrait, QueryFilter, QuerySelect, QueryTrait,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::Batch;
use crate::{
    domain::index_work::IndexKind,
    store::{
        entity::{AccountEntity, index_deletion, step, task},
        read::MAX_IDS_PER_STATEMENT,
    },
};

impl Batch<'_> {
    /// Deletes steps by their own ids or by the ids of their tasks.
    pub fn delete_steps(&mut self, by: step::Column, ids: impl IntoIterator<Item = Uuid>) {
        use step::Column;
        let columns = [Column::Guid, Column::Task, Column::Indexed];
        self.delete_indexed::<step::Entity>(IndexKind::Step, columns, by, ids);
    }

    pub fn delete_task(&mut self, id: Uuid) {
        use task::Column;
        let columns = [Column::Guid, Column::Guid, Column::MvnIndexed];
        self.delete_indexed::<task::Entity>(IndexKind::Task, columns, Column::Guid, [id]);
    }

    /// Deletes rows, and records those that the index holds. No acknowledgement can come in between,
    /// because it locks the task, too.
    fn delete_indexed<E: AccountEntity>(
        &mut self,
        kind: IndexKind,
        [guid, task, indexed]: [E::Column; 3],
        by: E::Column,
        ids: impl IntoIterator<Item = Uuid>,
    ) {
        use index_deletion::{Column, Entity};
        let ids = Vec::from_iter(ids);
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let is_deleted = by.is_in(ids.iter().copied());
            let held = self
                .tx
                .find::<E>()
                .select_only()
                .column(E::ACCOUNT)
                .expr(Expr::col(guid))
                .expr(Expr::col(task))
                .expr(Expr::value(kind.number()))
                .expr(Expr::value((self.tx.context.new_id)()))
                .filter(is_deleted.clone())
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
                self.add_statement(note);
            }
            self.add(self.tx.scope().delete::<E>().filter(is_deleted));
        }
    }

    /// Forgets the deletions of tasks and steps that came back. The index may still hold their earlier
    /// states.
    pub fn forget_index_deletions(&mut self, came_back: &[Uuid]) {
        use index_deletion::{Column, Entity};
        let held = self.tx.find::<Entity>().select_only().column(Column::Guid);
        for ids in came_back.chunks(MAX_IDS_PER_STATEMENT) {
            let held = held.clone().filter(Column::Guid.is_in(ids.iter().copied()));
            let held = held.into_query();
            let tasks = self.tx.scope().update::<task::Entity>();
            let tasks = tasks.col_expr(task::Column::MvnIndexed, Expr::value(true));
            self.add(tasks.filter(task::Column::Guid.in_subquery(held.clone())));
            let steps = self.tx.scope().update::<step::Entity>();
            let steps = steps.col_expr(step::Column::Indexed, Expr::value(true));
            self.add(steps.filter(step::Column::Guid.in_subquery(held)));
        }
        self.delete_index_deletions(came_back.iter().copied());
    }

    pub fn delete_index_deletions(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        let deletions = self.tx.scope().delete::<index_deletion::Entity>();
        self.add_by_ids(deletions, index_deletion::Column::Guid, ids);
    }
}
