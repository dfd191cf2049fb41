//! Deleted steps that can be restored. The database copies them, so no body is read.

use sea_orm::{
    ColumnTrait, IdenStatic, Iterable, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Alias, Expr, IntoIden, Query},
};
use uuid::Uuid;

use super::Batch;
use crate::{
    domain::changes::{KeptStep, StepDeletion},
    store::entity::{
        AccountEntity,
        deleted_step::{Column, Entity},
        deleted_step_translation, step, step_translation,
    },
};

impl Batch<'_> {
    /// Keeps a step that the write deletes, if deleted steps are kept. This comes before the
    /// deletion: SQLite runs statements in their order.
    pub fn keep_step(&mut self, deletion: &StepDeletion) {
        let StepDeletion { step, task, kept } = deletion;
        let Some(KeptStep {
            place,
            is_translated,
        }) = kept
        else {
            return;
        };
        let context = &self.tx.context;
        let previous = self
            .tx
            .find::<step::Entity>()
            .select_only()
            .column(step::Column::Guid)
            .filter(step::Column::Task.eq(task.0))
            .filter(step::Column::Position.lt(place.0))
            .order_by_desc(step::Column::Position)
            .limit(1);
        let deletion = [
            (Column::DeletedTs, Expr::value(context.now.0)),
            (Column::DeletedBy, Expr::value(context.subject.as_str())),
            (Column::PreviousStep, previous.into_query().into()),
        ];
        let is_step = step::Column::Guid.eq(step.0);
        self.copy_rows::<step::Entity, Entity>(is_step, deletion);
        if *is_translated {
            use deleted_step_translation::Entity;
            let is_translation = step_translation::Column::Step.eq(step.0);
            self.copy_rows::<step_translation::Entity, Entity>(is_translation, []);
        }
    }

    /// Copies rows to a table that has the same columns and others.
    fn copy_rows<From: AccountEntity, To: AccountEntity>(
        &mut self,
        filter: Expr,
        others: impl IntoIterator<Item = (To::Column, Expr)>,
    ) {
        let mut rows = self.tx.find::<From>().filter(filter).select_only();
        let mut columns = Vec::new();
        for column in From::Column::iter() {
            rows = rows.column(column);
            columns.push(Alias::new(column.as_str()).into_iden());
        }
        for (column, value) in others {
            rows = rows.expr(value);
            columns.push(column.into_iden());
        }
        let mut copy = Query::insert();
        copy.into_table(To::default()).columns(columns);
        if copy.select_from(rows.into_query()).is_ok() {
            self.add_statement(copy);
        }
    }

    /// Forgets the deletions of steps that came back.
    pub fn forget_deleted_steps(&mut self, came_back: &[Uuid]) {
        let deletions = self.tx.scope().delete::<Entity>();
        self.add_by_ids(deletions, Column::Guid, came_back.iter().copied());
    }
}
