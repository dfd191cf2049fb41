//! Request ids: a retry of a create gets the outcome of the first attempt.

use sea_orm::{ActiveValue::Set, ColumnTrait, QueryFilter, QueryTrait};

use super::{batch::Batch, tx::Tx};
use crate::{
    domain::{Precondition, ids::RequestId},
    store::{
        RetryKey,
        entity::request_outcome::{ActiveModel, Column, Entity},
        error::StoreError,
    },
};

/// How long an outcome is kept, in microseconds: two days, where the API promises one.
const OUTCOME_LIFETIME_MICROS: i64 = 2 * 24 * 60 * 60 * 1_000_000;

/// The outcome of a create, kept for retries.
pub struct KeptOutcome {
    request_id: RequestId,
    /// The digest of the request.
    digest: [u8; 32],
    answer: Vec<u8>,
}

impl<T> RetryKey<T> {
    /// The outcome to keep.
    pub(super) fn outcome(&self, answer: &T) -> KeptOutcome {
        KeptOutcome {
            request_id: self.id,
            digest: self.digest,
            answer: (self.encode)(answer),
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

impl KeptOutcome {
    /// Stores the outcome, and deletes expired ones. If another write stores the same id first, the
    /// insertion fails with a duplicate key, and the retried write finds that outcome.
    pub fn add_to(self, batch: &mut Batch, tx: &Tx<'_>) {
        let context = &tx.context;
        let expired = context.now.0 - OUTCOME_LIFETIME_MICROS;
        let delete = tx.scope().delete::<Entity>();
        batch.add(delete.filter(Column::CreatedTs.lt(expired)).into_query());
        let row = ActiveModel {
            account_id: Set(context.account.as_str().to_owned()),
            request_id: Set(self.request_id.0),
            digest: Set(self.digest.to_vec()),
            outcome: Set(self.answer),
            created_ts: Set(context.now.0),
        };
        batch.insert(vec![row]);
    }
}
