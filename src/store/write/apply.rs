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

use sea_orm::{ActiveModelTrait, EntityTrait, Iterable};
use uuid::Uuid;

use super::{Tx, batch::Batch, external_ids::reassigned, request_outcomes::KeptOutcome};
use crate::{
    domain::{
        Error,
        change_feed::{NewEntries, WriteRpc},
        changes::Changes,
    },
    store::{error::StoreError, read::MAX_IDS_PER_STATEMENT},
};

use feed::Entries;
use index::Deleted;

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
            batch.send(self).await?;
            self.forget_index_deletions(&came_back).await?;
        }
        if entries.count() == 0 {
            return batch.send(self).await;
        }
        let unnamed = || Error::Internal("a write of tasks or steps names no rpc".to_owned());
        let entries = Entries {
            rpc: rpc.ok_or_else(unnamed)?,
            transaction: (self.context.new_id)(),
            entries,
        };
        // Last, so that a write that waited for this one draws its numbers later.
        entries.add_known(&mut batch, self);
        batch.send(self).await?;
        entries.insert_followers(self).await
    }

    async fn apply_part(&self, changes: Changes, batch: &mut Batch) -> Result<(), StoreError> {
        self.add_name_uses(&changes, batch);
        let names = tasks::names_of_renamed(&changes);
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
            role,
            acknowledged,
            history,
            undeleted,
            // They were checked, see `Tx::check_claimed_ids` and `Tx::check_depths`.
            claimed_ids: _,
            depth_limits: _,
        } = changes;
        let reassigned = reassigned(&steps);
        if !reassigned.is_empty() {
            self.clear_external_ids(&reassigned).await?;
        }
        if !deleted_steps.is_empty() {
            let ids = deleted_steps.iter().map(|deleted| deleted.step.0).collect();
            self.add_deletion(Deleted::Steps, ids, batch);
            if !steps.is_empty() {
                // A new step may have the external id of a deleted one.
                batch.send(self).await?;
            }
        }
        let mut translations = translations::Rows::default();
        let deleted_tasks = self.put_tasks(tasks, &mut translations, &translated_from, batch);
        self.put_steps(steps, &mut translations, &translated_from, batch)?;
        translations.add_translated(&translated_tasks, &translated_steps, self);
        self.put_translations(translations, batch);
        self.change_step_lists(step_lists, batch);
        if let Some(role) = role {
            self.change_role(role, batch);
        }
        let is_done = moved.is_empty()
            && unlinked.is_empty()
            && retitled.is_empty()
            && translated_tasks.is_empty()
            && translated_steps.is_empty()
            && deleted_tasks.is_empty()
            && acknowledged.is_empty()
            && undeleted.is_empty()
            && history.is_none();
        if is_done {
            return Ok(());
        }
        batch.send(self).await?;
        self.move_steps(moved).await?;
        self.unlink_steps(&unlinked).await?;
        self.add_translation_sizes(&translated_tasks, &translated_steps)
            .await?;
        self.delete_tasks(deleted_tasks).await?;
        if !retitled.is_empty() {
            self.update_subtask_titles(&names).await?;
        }
        self.acknowledge(acknowledged).await?;
        self.undelete_histories(&undeleted).await?;
        if let Some(history) = history {
            self.edit_history(history).await?;
        }
        Ok(())
    }
}

/// Splits ids into parts, each for one statement.
fn parts(ids: &[Uuid]) -> impl Iterator<Item = Vec<Uuid>> {
    ids.chunks(MAX_IDS_PER_STATEMENT).map(<[Uuid]>::to_vec)
}

/// Marks the columns in which two states of a row differ, so that an update sets them. Other columns
/// keep what is stored.
fn set_changed<A: ActiveModelTrait>(before: &A, mut after: A) -> A {
    for column in <A::Entity as EntityTrait>::Column::iter() {
        if before.get(column) != after.get(column) {
            after.reset(column);
        }
    }
    after
}

fn internal(what: &str) -> StoreError {
    Error::Internal(what.to_owned()).into()
}
