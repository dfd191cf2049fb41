//! Checks the depths of tasks, for writes of values that deep tasks cannot have.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::tx::Tx;
use crate::{
    domain::{changes::Changes, ids::TaskId, nesting::check_depths},
    store::{entity::task, error::StoreError, read::MAX_IDS_PER_STATEMENT},
};

impl Tx<'_> {
    /// Fails if a task is too deep for a changed value. Most changes have no depth limits; then
    /// nothing is read. No lock is needed, because a task's depth never grows.
    pub async fn check_depths(&self, changes: &Changes) -> Result<(), StoreError> {
        let limits = &changes.depth_limits;
        let tasks: BTreeSet<TaskId> = limits.iter().map(|(task, _)| *task).collect();
        if tasks.is_empty() {
            return Ok(());
        }
        Ok(check_depths(limits, &self.read_depths(tasks).await?)?)
    }

    /// The depth of each task: the number of tasks from it up to the outermost one, both included. Reads
    /// one level of parents at a time.
    async fn read_depths(
        &self,
        tasks: BTreeSet<TaskId>,
    ) -> Result<BTreeMap<TaskId, usize>, StoreError> {
        let mut parents: BTreeMap<Uuid, Option<Uuid>> = BTreeMap::new();
        let mut level: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        while !level.is_empty() {
            let mut above = BTreeSet::new();
            for ids in level.chunks(MAX_IDS_PER_STATEMENT) {
                let rows: Vec<(Uuid, Option<Uuid>)> = self
                    .find::<task::Entity>()
                    .select_only()
                    .columns([task::Column::Guid, task::Column::ParentGuid])
                    .filter(task::Column::Guid.is_in(ids.iter().copied()))
                    .into_tuple()
                    .all(self.db())
                    .await?;
                above.extend(rows.iter().filter_map(|(_, parent)| *parent));
                parents.extend(rows);
            }
            above.retain(|parent| !parents.contains_key(parent));
            level = above.into_iter().collect();
        }
        let depth = |task: TaskId| {
            let above = |guid: &Uuid| parents.get(guid).copied().flatten();
            let own = parents.contains_key(&task.0).then_some(task.0);
            std::iter::successors(own, above).count()
        };
        let depths = tasks.iter().map(|task| (*task, depth(*task)));
        Ok(depths.filter(|(_, depth)| *depth > 0).collect())
    }
}
