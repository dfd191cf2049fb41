//! Turns [`Changes`] into statements. What must happen on every write happens here.
//!
//! Most writes change one step or task. Their statements do not depend on each other, and go out as one
//! [`Batch`]. What depends on other changes of the same write follows, statement by statement.

mod feed;
mod history;
mod index;
mod names;
mod steps;
mod tasks;
mod translations;

use sea_orm::{ActiveModelTrait, ColumnTrait, Iterable, QueryFilter, QueryTrait};
use uuid::Uuid;

use super::{Tx, batch::Batch, external_ids::reassigned, request_outcomes::KeptOutcome};
use crate::{
    domain::{
        Error,
        change_feed::{NewEntries, WriteRpc},
        changes::Changes,
    },
    store::{
        entity::{AccountEntity, step},
        error::StoreError,
        read::MAX_IDS_PER_STATEMENT,
    },
};

use feed::Entries;

impl Tx<'_> {
    /// Applies the changes of a write that holds all of its locks, and stores its outcome for retries.
    pub async fn apply(
        &self,
        changes: Changes,
        outcome: Option<KeptOutcome>,
        rpc: Option<WriteRpc>,
    ) -> Result<(), StoreError> {
        let entries = NewEntries::of(&changes);
        let came_back = changes.came_back();
        let mut batch = Batch::new(self);
        if let Some(outcome) = outcome {
            outcome.add_to(&mut batch, self);
        }
        let mut parts = changes.into_parts().peekable();
        while let Some(part) = parts.next() {
            self.apply_part(part, &mut batch).await?;
            if parts.peek().is_some() {
                batch.send(self).await?;
            }
        }
        if !came_back.is_empty() {
            batch.begin_stage();
            self.forget_index_deletions(&came_back, &mut batch);
        }
        if entries.count() > 0 {
            let unnamed = || internal("a write of tasks or steps names no rpc");
            let entries = Entries {
                rpc: rpc.ok_or_else(unnamed)?,
                transaction: (self.context.new_id)(),
                entries,
            };
            // Last, so that a write that waited for this one draws its numbers later.
            entries.add_to(&mut batch, self);
        }
        batch.send(self).await
    }

    /// Adds statements that depend on each other only in the order of their stages.
    async fn apply_part(&self, changes: Changes, batch: &mut Batch) -> Result<(), StoreError> {
        self.add_name_uses(&changes, batch);
        let Changes {
            tasks,
            step_lists,
            steps,
            deleted_steps,
            moved,
            unlinked,
            renamed: _,
            retitled,
            translated_tasks,
            translated_steps,
            translated_from,
            history,
            undeleted,
            // They were checked, see `Tx::check_claimed_ids` and `Tx::check_depths`.
            claimed_ids: _,
            depth_limits: _,
        } = changes;
        let reassigned = reassigned(&steps);
        if !reassigned.is_empty() {
            self.clear_external_ids(&reassigned, batch);
            batch.begin_stage();
        }
        if !deleted_steps.is_empty() {
            let ids = deleted_steps.iter().map(|deleted| deleted.step.0).collect();
            self.delete_steps(step::Column::Guid, ids, batch);
            if !steps.is_empty() {
                // A new step may have the external id of a deleted one.
                batch.begin_stage();
            }
        }
        let mut translations = translations::Rows::default();
        self.put_tasks(&tasks, &mut translations, &translated_from, batch);
        self.put_steps(steps, &mut translations, &translated_from, batch)?;
        translations.add_translated(&translated_tasks, &translated_steps, self);
        self.put_translations(translations, batch);
        self.change_step_lists(step_lists, batch);
        if !moved.is_empty() {
            batch.begin_stage();
            self.move_steps(moved, batch);
        }
        if !unlinked.is_empty() {
            batch.begin_stage();
            self.unlink_steps(&unlinked, batch);
        }
        if !translated_tasks.is_empty() || !translated_steps.is_empty() {
            batch.begin_stage();
            self.add_translation_sizes(&translated_tasks, &translated_steps, batch);
        }
        self.delete_tasks(&tasks, batch);
        if !retitled.is_empty() {
            batch.begin_stage();
            self.update_subtask_titles(&tasks, batch);
        }
        if history.is_some() || !undeleted.is_empty() {
            batch.send(self).await?;
            self.undelete_histories(&undeleted).await?;
        }
        if let Some(history) = history {
            self.edit_history(history).await?;
        }
        Ok(())
    }

    /// Updates rows, each given as it is stored and as it is to be. Sets the columns in which one of them
    /// differs. Other columns keep what is stored.
    fn update_rows<E: AccountEntity>(
        &self,
        mut rows: Vec<(E::ActiveModel, E::ActiveModel)>,
        id: E::Column,
        batch: &mut Batch,
    ) {
        let differs = |column: &E::Column| {
            let mut rows = rows.iter();
            rows.any(|(before, after)| before.get(*column) != after.get(*column))
        };
        let (changed, same): (Vec<E::Column>, Vec<_>) = E::Column::iter().partition(differs);
        if let [(_, row)] = rows.as_mut_slice()
            && let Some(guid) = row.get(id).into_value()
        {
            changed.iter().for_each(|column| row.reset(*column));
            let update = self.scope().update::<E>().set(row.clone());
            batch.add(update.filter(id.eq(guid)).into_query());
            return;
        }
        // An upsert finds each row by its key: an UPDATE with a join may compare all pairs of rows,
        // depending on PostgreSQL's statistics.
        let rows = rows.into_iter().map(|(_, mut row)| {
            let unused = same.iter().filter(|column| column.def().is_null());
            unused.for_each(|column| row.not_set(*column));
            row
        });
        batch.upsert(rows.collect(), changed);
    }
}

/// Splits ids into parts, each for one statement.
pub fn parts(ids: &[Uuid]) -> impl Iterator<Item = Vec<Uuid>> {
    ids.chunks(MAX_IDS_PER_STATEMENT).map(<[Uuid]>::to_vec)
}

fn internal(what: &str) -> StoreError {
    Error::Internal(what.to_owned()).into()
}
