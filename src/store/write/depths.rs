//! Checks the depths of tasks, for writes of values that deep tasks cannot have.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::ConnectionTrait;
use uuid::Uuid;

use super::{
    sql::{MAX_IDS_PER_STATEMENT, Values},
    transaction::Tx,
};
use crate::{
    domain::{changes::Changes, ids::TaskId, nesting::check_depths},
    store::{error::StoreError, row_reader::RowReader},
};

impl Tx {
    /// Fails if a task is too deep for a changed value. Most changes have no depth limits;
    /// then nothing is read. No lock is needed, as a task's depth never grows.
    pub async fn check_depths(&self, changes: &Changes) -> Result<(), StoreError> {
        let limits = &changes.depth_limits;
        let tasks: BTreeSet<TaskId> = limits.iter().map(|(task, _)| *task).collect();
        if tasks.is_empty() {
            return Ok(());
        }
        Ok(check_depths(limits, &self.read_depths(tasks).await?)?)
    }

    /// The depth of each task: the number of tasks from it up to the outermost one, both
    /// counted.
    async fn read_depths(
        &self,
        tasks: BTreeSet<TaskId>,
    ) -> Result<BTreeMap<TaskId, usize>, StoreError> {
        let tasks: Vec<TaskId> = tasks.into_iter().collect();
        let mut depths = BTreeMap::new();
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let mut values = Values::new();
            let ids = values.bind_all(tasks.iter().map(|task| task.0));
            let sql = format!(
                "WITH RECURSIVE up AS ( \
                   SELECT guid, parent_guid, CAST(1 AS bigint) AS depth FROM tasks \
                   WHERE account_id = $1 AND guid IN ({ids}) \
                   UNION ALL \
                   SELECT up.guid, t.parent_guid, up.depth + 1 \
                   FROM up CROSS JOIN tasks t \
                   WHERE t.account_id = $1 AND t.guid = up.parent_guid \
                 ) SELECT guid, MAX(depth) FROM up GROUP BY guid"
            );
            let statement = values.statement(sql, self.backend(), self.account());
            for row in self.db.query_all_raw(statement).await? {
                let mut row = RowReader::new(&row);
                let task: Uuid = row.take()?;
                let depth: i64 = row.take()?;
                depths.insert(TaskId(task), usize::try_from(depth).unwrap_or_default());
            }
        }
        Ok(depths)
    }
}
