//! A statement of a write under locks.

use sea_orm::{DbBackend, Statement};

use crate::{
    domain::ids::AccountId,
    store::write::sql::{Values, list},
};

/// One statement of a write under locks.
pub struct LockedStatement {
    /// The statement.
    pub sql: String,
    /// Statements that are sent with it and take no round trip of their own. It must not
    /// depend on them, nor they on each other.
    pub attached: Vec<String>,
    /// The values of the statement and those attached to it. `$1` is the account, except in an upsert,
    /// whose rows contain it.
    pub values: Values,
    /// What happens when no row is changed.
    pub if_unchanged: IfUnchanged,
}

impl LockedStatement {
    /// The statement as a database takes it.
    pub fn statement(self, backend: DbBackend, account: &AccountId) -> Statement {
        let Self {
            sql,
            attached,
            values,
            if_unchanged: _,
        } = self;
        let sql = match backend {
            _ if attached.is_empty() => sql,
            DbBackend::Sqlite => format!("{sql}; {}", attached.join("; ")),
            // Foreign keys are checked after all of them.
            _ => {
                let attached = attached.into_iter().enumerate();
                let attached =
                    attached.map(|(index, statement)| format!("attached{index} AS ({statement})"));
                format!("WITH {} {sql}", list(attached))
            }
        };
        values.statement(sql, backend, account)
    }
}

/// What happens when a statement changes no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUnchanged {
    /// The write goes on.
    Accept,
    /// The write fails, as the task would be too large.
    RefuseAsTooLarge,
}
