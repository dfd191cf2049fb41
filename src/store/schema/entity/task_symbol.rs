//! The names that tasks read and set, as symbols.

use sea_orm::entity::prelude::*;

/// A row of `task_symbols`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "task_symbols")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// [`Symbol`](crate::domain::analysis::Symbol).
    #[sea_orm(primary_key, auto_increment = false)]
    pub symbol: Vec<u8>,
    /// [`SymbolRole::number`](crate::domain::analysis::SymbolRole::number).
    #[sea_orm(primary_key, auto_increment = false)]
    pub role: i32,
    #[sea_orm(primary_key, auto_increment = false)]
    pub task: Uuid,
}

/// Empty, as each query writes its own joins.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
