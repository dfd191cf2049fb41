//! Deleted tasks and steps that an external index may still hold.

use super::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "index_deletions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    /// [`IndexKind`](crate::domain::index_work::IndexKind).
    pub kind: i32,
    /// The task itself, or the task of the step.
    pub task: Uuid,
    /// Whether the index had acknowledged that it holds the task or step.
    pub indexed: bool,
    /// Identifies the deletion in an acknowledgement.
    pub mark: Uuid,
}

impl ActiveModelBehavior for ActiveModel {}
