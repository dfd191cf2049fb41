//! Revisions: guides as they were.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "task_revisions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub task: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub number: i64,
    pub cause: i32,
    pub note: String,
    pub subject: String,
    pub created_ts: i64,
    pub task_name: String,
    pub product_id: i64,
    pub step_count: i64,
    pub guide_etag: String,
    /// The bytes of `content`.
    pub size: i64,
    /// The bytes of the document before compression.
    pub document_size: i64,
    pub content: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(has_many = "super::revision_alias::Entity")]
    Aliases,
}

impl Related<super::revision_alias::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Aliases.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
