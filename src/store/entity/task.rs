//! Tasks, without their translations.

use sea_orm::entity::prelude::*;

use crate::{domain::task::TaskContent, store::json::Json};

#[derive(Clone, Debug, Default, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "tasks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    pub name: String,
    pub product_id: i64,
    /// The type's number in the API.
    pub kind: i32,
    pub published: i32,
    /// The access levels as a set of bits, for filters.
    pub role_bits: i32,
    pub external_id: Option<String>,
    /// The task whose observation manages this one.
    pub parent_guid: Option<Uuid>,
    pub idx: i32,
    pub step_count: i64,
    /// [`Numbering::last_position`](crate::domain::order::Numbering::last_position).
    pub last_position: i64,
    /// [`Numbering::epoch`](crate::domain::order::Numbering::epoch).
    pub order_epoch: i64,
    /// [`task_size`](crate::domain::size::task_size).
    pub size: i64,
    /// The number of its translations.
    pub language_count: i64,
    pub version: i64,
    /// Whether the external index has not acknowledged this version.
    pub dirty_record: bool,
    /// Whether `ListIndexWork` has listed it since the external index said that it does not hold it.
    pub listed: bool,
    /// Whether the external index holds the task.
    pub mvn_indexed: bool,
    pub mvn_version: i64,
    pub mvn_info: String,
    pub mvn_ts: Option<i64>,
    pub created_ts: i64,
    pub modified_ts: i64,
    /// When the guide last needed no checkpoint: a revision is at least as new, or the guide was
    /// too large for a checkpoint. 0 if that is not known.
    pub kept_ts: i64,
    /// The fields that no statement filters or sorts by. They may be large.
    pub content: Json<TaskContent>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(has_many = "super::task_translation::Entity")]
    Translations,
}

impl Related<super::task_translation::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Translations.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
