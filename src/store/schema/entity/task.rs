//! Tasks, without their translations.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "tasks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    pub name: String,
    pub product_id: i64,
    /// The type's number in the contract.
    pub kind: i32,
    pub published: i32,
    /// The numbers of the access levels as a JSON list, in the caller's order.
    pub roles: String,
    /// The access levels as a set of bits, for filters.
    pub role_bits: i32,
    /// [`Group`](crate::domain::dependency::Group) as JSON.
    pub dependencies: Option<String>,
    pub external_id: Option<String>,
    pub parent_guid: Option<Uuid>,
    pub idx: i32,
    pub step_count: i64,
    /// [`Numbering::last_position`](crate::domain::order::Numbering::last_position).
    pub last_position: i64,
    /// [`Numbering::epoch`](crate::domain::order::Numbering::epoch).
    pub order_epoch: i64,
    /// [`task_size`](crate::domain::size::task_size).
    pub size: i64,
    /// How many translations it has. Reads skip the translations when there are none.
    pub language_count: i64,
    pub version: i64,
    pub dirty_record: bool,
    pub mvn_indexed: bool,
    pub mvn_version: i64,
    pub mvn_info: String,
    pub mvn_ts: Option<i64>,
    pub created_ts: i64,
    pub modified_ts: i64,
}

impl ActiveModelBehavior for ActiveModel {}
