//! A task's texts in one language.

use sea_orm::entity::prelude::*;

/// A row of `task_translations`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
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
    /// The task's name when this was written.
    pub made_name: String,
}

/// Empty, as each query writes its own joins.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
