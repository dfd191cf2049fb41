//! Aliases of revisions.

use super::prelude::*;

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

impl ActiveModelBehavior for ActiveModel {}
