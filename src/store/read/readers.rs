//! Finds the conditions of an account that read variables, by name.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::ConnectionTrait;
use uuid::Uuid;

use super::{row_reader::RowReader, setters::given_symbols};
use crate::{
    domain::{
        analysis::{Symbol, SymbolRole, TargetSet, full_name},
        dependency::{Group, Node},
        ids::AccountId,
        validation::{OutsideReader, OutsideReaders},
    },
    store::{backend, error::StoreError, json_columns, values::Values},
};

/// Most tasks and steps outside a guide whose conditions are read.
const MAX_READERS: usize = 1_000;

/// The conditions outside a guide that read account-wide names, by name. `inside` are the
/// tasks and steps of the guide. If there are more than `MAX_READERS`, all names have
/// [`OutsideReaders::TooMany`].
pub async fn find_readers_elsewhere(
    db: &impl ConnectionTrait,
    account: &AccountId,
    names: &BTreeSet<&str>,
    inside: &BTreeSet<Uuid>,
) -> Result<BTreeMap<String, OutsideReaders>, StoreError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let limit = MAX_READERS + inside.len() + 1;
    let role = SymbolRole::Reads.number();
    let mut values = Values::in_order();
    let given = given_symbols(names.iter().map(|name| Symbol::of_name(name)), &mut values);
    let mut select = |table: &str| {
        let (of_symbols, of_rows) = (values.bind(account.as_str()), values.bind(account.as_str()));
        format!(
            "SELECT r.guid, r.dependencies FROM ( \
               SELECT DISTINCT {table} AS guid FROM {table}_symbols WHERE account_id = {of_symbols} \
               AND symbol IN (SELECT symbol FROM given) AND role = {role} \
             ) y CROSS JOIN {table}s r WHERE r.account_id = {of_rows} AND r.guid = y.guid"
        )
    };
    let sql = format!(
        "{given} {} UNION ALL {} LIMIT {limit}",
        select("step"),
        select("task")
    );
    let statement = values.statement(&sql, backend(db), account);
    let rows = db.query_all_raw(statement).await?;
    if rows.len() >= limit {
        let all = names.iter();
        return Ok(all
            .map(|name| ((*name).to_owned(), OutsideReaders::TooMany))
            .collect());
    }
    let mut found: BTreeMap<String, Vec<OutsideReader>> = BTreeMap::new();
    for row in rows {
        let mut row = RowReader::new(&row);
        let guid: Uuid = row.take()?;
        let dependencies: Option<Group> = json_columns::optional(row.take()?, "dependencies")?;
        if let Some(group) = dependencies.filter(|_| !inside.contains(&guid)) {
            add_readers(&group, names, &mut found);
        }
    }
    let found = found.into_iter();
    Ok(found
        .map(|(name, readers)| (name, OutsideReaders::All(readers)))
        .collect())
}

fn add_readers(
    group: &Group,
    names: &BTreeSet<&str>,
    found: &mut BTreeMap<String, Vec<OutsideReader>>,
) {
    for node in &group.nodes {
        match node {
            Node::Group(group) => add_readers(group, names, found),
            Node::Condition(condition) => {
                let name = full_name(condition);
                if names.contains(name.as_str()) {
                    found.entry(name).or_default().push(OutsideReader {
                        operator: condition.operator,
                        targets: TargetSet::new(&condition.targets),
                    });
                }
            }
        }
    }
}
