//! Tasks, without their translations.

use sea_orm::entity::prelude::*;

use crate::domain::{etag::Etag, time::Timestamp};

/// A row.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "tasks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    pub name: String,
    pub product_id: i64,
    /// The contract's number of the type.
    pub kind: i32,
    pub published: i32,
    /// The numbers of the access levels as a JSON list, in the caller's order.
    pub roles: String,
    /// The same as a set of bits, for filters.
    pub role_bits: i32,
    /// JSON, see [`Group::to_json`](crate::domain::dependency::Group::to_json).
    pub dependencies: Option<String>,
    pub parent_guid: Option<Uuid>,
    pub idx: i32,
    pub step_count: i64,
    /// The number of the last place: no step of the task stands behind it. It does
    /// not fall when the last step is deleted.
    pub last_position: i64,
    /// Grows when the steps are numbered anew.
    pub order_epoch: i64,
    /// About the bytes of the row and its translations on the wire.
    pub size: i64,
    pub version: i64,
    pub dirty_record: bool,
    pub mvn_indexed: bool,
    pub mvn_version: i64,
    pub mvn_info: String,
    pub mvn_ts: Option<i64>,
    pub created_ts: i64,
    pub modified_ts: i64,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// The state that this row is in.
    pub fn etag(&self) -> Etag {
        Etag::of(self.guid, self.version, Timestamp(self.modified_ts))
    }
}
