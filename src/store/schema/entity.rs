//! The SeaORM entities of the tables.

use sea_orm::{Iterable, entity::prelude::*};

use crate::domain::ids::AccountId;

pub mod account;
pub mod change;
pub mod change_feed;
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

/// A table as statements need it that are made for any table.
pub struct TableColumns {
    pub name: &'static str,
    /// Whether its rows belong to accounts.
    pub is_of_accounts: bool,
    pub columns: Vec<(&'static str, ColumnType)>,
    /// The columns of its primary key.
    pub keys: Vec<&'static str>,
}

impl TableColumns {
    fn of<E: EntityTrait>() -> Self {
        let columns = E::Column::iter();
        let columns =
            columns.map(|column| (column.as_str(), column.def().get_column_type().clone()));
        let columns: Vec<_> = columns.collect();
        let keys = E::PrimaryKey::iter().map(|key| key.into_column().as_str());
        Self {
            name: E::default().table_name(),
            is_of_accounts: columns.iter().any(|(name, _)| *name == "account_id"),
            columns,
            keys: keys.collect(),
        }
    }
}

macro_rules! of_account {
    ($($table:ident),*) => {
        /// The columns of all tables, in no order.
        pub fn all_columns() -> Vec<TableColumns> {
            let of_accounts = vec![$(TableColumns::of::<$table::Entity>()),*];
            let keys = [TableColumns::of::<server_key::Entity>()];
            of_accounts.into_iter().chain(keys).collect()
        }

        $(impl OfAccount for $table::Entity {
            const ACCOUNT: $table::Column = $table::Column::AccountId;
        })*
    };
}

of_account!(
    account,
    change,
    change_feed,
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
    task_translation
);
