//! A write that is sent at once.

use sea_orm::{DbBackend, Statement};

use super::Values;
use crate::domain::ids::AccountId;

/// A statement of a [`Script`] that changes rows only if the guard has changed its row.
pub struct Effect {
    before: String,
    uses: GuardUse,
    after: String,
    must_change: bool,
    may_change_none: bool,
}

/// What stands between the two texts of an effect.
enum GuardUse {
    /// The table with the guard's row.
    Row,
    /// A condition.
    Condition,
}

impl Effect {
    /// An INSERT of what it selects from the guard's row. The text ends in `FROM `.
    pub fn insert_of_row(insert: String) -> Self {
        Self::new(insert, GuardUse::Row, String::new())
    }

    /// An INSERT whose text ends before its WHERE, and its `ON CONFLICT`, if any.
    pub fn insert(mut insert: String, on_conflict: String) -> Self {
        insert.push_str(" WHERE ");
        Self::new(insert, GuardUse::Condition, on_conflict)
    }

    /// A DELETE whose text ends in its conditions.
    pub fn delete(mut delete: String) -> Self {
        delete.push_str(" AND ");
        Self::new(delete, GuardUse::Condition, String::new())
    }

    fn new(before: String, uses: GuardUse, after: String) -> Self {
        Self {
            before,
            uses,
            after,
            must_change: false,
            may_change_none: false,
        }
    }

    /// The effect must change a row, else PostgreSQL rolls the script back. On SQLite nothing
    /// can have changed since the guard.
    pub fn must_change(self) -> Self {
        Self {
            must_change: true,
            ..self
        }
    }

    /// The effect may find no rows. Of one script only one may.
    pub fn may_change_none(self) -> Self {
        Self {
            may_change_none: true,
            ..self
        }
    }

    /// Appends the statement to a text.
    fn push_onto(&self, sql: &mut String, row: &str, condition: &str) {
        sql.push_str(&self.before);
        sql.push_str(match self.uses {
            GuardUse::Row => row,
            GuardUse::Condition => condition,
        });
        sql.push_str(&self.after);
    }
}

/// A write that is sent in one round trip: one statement on PostgreSQL, one hand-over to the
/// connection's thread on SQLite.
///
/// *Invariant:* the guard changes one row or none; when it changes none, no effect takes
/// place. No lock is needed beforehand: on PostgreSQL the guard waits for whoever changes the
/// row and then sees the row as that transaction has left it. The guard must check everything that
/// the write relies on; otherwise an effect [must change](Effect::must_change) a row.
pub struct Script {
    /// An INSERT, UPDATE or DELETE with its condition.
    pub guard: String,
    /// The columns of the guard's row that the effects and the answer use.
    pub returning: &'static str,
    /// The FROM and WHERE that find the guard's row again.
    pub guard_row: String,
    /// What happens when the guard has changed a row.
    pub effects: Vec<Effect>,
    /// The values of all statements.
    pub values: Values,
}

impl Script {
    /// The script as a database takes it.
    pub fn statement(self, backend: DbBackend, account: &AccountId) -> Statement {
        let sql = match backend {
            DbBackend::Sqlite => self.for_sqlite(),
            _ => self.for_postgres(),
        };
        self.values.statement(sql, backend, account)
    }

    fn for_sqlite(&self) -> String {
        // `changes()` counts the rows of the statement before, so what may change none comes
        // last. Nobody else writes meanwhile, so there is nothing to verify.
        let Self {
            guard,
            returning,
            guard_row,
            effects,
            values: _,
        } = self;
        let changed = format!("(SELECT {returning} {guard_row} AND changes() > 0) AS guard");
        let mut sql = format!("{guard} RETURNING {returning}");
        let (last, first): (Vec<&Effect>, Vec<&Effect>) =
            effects.iter().partition(|effect| effect.may_change_none);
        debug_assert!(last.len() <= 1, "an effect behind {sql} would be skipped");
        for effect in first.into_iter().chain(last) {
            sql.push_str("; ");
            effect.push_onto(&mut sql, &changed, "changes() > 0");
        }
        sql
    }

    fn for_postgres(&self) -> String {
        let Self {
            guard,
            returning,
            guard_row: _,
            effects,
            values: _,
        } = self;
        let mut sql = format!("WITH guard AS ({guard} RETURNING {returning})");
        let mut answer = String::from(*returning);
        for (index, effect) in effects.iter().enumerate() {
            sql.push_str(&format!(", effect{index} AS ("));
            effect.push_onto(&mut sql, "guard", "EXISTS (SELECT 1 FROM guard)");
            sql.push_str(if effect.must_change {
                " RETURNING 1)"
            } else {
                ")"
            });
            if effect.must_change {
                // A division by zero (SQLSTATE 22012) rolls the statement back.
                answer.push_str(&format!(", 1 / (SELECT count(*) FROM effect{index})"));
            }
        }
        format!("{sql} SELECT {answer} FROM guard")
    }
}
