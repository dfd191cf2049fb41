//! The entries of a write in the change feed.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, ConnectionTrait, DbErr, QueryFilter, QuerySelect, QueryTrait,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::{Tx, parts};
use crate::{
    domain::change_feed::{ChangeKind, NewEntries, NewEntry, WriteRpc},
    store::{
        entity::{change, step},
        error::StoreError,
        write::batch::Batch,
    },
};

/// The entries of one write. Their `seq` is drawn when the write holds all of its locks.
pub struct Entries {
    pub rpc: WriteRpc,
    pub transaction: Uuid,
    pub entries: NewEntries,
}

impl Entries {
    fn transaction_size(&self) -> i32 {
        i32::try_from(self.entries.count()).unwrap_or(i32::MAX)
    }

    /// Adds the entries of tasks and steps that the write has in memory.
    pub fn add_known(&self, batch: &mut Batch, tx: &Tx<'_>) {
        let context = &tx.context;
        let rows = self.entries.known.iter().map(|entry| {
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
                seq: NotSet,
                position: NotSet,
                transaction_id: Set(self.transaction),
                transaction_size: Set(self.transaction_size()),
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
        batch.insert_rows(rows.collect(), None);
    }

    /// Inserts the entries of steps that were changed unread, with the versions that they have now.
    pub async fn insert_followers(&self, tx: &Tx<'_>) -> Result<(), StoreError> {
        use change::Column;
        let context = &tx.context;
        for (fields, steps) in &self.entries.followers {
            let ids: Vec<Uuid> = steps.iter().map(|step| step.0).collect();
            for ids in parts(&ids) {
                let select = tx
                    .find::<step::Entity>()
                    .select_only()
                    .columns([
                        step::Column::AccountId,
                        step::Column::Task,
                        step::Column::Guid,
                        step::Column::Version,
                    ])
                    .expr(Expr::value(self.transaction))
                    .expr(Expr::value(self.transaction_size()))
                    .expr(Expr::value(ChangeKind::StepUpdated.number()))
                    .expr(Expr::value(context.now.0))
                    .expr(Expr::value(0_i32))
                    .expr(Expr::value(*fields))
                    .expr(Expr::value(self.rpc.number()))
                    .expr(Expr::value(context.subject.as_str()))
                    .filter(step::Column::Guid.is_in(ids));
                let mut insert = Query::insert();
                insert
                    .into_table(change::Entity)
                    .columns([
                        Column::AccountId,
                        Column::Task,
                        Column::Step,
                        Column::Version,
                        Column::TransactionId,
                        Column::TransactionSize,
                        Column::Kind,
                        Column::ChangedTs,
                        Column::StepCount,
                        Column::Fields,
                        Column::Rpc,
                        Column::Subject,
                    ])
                    .select_from(select.into_query())
                    .map_err(|error| DbErr::Custom(error.to_string()))?;
                tx.db().execute(&insert).await?;
            }
        }
        Ok(())
    }
}
