//! Request ids: a retry of a create gets the outcome of the first try.

use sea_orm::{ActiveValue::Set, ColumnTrait, QueryFilter};

use super::{
    sql::{Script, Upsert, Values},
    transaction::Tx,
};
use crate::{
    domain::{Precondition, decide::WriteContext, ids::RequestId},
    store::{
        RetryKey,
        error::StoreError,
        schema::entity::request_outcome::{ActiveModel, Column, Entity},
    },
};

/// How long an outcome is kept, in microseconds: two days, where the contract
/// promises one.
const OUTCOME_LIFETIME_MICROS: i64 = 2 * 24 * 60 * 60 * 1_000_000;

/// The outcome of a create, as it is kept for a retry.
pub struct KeptOutcome {
    /// The caller's id of the request.
    pub request_id: RequestId,
    /// The digest of the payload.
    pub digest: [u8; 32],
    /// What a retry is answered with.
    pub answer: Vec<u8>,
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

    /// What an earlier try was answered with, if there was one.
    pub(super) async fn find_stored_outcome(&self, tx: &Tx) -> Result<Option<Vec<u8>>, StoreError> {
        let found = tx
            .select::<Entity>()
            .filter(Column::RequestId.eq(self.id.0))
            .one(&tx.db)
            .await?;
        match found {
            None => Ok(None),
            Some(row) if row.digest == self.digest => Ok(Some(row.outcome)),
            Some(_) => Err(Precondition::RequestIdReused { id: self.id }.into()),
        }
    }
}

impl KeptOutcome {
    /// Has the guard of a script match no row if an outcome with this id is stored.
    pub fn add_retry_check(&self, script: &mut Script) {
        let id = script.values.bind(self.request_id.0);
        script.guard.push_str(&format!(
            " AND NOT EXISTS (SELECT 1 FROM request_outcomes \
             WHERE account_id = $1 AND request_id = {id})"
        ));
    }

    /// The row of the outcome. If another write stores the same id first, the insertion fails
    /// with a duplicate key, and the write finds that outcome when it is run again.
    pub fn row(&self, context: &WriteContext) -> Upsert {
        Upsert::new(vec![ActiveModel {
            account_id: Set(context.account.as_str().to_owned()),
            request_id: Set(self.request_id.0),
            digest: Set(self.digest.to_vec()),
            outcome: Set(self.answer.clone()),
            created_ts: Set(context.now.0),
        }])
    }
}

/// Deletes outcomes that are no longer kept. It may change no row, so it comes last in a
/// script.
pub fn delete_expired(values: &mut Values, context: &WriteContext) -> String {
    let expired = values.bind(context.now.0 - OUTCOME_LIFETIME_MICROS);
    format!("DELETE FROM request_outcomes WHERE account_id = $1 AND created_ts < {expired}")
}
