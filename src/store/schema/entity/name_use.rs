//! What tasks and steps do with the names of variables.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "name_uses")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// [`NameDigest`](crate::domain::analysis::NameDigest): of a name and of what is done with it.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name_digest: Uuid,
    /// 1 of a step and 0 of a task, so that the tasks among many steps are found.
    #[sea_orm(primary_key, auto_increment = false)]
    pub in_step: i16,
    /// The task or step.
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
}

impl ActiveModelBehavior for ActiveModel {}
