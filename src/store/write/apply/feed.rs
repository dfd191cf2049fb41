//! The entries of a write in the change feed.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    QuerySelect,
};

use super::Batch;
use crate::{
    domain::{
        change_feed::{ChangeKind, NewEntries, NewEntry, WriteRpc},
        ids::{StepId, TaskId},
    },
    store::{
        entity::{
            change,
            step::{Column, Entity},
        },
        error::StoreError,
    },
};

impl Batch<'_> {
    /// Adds the entries for tasks and steps that the write has in memory, and then the entries for steps
    /// that it updated without reading them. Their `seq` is drawn when the write holds all of its locks.
    pub async fn add_entries(
        &mut self,
        entries: NewEntries,
        rpc: WriteRpc,
    ) -> Result<(), StoreError> {
        let context = &self.tx.context;
        let transaction_size = i32::try_from(entries.count()).unwrap_or(i32::MAX);
        let transaction_id = (context.new_id)();
        let mut known = entries.known;
        for (fields, steps) in entries.followers {
            // They are read with the versions that the write has given them.
            self.send().await?;
            let columns = [Column::Guid, Column::Task, Column::Version];
            let changed = self.tx.find::<Entity>().select_only().columns(columns);
            let ids = steps.iter().map(|step| step.0);
            let changed = self
                .tx
                .lock_by_ids(changed, Column::Guid, Column::Guid, ids);
            let changed: Vec<(StepId, TaskId, i64)> = changed.await?;
            known.extend(changed.into_iter().map(|(step, task, version)| NewEntry {
                fields: fields.clone(),
                ..NewEntry::for_step(ChangeKind::StepUpdated, task, step, Some(version))
            }));
        }
        let rows = known.into_iter().map(|entry| change::ActiveModel {
            account_id: Set(context.account.as_str().to_owned()),
            seq: NotSet,
            position: NotSet,
            transaction_id: Set(transaction_id),
            transaction_size: Set(transaction_size),
            kind: Set(entry.kind as i16),
            task: Set(entry.task.0),
            step: Set(entry.step.map(|step| step.0)),
            version: Set(entry.version),
            changed_ts: Set(context.now.0),
            step_count: Set(i32::try_from(entry.step_count).unwrap_or(i32::MAX)),
            fields: Set(entry.fields),
            rpc: Set(rpc as i16),
            subject: Set(context.subject.clone()),
        });
        self.insert(rows.collect());
        Ok(())
    }
}
