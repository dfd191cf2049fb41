//! The migrations that a database has. The name of the table is that of SeaORM's migration tool.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "seaql_migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub version: String,
    /// In seconds since 1970.
    pub applied_at: i64,
}

impl ActiveModelBehavior for ActiveModel {}
