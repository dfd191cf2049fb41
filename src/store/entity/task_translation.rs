//! A task's texts in one language.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "task_translations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub task: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub language: String,
    pub name: Option<String>,
    pub locked: bool,
    /// The task's name when this translation was written.
    pub translated_from_name: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::task::Entity",
        from = "(Column::AccountId, Column::Task)",
        to = "(super::task::Column::AccountId, super::task::Column::Guid)"
    )]
    Task,
}

impl Related<super::task::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Task.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
