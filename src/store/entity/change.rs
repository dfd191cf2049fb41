//! Entries of the change feed.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "changes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// Drawn from a sequence while the write holds all of its locks.
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    /// The place in the account's feed, from 1; `None` until it is sequenced.
    pub position: Option<i64>,
    pub transaction_id: Uuid,
    /// The number of entries of the transaction.
    pub transaction_size: i32,
    /// [`ChangeKind`](crate::domain::change_feed::ChangeKind).
    pub kind: i16,
    pub task: Uuid,
    pub step: Option<Uuid>,
    /// The version after the change; `None` for a deletion.
    pub version: Option<i64>,
    /// When the write was made: the `modified_ts` of that version.
    pub changed_ts: i64,
    pub step_count: i32,
    /// The names of the fields that differ, separated by commas.
    pub fields: String,
    /// [`WriteRpc`](crate::domain::change_feed::WriteRpc).
    pub rpc: i16,
    pub subject: String,
}

impl ActiveModelBehavior for ActiveModel {}
