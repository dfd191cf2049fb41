//! Records the deletions that an external index must learn about.

use sea_orm::{
    ColumnTrait, ExprTrait, QueryFilter, QuerySelect, QueryTrait,
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
        let columns = [Column::Guid, Column::Task, Column::Indexed, Column::Listed];
        self.delete_indexed::<step::Entity>(IndexKind::Step, columns, by, ids);
    }

    pub fn delete_task(&mut self, id: Uuid) {
        use task::Column;
        let columns = [
            Column::Guid,
            Column::Guid,
            Column::MvnIndexed,
            Column::Listed,
        ];
        self.delete_indexed::<task::Entity>(IndexKind::Task, columns, Column::Guid, [id]);
    }

    /// Deletes rows, and records those that the index may hold. Nothing can be listed or acknowledged in
    /// between, because that locks the task, too.
    fn delete_indexed<E: AccountEntity>(
        &mut self,
        kind: IndexKind,
        [guid, task, indexed, listed]: [E::Column; 4],
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
                .expr(Expr::value(kind as i32))
                .expr(Expr::col(indexed))
                .expr(Expr::value((self.tx.context.new_id)()))
                .filter(is_deleted.clone())
                .filter(indexed.eq(true).or(listed.eq(true)));
            let mut note = Query::insert();
            note.into_table(Entity).columns([
                Column::AccountId,
                Column::Guid,
                Column::Task,
                Column::Kind,
                Column::Indexed,
                Column::Mark,
            ]);
            // The record comes first, because SQLite runs the statements in order.
            if note.select_from(held.into_query()).is_ok() {
                self.add_statement(note);
            }
            self.add(self.tx.scope().delete::<E>().filter(is_deleted));
        }
    }

    /// Forgets the deletions of tasks and steps that came back. The index may still hold their earlier
    /// states, so they are marked again.
    pub fn forget_index_deletions(&mut self, came_back: &[Uuid]) {
        use index_deletion::{Column, Entity};
        let noted = self.tx.find::<Entity>().select_only().column(Column::Guid);
        for ids in came_back.chunks(MAX_IDS_PER_STATEMENT) {
            let noted = noted
                .clone()
                .filter(Column::Guid.is_in(ids.iter().copied()));
            let indexed = noted.clone().filter(Column::Indexed.eq(true)).into_query();
            let (noted, tasks) = (noted.into_query(), self.tx.scope().update::<task::Entity>());
            let by_id = task::Column::Guid;
            let was_indexed = by_id.in_subquery(indexed.clone());
            let tasks = tasks
                .col_expr(task::Column::Listed, Expr::value(true))
                .col_expr(task::Column::MvnIndexed, was_indexed);
            self.add(tasks.filter(by_id.in_subquery(noted.clone())));
            let by_id = step::Column::Guid;
            let steps = self.tx.scope().update::<step::Entity>();
            let steps = steps
                .col_expr(step::Column::Listed, Expr::value(true))
                .col_expr(step::Column::Indexed, by_id.in_subquery(indexed));
            self.add(steps.filter(by_id.in_subquery(noted)));
        }
        self.delete_index_deletions(came_back.iter().copied());
    }

    pub fn delete_index_deletions(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        let deletions = self.tx.scope().delete::<index_deletion::Entity>();
        self.add_by_ids(deletions, index_deletion::Column::Guid, ids);
    }
}
