//! The SeaORM entities, one file per table.

pub mod account;
pub mod applied_migration;
pub mod change;
pub mod change_feed;
pub mod deleted_step;
pub mod deleted_step_translation;
pub mod index_deletion;
pub mod name_use;
pub mod request_outcome;
pub mod revision_alias;
pub mod role;
pub mod server_key;
pub mod step;
pub mod step_translation;
pub mod task;
pub mod task_history;
pub mod task_revision;
pub mod task_translation;

use prelude::*;

/// What the definition of an entity needs.
mod prelude {
    pub use sea_orm::entity::prelude::*;

    /// For tables without foreign keys, because their rows outlive what they describe.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
}

/// A table whose rows belong to accounts.
pub trait AccountEntity: EntityTrait {
    /// The column with the account, which comes first in the primary key.
    const ACCOUNT: Self::Column;
}

macro_rules! account_entities {
    ($($table:ident),* $(,)?) => {
        $(impl AccountEntity for $table::Entity {
            const ACCOUNT: $table::Column = $table::Column::AccountId;
        })*
    };
}

account_entities![
    account,
    change,
    change_feed,
    deleted_step,
    deleted_step_translation,
    index_deletion,
    name_use,
    request_outcome,
    revision_alias,
    role,
    step,
    step_translation,
    task,
    task_history,
    task_revision,
    task_translation,
];
