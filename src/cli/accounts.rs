//! What `expertise accounts` and `expertise copy` print.

use serde_json::json;

use super::{
    CliError, Format, confirm,
    layout::table,
    out::{self, print_array},
    wording,
};
use crate::domain::{account::AccountSummary, time::Timestamp};

const NEEDS_FORCE: &str = "accounts delete asks for confirmation, but there is no terminal: use \
    --force to delete without asking";

const COLUMNS: [&str; 5] = ["ACCOUNT", "TASKS", "STEPS", "BYTES", "LAST CHANGE"];

pub fn print_accounts(accounts: &[AccountSummary], format: Format) -> Result<(), CliError> {
    match format {
        Format::Text if accounts.is_empty() => {
            out::print_error("the database has no accounts");
            Ok(())
        }
        Format::Text => {
            let rows: Vec<[String; 5]> = accounts.iter().map(row).collect();
            out::print_text(&table(COLUMNS, &rows))
        }
        Format::Json => print_array(accounts.iter().map(|account| {
            json!({
                "account": account.account,
                "tasks": account.tasks,
                "steps": account.steps,
                "bytes": account.bytes,
                "last_change": account.last_change.map(time),
            })
        })),
    }
}

fn row(account: &AccountSummary) -> [String; 5] {
    [
        account.account.clone(),
        account.tasks.to_string(),
        account.steps.to_string(),
        account.bytes.to_string(),
        account.last_change.map_or_else(String::new, time),
    ]
}

fn time(Timestamp(micros): Timestamp) -> String {
    wording::time(Some(prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: 0,
    }))
}

/// Asks for confirmation to delete an account, and prints a line if it is denied.
pub fn agrees_to_delete_account(account: &AccountSummary) -> Result<bool, CliError> {
    confirm::require_terminal(NEEDS_FORCE)?;
    out::print_note(&table(COLUMNS, &[row(account)]));
    let agrees = confirm::agrees("permanently delete this account and all its data?");
    if !agrees {
        out::print_error(confirm::NOTHING_DELETED);
    }
    Ok(agrees)
}

pub fn print_deleted_account(account: &str, rows: u64, format: Format) -> Result<(), CliError> {
    let text = format!("deleted account {account}: {rows} rows\n");
    out::print_either(format, &text, &json!({"account": account, "rows": rows}))
}

pub fn print_copied(tables: impl Iterator<Item = (&'static str, u64)>) -> Result<(), CliError> {
    let rows = tables.map(|(name, rows)| [name.to_owned(), rows.to_string()]);
    let rows: Vec<[String; 2]> = rows.collect();
    out::print_text(&table(["TABLE", "ROWS"], &rows))
}
