//! The SeaORM entities of the tables.

use sea_orm::entity::prelude::*;

use crate::domain::ids::AccountId;

pub mod change;
pub mod change_feed;
pub mod index_deletion;
pub mod request_outcome;
pub mod revision_alias;
pub mod role;
pub mod server_key;
pub mod step;
pub mod step_symbol;
pub mod step_translation;
pub mod task;
pub mod task_history;
pub mod task_revision;
pub mod task_symbol;
pub mod task_translation;

/// The relations of every entity: none, as each query writes its own joins.
#[derive(Copy, Clone, Debug, EnumIter)]
pub enum Relation {}

impl RelationTrait for Relation {
    fn def(&self) -> RelationDef {
        match *self {}
    }
}

/// A table whose rows belong to accounts.
pub trait OfAccount: EntityTrait {
    const ACCOUNT: Self::Column;

    /// The account's rows of the table. Every query of plain rows begins with it, so that none
    /// can forget the account.
    fn select(account: &AccountId) -> Select<Self> {
        Self::find().filter(Self::ACCOUNT.eq(account.as_str()))
    }
}

macro_rules! of_account {
    ($($table:ident),*) => {
        $(impl OfAccount for $table::Entity {
            const ACCOUNT: $table::Column = $table::Column::AccountId;
        })*
    };
}

of_account!(
    change,
    change_feed,
    index_deletion,
    request_outcome,
    revision_alias,
    role,
    step,
    step_symbol,
    step_translation,
    task,
    task_history,
    task_revision,
    task_symbol,
    task_translation
);
