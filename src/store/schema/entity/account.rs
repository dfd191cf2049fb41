//! Accounts, as far as something is kept of each.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "accounts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// The last id that was given to a role.
    pub last_role_id: i64,
}

impl ActiveModelBehavior for ActiveModel {}
