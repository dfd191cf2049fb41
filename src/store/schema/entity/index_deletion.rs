//! Deleted tasks and steps that an external index holds.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "index_deletions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    /// [`IndexKind`](crate::domain::index_work::IndexKind).
    pub kind: i32,
    /// The task, or the task of the step.
    pub task: Uuid,
    /// Names the deletion.
    pub mark: Uuid,
}

impl ActiveModelBehavior for ActiveModel {}
