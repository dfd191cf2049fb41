//! Request ids: a retry of a create gets the outcome of the first attempt.

use sea_orm::{ActiveValue::Set, ColumnTrait, QueryFilter};

use super::{batch::Batch, tx::Tx};
use crate::{
    domain::Precondition,
    store::{
        RetryKey,
        entity::request_outcome::{ActiveModel, Column, Entity},
        error::StoreError,
    },
};

/// How long an outcome is kept, in microseconds: two days, although the API promises only one.
const OUTCOME_LIFETIME_MICROS: i64 = 2 * 24 * 60 * 60 * 1_000_000;

impl<T> RetryKey<T> {
    /// The outcome of a create, to be kept for retries.
    pub(super) fn outcome(&self, answer: &T, tx: &Tx<'_>) -> ActiveModel {
        ActiveModel {
            account_id: Set(tx.context.account.as_str().to_owned()),
            request_id: Set(self.id.0),
            digest: Set(self.digest.to_vec()),
            outcome: Set((self.encode)(answer)),
            created_ts: Set(tx.context.now.0),
        }
    }

    /// The response to an earlier attempt, if there was one.
    pub(super) async fn find_stored_outcome(
        &self,
        tx: &Tx<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let found = tx
            .find::<Entity>()
            .filter(Column::RequestId.eq(self.id.0))
            .all(tx.db())
            .await?;
        match found.into_iter().next() {
            None => Ok(None),
            Some(row) if row.digest == self.digest => Ok(Some(row.outcome)),
            Some(_) => Err(Precondition::RequestIdReused { id: self.id }.into()),
        }
    }
}

impl Batch<'_> {
    /// Stores an outcome, and deletes expired ones. If another write stores the same id first, the
    /// insertion fails with a duplicate key, and the retried write finds that outcome.
    pub fn add_outcome(&mut self, outcome: ActiveModel) {
        let expired = self.tx.context.now.0 - OUTCOME_LIFETIME_MICROS;
        let delete = self.tx.scope().delete::<Entity>();
        self.add(delete.filter(Column::CreatedTs.lt(expired)));
        self.insert(vec![outcome]);
    }
}
