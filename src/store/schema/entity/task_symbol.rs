//! The names that the conditions of tasks read, as symbols.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "task_symbols")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// [`Symbol`](crate::domain::analysis::Symbol).
    #[sea_orm(primary_key, auto_increment = false)]
    pub symbol: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub task: Uuid,
}

impl ActiveModelBehavior for ActiveModel {}
