//! Acknowledgements of an external index. They change no version. The check of an etag and the
//! write are one transaction, which holds the locks of the task and the step.

use std::collections::BTreeMap;

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::{Operation, Tx};
use crate::{
    domain::{
        Result,
        changes::{AcknowledgedItem, Changes},
        decide::WriteContext,
        etag::Etag,
        ids::TaskId,
        index_work::{AcknowledgeOutcome, Acknowledgement, IndexKind},
    },
    store::{Account, WriteMode, entity::index_deletion, error::StoreError},
};

impl Account {
    /// Records which states of tasks and steps the index holds. Returns the outcome of each item, in
    /// order. An item that is not applied does not affect the others.
    pub async fn acknowledge_indexed(
        &self,
        items: Vec<Acknowledgement>,
    ) -> Result<Vec<AcknowledgeOutcome>> {
        self.write(Acknowledge(items), WriteMode::Store).await
    }
}

struct Acknowledge(Vec<Acknowledgement>);

/// What is stored under an id: its kind, and the etag or mark to acknowledge. A deleted item has no
/// kind.
type Stored = BTreeMap<Uuid, (Option<IndexKind>, String)>;

impl Operation for Acknowledge {
    type Snapshot = Stored;
    type Answer = Vec<AcknowledgeOutcome>;

    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<Stored, StoreError> {
        let ids: Vec<Uuid> = self.0.iter().map(|item| item.guid).collect();
        let mut stored = Stored::new();
        // A deletion locks the task of a step, and then notes what the index holds.
        let mut tasks = tx.tasks_of_steps(&ids).await?;
        tasks.extend(ids.iter().copied().map(TaskId));
        for locked_task in tx.lock_tasks(&tasks).await? {
            let etag = locked_task.etag().into_string();
            stored.insert(locked_task.guid.0, (Some(IndexKind::Task), etag));
        }
        for (step, version, modified) in tx.lock_step_versions(ids.iter().copied()).await? {
            let etag = Etag::of_version(step.0, version, modified).into_string();
            stored.insert(step.0, (Some(IndexKind::Step), etag));
        }
        for (guid, mark) in tx.lock_index_deletions(ids).await? {
            stored.insert(guid, (None, mark.to_string()));
        }
        Ok(stored)
    }

    fn decide(
        &self,
        stored: Stored,
        _: &WriteContext,
    ) -> Result<(Changes, Vec<AcknowledgeOutcome>)> {
        let mut changes = Changes::default();
        let outcome = |item: &Acknowledgement| match stored.get(&item.guid) {
            None => AcknowledgeOutcome::NotFound,
            Some((_, etag)) if *etag != item.etag => AcknowledgeOutcome::Stale,
            Some((kind, _)) => {
                changes.acknowledged.push(AcknowledgedItem {
                    kind: *kind,
                    item: item.clone(),
                });
                AcknowledgeOutcome::Acknowledged
            }
        };
        let outcomes = self.0.iter().map(outcome).collect();
        Ok((changes, outcomes))
    }
}

impl Tx<'_> {
    /// Locks the deletions among these ids that the index must forget, and returns each with its mark.
    pub async fn lock_index_deletions(
        &self,
        ids: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
        use index_deletion::{Column, Entity};
        let deletions = self.find::<Entity>().filter(Column::Guid.is_in(ids));
        let deletions = self
            .locked(deletions, Column::Guid)
            .select_only()
            .columns([Column::Guid, Column::Mark])
            .into_tuple()
            .all(self.db())
            .await?;
        Ok(deletions)
    }
}
