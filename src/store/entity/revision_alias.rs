//! Aliases of revisions.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "revision_aliases")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub task: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub alias: String,
    /// The number of the revision.
    pub number: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::task_revision::Entity",
        from = "(Column::AccountId, Column::Task, Column::Number)",
        to = "(super::task_revision::Column::AccountId, super::task_revision::Column::Task, super::task_revision::Column::Number)"
    )]
    Revision,
}

impl Related<super::task_revision::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Revision.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
