//! Acknowledgements of an external index. They change no version, and are written directly, not as
//! [`Changes`]. The check of an etag and the write are one transaction, which holds the locks of the
//! task and the step.

use std::collections::BTreeMap;

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, QueryTrait, sea_query::Expr};
use uuid::Uuid;

use super::{Operation, Tx, apply::parts, batch::Batch};
use crate::{
    domain::{
        Result,
        changes::Changes,
        etag::Etag,
        ids::TaskId,
        index_work::{AcknowledgeOutcome, Acknowledgement, IndexKind},
        time::Timestamp,
    },
    store::{
        Account, WriteMode,
        entity::{index_deletion, step, task},
        error::StoreError,
    },
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

impl Operation for Acknowledge {
    type Answer = Vec<AcknowledgeOutcome>;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let stored = self.lock_stored(tx).await?;
        let (mut current, mut outcomes) = (Vec::new(), Vec::with_capacity(self.0.len()));
        for item in &self.0 {
            outcomes.push(match stored.get(&item.guid) {
                None => AcknowledgeOutcome::NotFound,
                Some((_, etag)) if *etag != item.etag => AcknowledgeOutcome::Stale,
                Some((kind, _)) => {
                    current.push((*kind, item));
                    AcknowledgeOutcome::Acknowledged
                }
            });
        }
        tx.acknowledge(current).await?;
        Ok((Changes::default(), outcomes))
    }
}

impl Acknowledge {
    /// What is stored under the ids: the kind, and the etag or mark to acknowledge. A deleted item has no
    /// kind.
    async fn lock_stored(
        &self,
        tx: &Tx<'_>,
    ) -> Result<BTreeMap<Uuid, (Option<IndexKind>, String)>, StoreError> {
        let ids: Vec<Uuid> = self.0.iter().map(|item| item.guid).collect();
        let mut stored = BTreeMap::new();
        // A deletion locks the task of a step, and then notes what the index holds.
        let mut tasks = tx.tasks_of_steps(&ids).await?;
        tasks.extend(ids.iter().copied().map(TaskId));
        for locked_task in tx.lock_tasks(&tasks).await? {
            let etag = locked_task.etag().into_string();
            stored.insert(locked_task.guid.0, (Some(IndexKind::Task), etag));
        }
        for (guid, version, modified) in tx.lock_step_versions(&ids).await? {
            let etag = Etag::of_version(guid, version, Timestamp(modified)).into_string();
            stored.insert(guid, (Some(IndexKind::Step), etag));
        }
        for (guid, mark) in tx.lock_index_deletions(ids).await? {
            stored.insert(guid, (None, mark.to_string()));
        }
        Ok(stored)
    }
}

impl Tx<'_> {
    /// Locks steps in the order of their ids, and returns those ids with their versions and the times of
    /// their last change.
    async fn lock_step_versions(&self, ids: &[Uuid]) -> Result<Vec<(Uuid, i64, i64)>, StoreError> {
        use step::{Column, Entity};
        let steps = self.find::<Entity>();
        let steps = steps.filter(Column::Guid.is_in(ids.iter().copied()));
        let steps = self.locked(steps, Column::Guid).select_only();
        let steps = steps.columns([Column::Guid, Column::Version, Column::ModifiedTs]);
        Ok(steps.into_tuple().all(self.db()).await?)
    }

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

    /// Records what the index reports to hold. Rows that are written later become dirty again.
    async fn acknowledge(
        &self,
        items: Vec<(Option<IndexKind>, &Acknowledgement)>,
    ) -> Result<(), StoreError> {
        let (mut held, mut not_held, mut deletions) = (vec![], vec![], vec![]);
        let mut batch = Batch::new(self);
        for (kind, item) in items {
            match kind {
                Some(IndexKind::Task) => {
                    use task::{Column, Entity};
                    let update = self
                        .scope()
                        .update::<Entity>()
                        .col_expr(Column::DirtyRecord, Expr::value(false))
                        .col_expr(Column::MvnIndexed, Expr::value(item.indexed))
                        .col_expr(Column::MvnVersion, Expr::value(item.index_version))
                        .col_expr(Column::MvnInfo, Expr::value(item.info.as_str()))
                        .col_expr(Column::MvnTs, Expr::value(self.context.now.0))
                        .filter(Column::Guid.eq(item.guid));
                    batch.add(update.into_query());
                }
                Some(IndexKind::Step) if item.indexed => held.push(item.guid),
                Some(IndexKind::Step) => not_held.push(item.guid),
                None => deletions.push(item.guid),
            }
        }
        for (indexed, steps) in [(true, held), (false, not_held)] {
            use step::{Column, Entity};
            for ids in parts(&steps) {
                let update = self
                    .scope()
                    .update::<Entity>()
                    .col_expr(Column::DirtyRecord, Expr::value(false))
                    .col_expr(Column::Indexed, Expr::value(indexed))
                    .filter(Column::Guid.is_in(ids));
                batch.add(update.into_query());
            }
        }
        self.delete_index_deletions(&deletions, &mut batch);
        batch.send(self).await
    }
}
