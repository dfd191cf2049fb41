//! The entries of a write in the change feed.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, QueryFilter, QuerySelect, QueryTrait,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::{Tx, parts};
use crate::{
    domain::change_feed::{ChangeKind, NewEntries, WriteRpc},
    store::{
        entity::{change, step},
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
    /// Adds the entries of tasks and steps that the write has in memory, and then those of steps that
    /// were changed unread, with the versions that they have now.
    pub fn add_to(&self, batch: &mut Batch, tx: &Tx<'_>) {
        let transaction_size = i32::try_from(self.entries.count()).unwrap_or(i32::MAX);
        let context = &tx.context;
        let rows = self.entries.known.iter().map(|entry| change::ActiveModel {
            account_id: Set(context.account.as_str().to_owned()),
            seq: NotSet,
            position: NotSet,
            transaction_id: Set(self.transaction),
            transaction_size: Set(transaction_size),
            kind: Set(entry.kind.number()),
            task: Set(entry.task.0),
            step: Set(entry.step.map(|step| step.0)),
            version: Set(entry.version),
            changed_ts: Set(context.now.0),
            step_count: Set(i32::try_from(entry.step_count).unwrap_or(i32::MAX)),
            fields: Set(entry.fields.clone()),
            rpc: Set(self.rpc.number()),
            subject: Set(context.subject.clone()),
        });
        batch.insert(rows.collect());
        if self.entries.followers.is_empty() {
            return;
        }
        batch.begin_stage();
        for (fields, steps) in &self.entries.followers {
            let ids: Vec<Uuid> = steps.iter().map(|step| step.0).collect();
            for ids in parts(&ids) {
                use step::Column;
                let columns: [(change::Column, Expr); 12] = [
                    (change::Column::AccountId, Expr::col(Column::AccountId)),
                    (change::Column::Task, Expr::col(Column::Task)),
                    (change::Column::Step, Expr::col(Column::Guid)),
                    (change::Column::Version, Expr::col(Column::Version)),
                    (change::Column::TransactionId, self.transaction.into()),
                    (change::Column::TransactionSize, transaction_size.into()),
                    (
                        change::Column::Kind,
                        ChangeKind::StepUpdated.number().into(),
                    ),
                    (change::Column::ChangedTs, context.now.0.into()),
                    (change::Column::StepCount, 0_i32.into()),
                    (change::Column::Fields, (*fields).into()),
                    (change::Column::Rpc, self.rpc.number().into()),
                    (change::Column::Subject, context.subject.as_str().into()),
                ];
                let (columns, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
                let steps = tx.find::<step::Entity>().filter(Column::Guid.is_in(ids));
                let mut select = steps.select_only().into_query();
                select.exprs(values);
                let mut insert = Query::insert();
                insert.into_table(change::Entity).columns(columns);
                // It fails only if there are more columns than expressions.
                let _ = insert.select_from(select);
                batch.add(insert);
            }
        }
    }
}
