//! How far the change feed of an account is sequenced and pruned.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "change_feeds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// The highest position that was given.
    pub head: i64,
    /// The highest position that was deleted; 0 if none was.
    pub pruned: i64,
    /// The transaction of the entry there.
    pub pruned_transaction: Uuid,
}

impl ActiveModelBehavior for ActiveModel {}
