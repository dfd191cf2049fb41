//! Accounts, with the state that the service keeps for each.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "accounts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// The id of the newest role.
    pub last_role_id: i64,
}

impl ActiveModelBehavior for ActiveModel {}
