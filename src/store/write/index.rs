//! Records what was listed for an external index, and what the index acknowledges. These writes do
//! not change versions, and are written directly, not as [`Changes`]. Each is one transaction that
//! locks the task and the step, as a deletion does.

use std::collections::{BTreeMap, HashSet};

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, sea_query::Expr};
use uuid::Uuid;

use super::{Operation, Tx, batch::Batch};
use crate::{
    domain::{
        Result,
        changes::Changes,
        etag::Etag,
        ids::TaskId,
        index_work::{AcknowledgeOutcome, Acknowledgement, IndexKind, IndexWork},
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

    /// Marks tasks and steps as listed, and returns the ids of those that still exist.
    pub async fn mark_listed(&self, work: Vec<IndexWork>) -> Result<HashSet<Uuid>> {
        self.write(MarkListed(work), WriteMode::Store).await
    }
}

struct MarkListed(Vec<IndexWork>);

impl Operation for MarkListed {
    type Answer = HashSet<Uuid>;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let ids = |kind| {
            let work = self.0.iter().filter(move |work| work.kind == kind);
            work.map(|work| work.guid)
        };
        let locked_tasks = tx.lock_tasks(self.0.iter().map(|work| work.task)).await?;
        let tasks = ids(IndexKind::Task).filter(|task| locked_tasks.contains_key(&TaskId(*task)));
        let tasks = Vec::from_iter(tasks);
        let by_id = step::Column::Guid;
        let steps = tx.find::<step::Entity>().select_only().column(by_id);
        let steps = tx.lock_by_ids(steps, by_id, by_id, ids(IndexKind::Step));
        let steps: Vec<Uuid> = steps.await?;
        let mut batch = Batch::new(tx);
        let update = tx.scope().update::<task::Entity>();
        let update = update.col_expr(task::Column::Listed, Expr::value(true));
        batch.add_by_ids(update, task::Column::Guid, tasks.iter().copied());
        let update = tx.scope().update::<step::Entity>();
        let update = update.col_expr(step::Column::Listed, Expr::value(true));
        batch.add_by_ids(update, by_id, steps.iter().copied());
        batch.send().await?;
        Ok((Changes::default(), tasks.into_iter().chain(steps).collect()))
    }
}

struct Acknowledge(Vec<Acknowledgement>);

impl Operation for Acknowledge {
    type Answer = Vec<AcknowledgeOutcome>;

    /// Records which states the index reports. Rows that are written later become dirty again.
    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let stored = self.lock_stored(tx).await?;
        let (mut held, mut not_held, mut deletions) = (vec![], vec![], vec![]);
        let mut batch = Batch::new(tx);
        let outcomes = self.0.iter().map(|item| {
            let Some((kind, etag)) = stored.get(&item.guid) else {
                return AcknowledgeOutcome::NotFound;
            };
            if *etag != item.etag {
                return AcknowledgeOutcome::Stale;
            }
            match kind {
                Some(IndexKind::Task) => {
                    use task::{Column, Entity};
                    let mut update = tx
                        .scope()
                        .update::<Entity>()
                        .col_expr(Column::DirtyRecord, Expr::value(false))
                        .col_expr(Column::MvnIndexed, Expr::value(item.indexed))
                        .col_expr(Column::MvnVersion, Expr::value(item.index_version))
                        .col_expr(Column::MvnInfo, Expr::value(item.info.as_str()))
                        .col_expr(Column::MvnTs, Expr::value(tx.context.now.0));
                    if !item.indexed {
                        update = update.col_expr(Column::Listed, Expr::value(false));
                    }
                    batch.add(update.filter(Column::Guid.eq(item.guid)));
                }
                Some(IndexKind::Step) if item.indexed => held.push(item.guid),
                Some(IndexKind::Step) => not_held.push(item.guid),
                None => deletions.push(item.guid),
            }
            AcknowledgeOutcome::Acknowledged
        });
        let outcomes = outcomes.collect();
        for (indexed, steps) in [(true, held), (false, not_held)] {
            use step::{Column, Entity};
            let update = tx.scope().update::<Entity>();
            let mut update = update
                .col_expr(Column::DirtyRecord, Expr::value(false))
                .col_expr(Column::Indexed, Expr::value(indexed));
            if !indexed {
                update = update.col_expr(Column::Listed, Expr::value(false));
            }
            batch.add_by_ids(update, Column::Guid, steps);
        }
        batch.delete_index_deletions(deletions);
        batch.send().await?;
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
        // A deletion locks the task of a step, and then records what the index holds.
        let mut tasks = tx.find_step_tasks(&ids).await?;
        tasks.extend(ids.iter().copied().map(TaskId));
        for (guid, locked_task) in tx.lock_tasks(tasks).await? {
            let etag = locked_task.etag().into_string();
            stored.insert(guid.0, (Some(IndexKind::Task), etag));
        }
        let steps = tx.find::<step::Entity>().select_only();
        let columns = [
            step::Column::Guid,
            step::Column::Version,
            step::Column::ModifiedTs,
        ];
        let steps = steps.columns(columns);
        let by_id = step::Column::Guid;
        let steps = tx.lock_by_ids(steps, by_id, by_id, ids.clone()).await?;
        for (guid, version, modified) in steps {
            let etag = Etag::for_version(guid, version, Timestamp(modified)).into_string();
            stored.insert(guid, (Some(IndexKind::Step), etag));
        }
        for (guid, mark, _) in tx.lock_index_deletions(ids).await? {
            stored.insert(guid, (None, mark.to_string()));
        }
        Ok(stored)
    }
}

impl Tx<'_> {
    /// Locks the deletions among these ids that the index must forget, and returns each with its mark
    /// and whether the index said that it holds the item.
    pub async fn lock_index_deletions(
        &self,
        ids: impl IntoIterator<Item = Uuid>,
    ) -> Result<Vec<(Uuid, Uuid, bool)>, StoreError> {
        use index_deletion::{Column, Entity};
        let deletions = self.find::<Entity>().select_only();
        let deletions = deletions.columns([Column::Guid, Column::Mark, Column::Indexed]);
        self.lock_by_ids(deletions, Column::Guid, Column::Guid, ids)
            .await
    }
}
