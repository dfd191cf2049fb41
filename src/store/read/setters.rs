//! Finds the observations of an account that set variables, by name.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::ConnectionTrait;
use uuid::Uuid;

use super::row_reader::RowReader;
use crate::{
    domain::{
        analysis::{OutsideSetter, OutsideSetters, Symbol, SymbolRole, account_name},
        ids::{AccountId, StepId, TaskId},
    },
    store::{
        backend,
        error::StoreError,
        json_columns,
        values::{Values, list},
    },
};

/// Most observations outside a guide that are read.
const MAX_SETTERS: usize = 1_000;

/// The observations outside a guide that set account-wide names, by name. `inside` are
/// the steps of the guide.
pub async fn find_setters_elsewhere(
    db: &impl ConnectionTrait,
    account: &AccountId,
    names: &BTreeSet<&str>,
    inside: &BTreeSet<StepId>,
) -> Result<BTreeMap<String, OutsideSetters>, StoreError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let limit = MAX_SETTERS + inside.len() + 1;
    let role = SymbolRole::Sets.number();
    let mut values = Values::in_order();
    let given = given_symbols(names.iter().map(|name| Symbol::of_name(name)), &mut values);
    let (of_symbols, of_steps) = (values.bind(account.as_str()), values.bind(account.as_str()));
    let sql = format!(
        "{given} SELECT s.guid, s.task, s.product_id, s.title, s.feedback_config \
         FROM step_symbols y CROSS JOIN steps s WHERE y.account_id = {of_symbols} \
           AND y.symbol IN (SELECT symbol FROM given) AND y.role = {role} \
           AND s.account_id = {of_steps} AND s.guid = y.step \
         ORDER BY s.guid LIMIT {limit}"
    );
    let statement = values.statement(&sql, backend(db), account);
    let rows = db.query_all_raw(statement).await?;
    let complete = rows.len() < limit;
    let mut found: BTreeMap<String, Vec<OutsideSetter>> = BTreeMap::new();
    for row in rows {
        let mut row = RowReader::new(&row);
        let step = StepId(row.take()?);
        let task = TaskId(row.take::<Uuid>()?);
        let product = json_columns::product(row.take()?)?;
        let title = row.take()?;
        let feedback = json_columns::read_feedback(row.take()?)?;
        let feedback = feedback.ok_or(StoreError::Corrupt("feedback_config"))?;
        let name = account_name(product, feedback.name.as_str());
        if inside.contains(&step) || !names.contains(name.as_str()) {
            continue;
        }
        let keys = feedback.values.into_iter();
        found.entry(name).or_default().push(OutsideSetter {
            task,
            step,
            title,
            keys: keys.map(|value| value.key.into_string()).collect(),
        });
    }
    let by_name = names.iter().map(|name| {
        let list = found.remove(*name).unwrap_or_default();
        let setters = if complete {
            OutsideSetters::All(list)
        } else {
            OutsideSetters::TooMany(list)
        };
        ((*name).to_owned(), setters)
    });
    Ok(by_name.collect())
}

/// The WITH clause of a statement that uses symbols as the table `given`.
pub fn given_symbols(symbols: impl Iterator<Item = Symbol>, values: &mut Values) -> String {
    let rows = list(symbols.map(|Symbol(bytes)| values.bind_row([bytes.to_vec().into()])));
    format!("WITH given (symbol) AS (VALUES {rows})")
}
