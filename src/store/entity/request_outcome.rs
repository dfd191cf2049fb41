//! Responses of creates by request id, for retries.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "request_outcomes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub request_id: Uuid,
    pub digest: Vec<u8>,
    pub outcome: Vec<u8>,
    pub created_ts: i64,
}

impl ActiveModelBehavior for ActiveModel {}
