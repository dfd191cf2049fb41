//! How far the change feed of an account is sequenced and pruned.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "change_feeds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// The highest position in use.
    pub head: i64,
    /// The highest deleted position; 0 before the first.
    pub pruned: i64,
    /// The transaction of the entry at that position.
    pub pruned_transaction: Uuid,
}

impl ActiveModelBehavior for ActiveModel {}
