use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, ExprTrait, IntoActiveModel, QueryFilter, QueryTrait, UpdateMany,
    sea_query::Expr,
};

use super::{Tx, parts, translations::Rows};
use crate::{
    domain::{
        changes::{StepChange, StepListChange},
        history::TranslatedFrom,
        ids::{AccountId, StepId},
        order::Place,
    },
    store::{
        entity::{
            step::{self, Column},
            task,
        },
        error::StoreError,
        rows::step_row,
        write::batch::Batch,
    },
};

impl Tx<'_> {
    /// Inserts and updates steps. Bodies are written only when one of them has changed.
    pub fn put_steps(
        &self,
        steps: Vec<StepChange>,
        translations: &mut Rows,
        translated_from: &TranslatedFrom,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let (mut created, mut updated) = (Vec::new(), Vec::new());
        let mut same_bodies = true;
        for change in steps {
            let StepChange {
                before,
                after,
                place,
            } = change;
            translations.add_step(before.as_deref(), &after, translated_from);
            let after = step_row(*after, place)?;
            let Some(before) = before else {
                created.push(after);
                continue;
            };
            let before = step_row(*before, place)?;
            same_bodies &= before.body == after.body;
            let before = step::ActiveModel {
                body: NotSet,
                // The step may have been elsewhere.
                position: NotSet,
                // An index may have cleared it since.
                dirty_record: NotSet,
                ..before
            };
            updated.push((before, after));
        }
        if same_bodies {
            updated
                .iter_mut()
                .for_each(|(_, after)| after.body = NotSet);
        }
        self.update_rows::<step::Entity>(updated, Column::Guid, batch);
        // Without ON CONFLICT, with which PostgreSQL searches the key of each row once more and logs its
        // insertion twice.
        batch.insert(created);
        Ok(())
    }

    /// Changes the lists of steps of tasks.
    pub fn change_step_lists(&self, lists: Vec<StepListChange>, batch: &mut Batch) {
        use task::Column;
        for list in lists {
            let mut update = self
                .scope()
                .update::<task::Entity>()
                .col_expr(
                    Column::StepCount,
                    Expr::col(Column::StepCount).add(list.added),
                )
                .col_expr(Column::Version, Expr::col(Column::Version).add(1))
                .col_expr(Column::DirtyRecord, Expr::value(true))
                .col_expr(Column::ModifiedTs, Expr::value(self.context.now.0));
            if let Some(numbering) = list.numbering {
                update = update
                    .col_expr(Column::LastPosition, Expr::value(numbering.last_position))
                    .col_expr(Column::OrderEpoch, Expr::value(numbering.epoch));
            }
            batch.add(update.filter(Column::Guid.eq(list.task.0)).into_query());
        }
    }

    /// Moves stored steps.
    pub fn move_steps(&self, moved: Vec<(StepId, Place)>, batch: &mut Batch) {
        let account = &self.context.account;
        let rows = moved.into_iter().map(|(step, place)| step::ActiveModel {
            position: Set(place.0),
            ..existing_step(account, step)
        });
        batch.upsert(rows.collect(), [Column::Position]);
    }

    /// Clears the external ids of steps. A later statement sets their new ones.
    pub fn clear_external_ids(&self, steps: &[StepId], batch: &mut Batch) {
        let ids: Vec<_> = steps.iter().map(|step| step.0).collect();
        for ids in parts(&ids) {
            let update = self.scope().update::<step::Entity>();
            let update = update.col_expr(Column::ExternalId, Expr::value(None::<String>));
            batch.add(update.filter(Column::Guid.is_in(ids)).into_query());
        }
    }

    /// Makes wiring steps, which are locked, ordinary subtask steps.
    pub fn unlink_steps(&self, steps: &[StepId], batch: &mut Batch) {
        let ids: Vec<_> = steps.iter().map(|step| step.0).collect();
        for ids in parts(&ids) {
            let update = self
                .revise_steps()
                .col_expr(Column::IsLink, Expr::value(false));
            batch.add(update.filter(Column::Guid.is_in(ids)).into_query());
        }
    }

    /// An update that gives steps a new version.
    pub fn revise_steps(&self) -> UpdateMany<step::Entity> {
        self.scope()
            .update::<step::Entity>()
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .col_expr(Column::DirtyRecord, Expr::value(true))
            .col_expr(Column::ModifiedTs, Expr::value(self.context.now.0))
    }
}

/// A row for an upsert of an existing step, so no row is inserted. If the step were missing, the
/// insertion would fail, because the row names no task.
pub fn existing_step(account: &AccountId, step: StepId) -> step::ActiveModel {
    let row = step::Model {
        account_id: account.as_str().to_owned(),
        guid: step.0,
        ..step::Model::default()
    };
    row.into_active_model()
}
