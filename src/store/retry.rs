//! Request ids: a retry of a create gets the outcome of the first try.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, sea_query::OnConflict};

use super::{
    Mode, Outcome, Retry,
    entity::request_outcome::{ActiveModel, Column, Entity},
    fault::Fault,
    script::{Besides, CHANGED},
    transaction::Tx,
};
use crate::domain::Precondition;

/// How long an outcome is kept, in microseconds: two days, where the contract
/// promises one.
const KEPT: i64 = 2 * 24 * 60 * 60 * 1_000_000;

impl<T> Retry<T> {
    /// The outcome of an earlier try, if there was one.
    pub(super) async fn earlier(&self, tx: &Tx) -> Result<Option<Outcome<T>>, Fault> {
        let found = Entity::find_by_id((tx.account_id().to_owned(), self.id.0))
            .one(&tx.db)
            .await?;
        match found {
            None => Ok(None),
            Some(row) if row.digest == self.digest => Ok(Some(Outcome::Replayed(row.outcome))),
            Some(_) => Err(Precondition::RequestIdReused { id: self.id }.into()),
        }
    }

    /// Keeps the outcome of this try. When another transaction was faster with
    /// the same id, this one is run again and finds that one's outcome.
    pub(super) async fn keep(&self, tx: &Tx, outcome: &T) -> Result<(), Fault> {
        Entity::delete_many()
            .filter(Column::AccountId.eq(tx.account_id()))
            .filter(Column::CreatedTs.lt(tx.now.0 - KEPT))
            .exec(&tx.db)
            .await?;
        let row = self.row(tx, outcome);
        let key = OnConflict::columns([Column::AccountId, Column::RequestId])
            .do_nothing()
            .to_owned();
        let kept = Entity::insert(row)
            .on_conflict(key)
            .exec_without_returning(&tx.db)
            .await?;
        if kept == 1 { Ok(()) } else { Err(Fault::Lost) }
    }

    /// The condition that there was no earlier try. It does not see one that is under
    /// way: then keeping the outcome of this one fails.
    pub(super) fn is_first(&self, besides: &mut Besides) -> String {
        let id = besides.value(self.id.0);
        format!(
            "NOT EXISTS (SELECT 1 FROM request_outcomes \
                         WHERE account_id = $1 AND request_id = {id})"
        )
    }

    /// Keeps the outcome of this try as the end of a script.
    pub(super) fn keep_besides(&self, tx: &Tx, outcome: &T, besides: &mut Besides) {
        besides.insert(&self.row(tx, outcome), "");
        let old = besides.value(tx.now.0 - KEPT);
        besides.then.push(format!(
            "DELETE FROM request_outcomes WHERE account_id = $1 AND created_ts < {old} \
             AND EXISTS (SELECT 1 FROM {CHANGED})"
        ));
    }

    fn row(&self, tx: &Tx, outcome: &T) -> ActiveModel {
        ActiveModel {
            account_id: Set(tx.account_id().to_owned()),
            request_id: Set(self.id.0),
            digest: Set(self.digest.to_vec()),
            outcome: Set((self.record)(outcome)),
            created_ts: Set(tx.now.0),
        }
    }
}

/// Answers a retry, or does the work and keeps its outcome.
pub(super) async fn once<T>(
    tx: &Tx,
    retry: Option<&Retry<T>>,
    mode: Mode,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<Outcome<T>, Fault> {
    let Some(retry) = retry else {
        return work.await.map(Outcome::Done);
    };
    if let Some(earlier) = retry.earlier(tx).await? {
        return Ok(earlier);
    }
    let outcome = work.await?;
    if mode == Mode::Store {
        retry.keep(tx, &outcome).await?;
    }
    Ok(Outcome::Done(outcome))
}
