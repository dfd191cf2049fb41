use sea_orm::{
    ActiveValue::NotSet, ColumnTrait, ExprTrait, IntoActiveModel, QueryFilter, UpdateMany,
    sea_query::Expr,
};

use super::{Batch, translations::Translations};
use crate::{
    domain::{
        changes::{StepChange, StepListChange},
        history::TranslatedFrom,
        ids::StepId,
        order::Place,
    },
    store::{
        entity::{
            step::{self, Column},
            task,
        },
        error::StoreError,
        rows::step_row,
    },
};

impl Batch<'_> {
    /// Inserts and updates steps. Bodies are written only when one of them has changed.
    pub fn put_steps(
        &mut self,
        steps: Vec<StepChange>,
        translations: &mut Translations,
        translated_from: &TranslatedFrom,
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
                // The step may have moved, so its position is always written.
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
        self.update_rows::<step::Entity>(updated, Column::Guid);
        // No ON CONFLICT: with it, PostgreSQL searches the key of each row again and logs its
        // insertion twice.
        self.insert(created);
        Ok(())
    }

    pub fn change_step_lists(&mut self, lists: Vec<StepListChange>) {
        use task::Column;
        for list in lists {
            let step_count = Expr::col(Column::StepCount).add(list.added);
            let mut update = self
                .tx
                .scope()
                .update::<task::Entity>()
                .col_expr(Column::StepCount, step_count)
                .col_expr(Column::Version, Expr::col(Column::Version).add(1))
                .col_expr(Column::DirtyRecord, Expr::value(true))
                .col_expr(Column::ModifiedTs, Expr::value(self.tx.context.now.0));
            if let Some(numbering) = list.numbering {
                update = update
                    .col_expr(Column::LastPosition, Expr::value(numbering.last_position))
                    .col_expr(Column::OrderEpoch, Expr::value(numbering.epoch));
            }
            self.add(update.filter(Column::Guid.eq(list.task.0)));
        }
    }

    pub fn move_steps(&mut self, moved: Vec<(StepId, Place)>) {
        let rows = moved.into_iter().map(|(step, place)| {
            let row = step::Model {
                position: place.0,
                ..self.existing_step(step)
            };
            row.into_active_model()
        });
        self.upsert(Vec::from_iter(rows), [Column::Position]);
    }

    /// Clears the external ids of steps. A later statement sets their new ones.
    pub fn clear_external_ids(&mut self, steps: Vec<StepId>) {
        let update = self.tx.scope().update::<step::Entity>();
        let update = update.col_expr(Column::ExternalId, Expr::value(None::<String>));
        self.add_by_ids(update, Column::Guid, steps.into_iter().map(|step| step.0));
    }

    /// Makes wiring steps, which are locked, ordinary subtask steps.
    pub fn unlink_steps(&mut self, steps: Vec<StepId>) {
        let update = self.revise_steps();
        let update = update.col_expr(Column::IsLink, Expr::value(false));
        self.add_by_ids(update, Column::Guid, steps.into_iter().map(|step| step.0));
    }

    /// An update that gives steps a new version.
    pub fn revise_steps(&self) -> UpdateMany<step::Entity> {
        self.tx
            .scope()
            .update::<step::Entity>()
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .col_expr(Column::DirtyRecord, Expr::value(true))
            .col_expr(Column::ModifiedTs, Expr::value(self.tx.context.now.0))
    }

    /// A row for an upsert of an existing step, so no row is inserted. If the step were missing, the
    /// insertion would fail, because the row names no task.
    pub fn existing_step(&self, step: StepId) -> step::Model {
        step::Model {
            account_id: self.tx.context.account.as_str().to_owned(),
            guid: step.0,
            ..step::Model::default()
        }
    }
}
