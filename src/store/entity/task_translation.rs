//! A task's texts in one language.

use super::prelude::*;

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

impl ActiveModelBehavior for ActiveModel {}
