//! The entries of the change feed.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "changes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// Drawn while the write holds its locks; the database sets it.
    #[sea_orm(primary_key)]
    pub seq: i64,
    /// Its place in the feed of the account, from 1; `None` until it is sequenced.
    pub position: Option<i64>,
    pub transaction_id: Uuid,
    /// How many entries the transaction has.
    pub transaction_size: i32,
    /// [`ChangeKind`](crate::domain::change_feed::ChangeKind).
    pub kind: i16,
    pub task: Uuid,
    pub step: Option<Uuid>,
    /// The version after the change; `None` if it was deleted.
    pub version: Option<i64>,
    /// When the write was made. It is the `modified_ts` of that version.
    pub changed_ts: i64,
    pub step_count: i32,
    /// The names of the fields that differ, with commas between them.
    pub fields: String,
    /// [`WriteRpc`](crate::domain::change_feed::WriteRpc).
    pub rpc: i16,
    pub subject: String,
}

impl ActiveModelBehavior for ActiveModel {}
