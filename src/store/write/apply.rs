//! Turns [`Changes`] into statements. Side effects of every write belong here.
//!
//! Most writes change one step or task. Their statements do not depend on each other, and go out as one
//! stage of a [`Batch`]. What depends on other changes of the same write follows, stage by stage.

mod deleted_steps;
mod feed;
mod history;
mod index;
mod names;
mod steps;
mod tasks;
mod translations;

use sea_orm::{ActiveModelTrait, ColumnTrait, Iterable, QueryFilter};
use uuid::Uuid;

use super::{Tx, batch::Batch, external_ids::reassigned};
use crate::{
    domain::{
        Error,
        change_feed::{NewEntries, WriteRpc},
        changes::Changes,
        ids::TaskId,
    },
    store::{
        entity::{AccountEntity, request_outcome, step},
        error::StoreError,
    },
};

use translations::Translations;

impl Tx<'_> {
    /// Applies the changes of a write that holds all of its locks, and stores its outcome for retries.
    pub async fn apply(
        &self,
        changes: Changes,
        outcome: Option<request_outcome::ActiveModel>,
        rpc: Option<WriteRpc>,
    ) -> Result<(), StoreError> {
        let entries = NewEntries::from(&changes);
        let came_back = changes.undeleted_tasks().map(|task| task.0);
        let came_back = came_back.chain(changes.undeleted_steps().map(|step| step.0));
        let came_back: Vec<Uuid> = came_back.collect();
        let mut batch = Batch::new(self);
        if let Some(outcome) = outcome {
            batch.add_outcome(outcome);
        }
        let mut parts = changes.into_parts().peekable();
        while let Some(part) = parts.next() {
            batch.add_changes(part)?;
            if parts.peek().is_some() {
                batch.send().await?;
            }
        }
        if !came_back.is_empty() {
            batch.begin_stage();
            batch.forget_index_deletions(&came_back);
            batch.forget_deleted_steps(&came_back);
        }
        if entries.count() > 0 {
            let rpc = rpc.ok_or_else(|| internal("a write of tasks or steps names no rpc"))?;
            // Last, so that a write that waited for this one draws its numbers later.
            batch.add_entries(entries, rpc).await?;
        }
        batch.send().await
    }
}

impl Batch<'_> {
    fn add_changes(&mut self, changes: Changes) -> Result<(), StoreError> {
        self.add_name_uses(&changes);
        let undeleted: Vec<TaskId> = changes.undeleted_tasks().collect();
        let Changes {
            tasks,
            step_lists,
            steps,
            deleted_steps,
            moved,
            unlinked,
            following,
            translated_tasks,
            translated_steps,
            translated_from,
            history,
            // Already checked by `Tx::check_claimed_ids` and `Tx::check_depths`.
            claimed_ids: _,
            depth_limits: _,
            // Kept by `Tx::keep_published`.
            guide_to_keep: _,
            replaced: _,
        } = changes;
        let reassigned = reassigned(&steps);
        if !reassigned.is_empty() {
            self.clear_external_ids(reassigned);
            self.begin_stage();
        }
        if !deleted_steps.is_empty() {
            deleted_steps
                .iter()
                .for_each(|deleted| self.keep_step(deleted));
            let ids = deleted_steps.iter().map(|deleted| deleted.step.0);
            self.delete_steps(step::Column::Guid, ids);
            if !steps.is_empty() {
                // A new step may have the external id of a deleted one.
                self.begin_stage();
            }
        }
        let mut translations = Translations::default();
        self.put_tasks(&tasks, &mut translations, &translated_from);
        self.put_steps(steps, &mut translations, &translated_from)?;
        translations.add_automatic(&translated_tasks, &translated_steps, self.tx);
        self.put_translations(translations);
        self.change_step_lists(step_lists);
        if !moved.is_empty() {
            self.begin_stage();
            self.move_steps(moved);
        }
        if !unlinked.is_empty() {
            self.begin_stage();
            self.unlink_steps(unlinked);
        }
        if !translated_tasks.is_empty() || !translated_steps.is_empty() {
            self.begin_stage();
            self.resize_translated(&translated_tasks, &translated_steps);
        }
        self.delete_tasks(&tasks);
        if !following.is_empty() {
            self.begin_stage();
            self.update_following_steps(&tasks);
        }
        if !undeleted.is_empty() {
            self.begin_stage();
            self.undelete_histories(undeleted);
        }
        if let Some(history) = history {
            self.edit_history(history)?;
        }
        Ok(())
    }

    /// Updates rows, each given in its stored and its new state. Sets the columns in which any row
    /// differs. Other columns are left as they are.
    fn update_rows<E: AccountEntity>(
        &mut self,
        mut rows: Vec<(E::ActiveModel, E::ActiveModel)>,
        id: E::Column,
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
            let update = self.tx.scope().update::<E>().set(row.clone());
            self.add(update.filter(id.eq(guid)));
            return;
        }
        // An upsert finds each row by its key: an UPDATE with a join may compare all pairs of rows,
        // depending on PostgreSQL's statistics.
        let rows = rows.into_iter().map(|(_, mut row)| {
            let unused = same.iter().filter(|column| column.def().is_null());
            unused.for_each(|column| row.not_set(*column));
            row
        });
        self.upsert(rows.collect(), changed);
    }
}

fn internal(what: &str) -> StoreError {
    Error::Internal(what.to_owned()).into()
}
