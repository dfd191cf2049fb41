//! The entries of a write in the change feed, and what an external index has to forget.

use sea_orm::ActiveValue::{NotSet, Set};
use uuid::Uuid;

use super::batch::Batch;
use crate::{
    domain::{
        change_feed::{ChangeKind, NewEntries, NewEntry, WriteRpc},
        changes::AcknowledgedItem,
        decide::WriteContext,
        index_work::IndexKind,
    },
    store::{
        schema::entity::change,
        write::sql::{MAX_IDS_PER_STATEMENT, RowChange, Upsert, Values, list},
    },
};

/// The entries of one write in the change feed. Their `seq` is drawn when the write holds all of its
/// locks.
pub struct FeedRows {
    /// The rpc that writes.
    pub rpc: WriteRpc,
    /// Names the transaction.
    pub transaction: Uuid,
    /// The entries.
    pub entries: NewEntries,
    /// `None` if the database draws the `seq` of each as it is inserted.
    pub numbers: Option<FeedNumbers>,
}

/// The numbers of a write, where the nodes of a database would each draw from a sequence of their own.
///
/// They are above all that the write sees when it holds its locks (a Lamport clock), and so above
/// those of every write for which it has waited or whose rows it has read; entries that were deleted
/// since had their positions. Writes that do not see each other may count alike: the lowest bits keep
/// their numbers apart. If they do not, the primary key does, and one of them runs again.
#[derive(Clone, Copy)]
pub struct FeedNumbers {
    /// The highest count that was seen.
    count: i64,
    low_bits: i64,
}

impl FeedNumbers {
    /// How many of the lowest bits are those of the transaction.
    const LOW_BITS: u32 = 20;

    /// The numbers of a transaction that has seen this one and none above.
    pub fn above(last_seen: i64, transaction: Uuid) -> Self {
        // The end of the id is random.
        let random = transaction.as_u128() % (1 << Self::LOW_BITS);
        Self {
            count: last_seen >> Self::LOW_BITS,
            low_bits: random as i64,
        }
    }

    /// The number of an entry, of which the first is 1.
    fn number(self, entry: usize) -> i64 {
        (self.count + entry as i64) << Self::LOW_BITS | self.low_bits
    }
}

impl FeedRows {
    fn size(&self) -> i32 {
        i32::try_from(self.entries.count()).unwrap_or(i32::MAX)
    }

    /// The rows of tasks and steps that the write has in memory.
    pub fn known(&self, context: &WriteContext) -> RowChange {
        let size = self.size();
        let rows = self.entries.known.iter().zip(1..).map(|(entry, count)| {
            let NewEntry {
                kind,
                task,
                step,
                version,
                fields,
                step_count,
            } = entry;
            change::ActiveModel {
                account_id: Set(context.account.as_str().to_owned()),
                seq: self
                    .numbers
                    .map_or(NotSet, |numbers| Set(numbers.number(count))),
                position: NotSet,
                transaction_id: Set(self.transaction),
                transaction_size: Set(size),
                kind: Set(kind.number()),
                task: Set(task.0),
                step: Set(step.map(|step| step.0)),
                version: Set(*version),
                changed_ts: Set(context.now.0),
                step_count: Set(i32::try_from(*step_count).unwrap_or(i32::MAX)),
                fields: Set(fields.clone()),
                rpc: Set(self.rpc.number()),
                subject: Set(context.subject.clone()),
            }
        });
        RowChange::Upsert(Upsert::new(rows.collect()))
    }
}

/// Rows of tasks or steps that are deleted.
#[derive(Clone, Copy)]
pub struct Deleted {
    kind: IndexKind,
    table: &'static str,
    /// The column with the id of the task or of its step.
    by: &'static str,
    /// That of the task.
    task: &'static str,
    /// Whether the index holds it.
    flag: &'static str,
}

impl Deleted {
    /// Steps by their ids.
    pub const STEPS: Self = Self {
        kind: IndexKind::Step,
        table: "steps",
        by: "guid",
        task: "task",
        flag: "indexed",
    };
    /// All steps of tasks.
    pub const STEPS_OF_TASK: Self = Self {
        by: "task",
        ..Self::STEPS
    };
    /// Tasks by their ids.
    pub const TASKS: Self = Self {
        kind: IndexKind::Task,
        table: "tasks",
        by: "guid",
        task: "guid",
        flag: "mvn_indexed",
    };

    /// The statement that notes which of the rows the index holds, and the one that deletes all.
    pub fn statements(
        self,
        ids: &[Uuid],
        values: &mut Values,
        context: &WriteContext,
    ) -> (String, String) {
        let Self {
            kind,
            table,
            by,
            task,
            flag,
        } = self;
        let (kind, mark) = (values.bind(kind.number()), values.bind((context.new_id)()));
        let ids = values.bind_all(ids.iter().copied());
        let rows = format!("FROM {table} WHERE account_id = $1 AND {by} IN ({ids})");
        let note = format!(
            "INSERT INTO index_deletions (account_id, guid, kind, mark, task) \
             SELECT $1, guid, {kind}, {mark}, {task} {rows} AND {flag}"
        );
        (note, format!("DELETE {rows}"))
    }
}

impl Batch {
    /// Adds the entries of steps that were changed unread.
    pub fn add_followers(&mut self, feed: &FeedRows, context: &WriteContext) {
        // How many numbers are taken. Each statement takes as many as it may have ids.
        let mut count = feed.entries.known.len();
        for (fields, steps) in &feed.entries.followers {
            self.push_by_ids(steps.iter().map(|step| step.0), |values, ids| {
                let (seq, number) = match feed.numbers {
                    Some(numbers) => {
                        let before = values.bind(numbers.number(count));
                        let step = 1 << FeedNumbers::LOW_BITS;
                        count += MAX_IDS_PER_STATEMENT;
                        (
                            ", seq",
                            format!(", {before} + {step} * ROW_NUMBER() OVER ()"),
                        )
                    }
                    None => ("", String::new()),
                };
                let transaction = values.bind(feed.transaction);
                let size = values.bind(feed.size());
                let kind = values.bind(ChangeKind::StepUpdated.number());
                let changed = values.bind(context.now.0);
                let fields = values.bind(*fields);
                let rpc = values.bind(feed.rpc.number());
                let subject = values.bind(context.subject.clone());
                format!(
                    "INSERT INTO changes (account_id, transaction_id, transaction_size, kind, \
                     task, step, version, changed_ts, step_count, fields, rpc, subject{seq}) \
                     SELECT $1, {transaction}, {size}, {kind}, task, guid, version, {changed}, 0, \
                     {fields}, {rpc}, {subject}{number} FROM steps \
                     WHERE account_id = $1 AND guid IN ({ids})"
                )
            });
        }
    }

    /// Notes what an index says it holds. Dirty is what was written since.
    pub fn acknowledge(&mut self, items: Vec<AcknowledgedItem>, context: &WriteContext) {
        let (mut tasks, mut held, mut not_held, mut deletions) = (vec![], vec![], vec![], vec![]);
        for AcknowledgedItem { kind, item } in items {
            match kind {
                Some(IndexKind::Task) => tasks.push(item),
                Some(IndexKind::Step) if item.indexed => held.push(item.guid),
                Some(IndexKind::Step) => not_held.push(item.guid),
                None => deletions.push(item.guid),
            }
        }
        if !tasks.is_empty() {
            let mut values = Values::new();
            let now = values.bind(context.now.0);
            let mut ids = Vec::new();
            let given = list(tasks.into_iter().map(|item| {
                ids.push(item.guid);
                values.bind_row([
                    item.guid.into(),
                    item.indexed.into(),
                    item.index_version.into(),
                    item.info.into_string().into(),
                ])
            }));
            let ids = values.bind_all(ids);
            // The ids twice, so that PostgreSQL uses the primary key even without statistics.
            let sql = format!(
                "WITH given (guid, indexed, version, info) AS (VALUES {given}) \
                 UPDATE tasks SET dirty_record = false, mvn_indexed = given.indexed, \
                 mvn_version = given.version, mvn_info = given.info, mvn_ts = {now} FROM given \
                 WHERE tasks.account_id = $1 AND tasks.guid IN ({ids}) AND tasks.guid = given.guid"
            );
            self.push(sql, values);
        }
        for (indexed, steps) in [(true, held), (false, not_held)] {
            self.push_by_ids(steps, |values, ids| {
                let indexed = values.bind(indexed);
                format!(
                    "UPDATE steps SET dirty_record = false, indexed = {indexed} \
                     WHERE account_id = $1 AND guid IN ({ids})"
                )
            });
        }
        self.delete("index_deletions", "guid", deletions);
    }

    /// Tasks and steps are no longer deleted. The index may still hold what it had of them.
    pub fn forget_index_deletions(&mut self, came_back: &[Uuid]) {
        for (table, flag) in [("tasks", "mvn_indexed"), ("steps", "indexed")] {
            self.push_by_ids(came_back.iter().copied(), |_, ids| {
                format!(
                    "UPDATE {table} SET {flag} = true WHERE account_id = $1 AND guid IN \
                     (SELECT guid FROM index_deletions WHERE account_id = $1 AND guid IN ({ids}))"
                )
            });
        }
        self.delete("index_deletions", "guid", came_back.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_above_what_was_seen_and_end_with_the_bits_of_the_transaction() {
        let step = 1 << FeedNumbers::LOW_BITS;
        for last_seen in [0, step - 1, step, 7 * step + 5] {
            let transaction = Uuid::from_u128((3 << FeedNumbers::LOW_BITS) + 77);
            let numbers = FeedNumbers::above(last_seen, transaction);
            let first = last_seen / step * step + step + 77;
            let expected = [first, first + step, first + 2 * step];
            assert_eq!([1, 2, 3].map(|entry| numbers.number(entry)), expected);
        }
    }
}
