//! Which tasks and steps read and set a variable.

use sea_orm::entity::prelude::*;

/// `in_step` of a task.
pub const IN_TASK: i16 = 0;
/// `in_step` of a step.
pub const IN_STEP: i16 = 1;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "name_uses")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// [`NameDigest`](crate::domain::analysis::NameDigest) of a name and its use.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name_digest: Uuid,
    /// [`IN_STEP`] or [`IN_TASK`]. It lets a query find the few tasks among many steps.
    #[sea_orm(primary_key, auto_increment = false)]
    pub in_step: i16,
    /// The task or step.
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    /// The step that uses the name.
    #[sea_orm(
        belongs_to = "super::step::Entity",
        from = "(Column::AccountId, Column::Guid)",
        to = "(super::step::Column::AccountId, super::step::Column::Guid)"
    )]
    Step,
    /// The task that uses the name.
    #[sea_orm(
        belongs_to = "super::task::Entity",
        from = "(Column::AccountId, Column::Guid)",
        to = "(super::task::Column::AccountId, super::task::Column::Guid)"
    )]
    Task,
}

impl ActiveModelBehavior for ActiveModel {}
