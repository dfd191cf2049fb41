//! The rows of the names that tasks and steps read and set.

use sea_orm::{ActiveValue::Set, Value};
use uuid::Uuid;

use super::sql::{Deletion, RowChange, Upsert};
use crate::{
    domain::{
        analysis::{ChangedSymbols, Symbol, changed_symbols},
        changes::{Changes, StepChange, TaskChange},
        ids::{AccountId, StepId},
    },
    store::schema::entity::{step_symbol, task_symbol},
};

/// Rows of one table that a write adds and deletes.
struct SymbolRows<M> {
    added: Vec<M>,
    dropped: Vec<Vec<Value>>,
}

impl<M> SymbolRows<M> {
    const EMPTY: Self = Self {
        added: Vec::new(),
        dropped: Vec::new(),
    };

    fn add(&mut self, id: Uuid, change: ChangedSymbols, row: impl Fn(Uuid) -> M) {
        let ChangedSymbols { added, dropped } = change;
        self.added
            .extend(added.into_iter().map(|Symbol(symbol)| row(symbol)));
        let dropped = dropped.into_iter();
        self.dropped
            .extend(dropped.map(|Symbol(symbol)| vec![symbol.into(), id.into()]));
    }
}

/// The rows in which the names of changed tasks and steps differ, and those of deleted ones.
/// When no task or step reads or sets other names than before and none is deleted, there are
/// none. The deletions of deleted tasks and steps come last, as they may find no rows: on SQLite,
/// a script stops after a statement that changes no row.
pub fn symbol_changes(changes: &Changes, account: &AccountId) -> Vec<RowChange> {
    let mut tasks = SymbolRows::EMPTY;
    let mut deleted_tasks = Vec::new();
    let deleted_steps = changes.deleted_steps.iter().map(|deleted| deleted.step);
    let mut deleted_steps: Vec<Vec<Value>> = deleted_steps.map(key_of_step).collect();
    for change in &changes.tasks {
        let (before, after) = match change {
            TaskChange::Create(after) => (None, after),
            TaskChange::Update { before, after } => (Some(before.as_ref()), after),
            TaskChange::Delete { task, steps } => {
                deleted_tasks.push(vec![task.0.into()]);
                deleted_steps.extend(steps.iter().copied().map(key_of_step));
                continue;
            }
        };
        let guid = after.guid.0;
        tasks.add(guid, changed_symbols(before, after.as_ref()), |symbol| {
            task_symbol::ActiveModel {
                account_id: Set(account.as_str().to_owned()),
                symbol: Set(symbol),
                task: Set(guid),
            }
        });
    }
    let mut steps = SymbolRows::EMPTY;
    for change in &changes.steps {
        let StepChange { before, after, .. } = change;
        let guid = after.guid.0;
        let changed = changed_symbols(before.as_deref(), after.as_ref());
        steps.add(guid, changed, |symbol| step_symbol::ActiveModel {
            account_id: Set(account.as_str().to_owned()),
            symbol: Set(symbol),
            step: Set(guid),
        });
    }
    vec![
        RowChange::Upsert(Upsert::new(tasks.added)),
        RowChange::Upsert(Upsert::new(steps.added)),
        deletion("task_symbols", &["symbol", "task"], tasks.dropped),
        deletion("step_symbols", &["symbol", "step"], steps.dropped),
        deletion("task_symbols", &["task"], deleted_tasks),
        deletion("step_symbols", &["step"], deleted_steps),
    ]
}

fn key_of_step(step: StepId) -> Vec<Value> {
    vec![step.0.into()]
}

fn deletion(table: &'static str, key: &'static [&'static str], rows: Vec<Vec<Value>>) -> RowChange {
    RowChange::Delete(Deletion { table, key, rows })
}
