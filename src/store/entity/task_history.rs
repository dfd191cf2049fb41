//! The history of a task, which outlives the task.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "task_histories")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub task: Uuid,
    /// The number of the newest revision that was ever made.
    pub last_number: i64,
    /// When the task was deleted; `None` while it exists.
    pub deleted_ts: Option<i64>,
    pub deleted_by: String,
}

impl ActiveModelBehavior for ActiveModel {}
