//! Finds what uses a guide's account-wide names outside the guide: observations that set
//! them, and conditions that read them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sea_orm::{ConnectionTrait, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{
    MAX_IDS_PER_STATEMENT,
    guide::MEMORY_PER_BYTE,
    name_users::{NameUser, name_uses, read_texts, read_users},
};
use crate::{
    call_context::WorkMemory,
    domain::{
        Error,
        analysis::{
            GuideDraft, OutsideSetter, OutsideSetters, TargetSet, Variable, account_name, full_name,
        },
        ids::{StepId, TaskId},
        validation::{OutsideReader, OutsideReaders},
    },
    store::{
        account::Scope,
        entity::name_use::{Column, NameUse, indexed_name},
        error::StoreError,
        rows::read_product,
    },
};

/// The maximum number of observations outside a guide that are read, and of tasks and steps whose
/// conditions are read; each in addition to as many as the guide has, since it may replace these.
const MAX_USERS: usize = 1_000;
/// The maximum total size of either.
const MAX_BYTES: i64 = 8 * 1024 * 1024;
/// How many rows of the index are read for each task and step. Most have fewer.
const INDEX_ROWS_PER_USER: usize = 8;
/// If the index has more rows outside a guide, all of the guide's names count as used there.
const MAX_ROWS_BY_NAME: usize = 2_000;

/// What uses account-wide names outside a guide, by name. Unused names have no entry.
#[derive(Default)]
pub struct OutsideUses {
    /// The observations that set names which the guide reads.
    pub setters: BTreeMap<String, OutsideSetters>,
    /// The conditions that read names which the guide sets.
    pub readers: BTreeMap<String, OutsideReaders>,
}

impl OutsideUses {
    /// How many keys and targets it has.
    pub fn weight(&self) -> usize {
        let setters = self.setters.values().flat_map(OutsideSetters::list);
        let keys: usize = setters.map(|setter| 1 + setter.keys.len()).sum();
        let readers = self.readers.values().map(|readers| match readers {
            OutsideReaders::All(readers) => readers
                .iter()
                .map(|reader| 1 + reader.targets.count())
                .sum(),
            OutsideReaders::TooMany => 1,
        });
        keys + readers.sum::<usize>()
    }
}

/// Finds the observations outside a guide that set the names which it reads. With `replaced`, also finds
/// the conditions outside that read the names which it sets; steps of the stored tasks `replaced` are
/// not outside. Reserves the memory, and fails with [`Error::Overloaded`] if there is none.
pub async fn find_outside_uses(
    scope: Scope<'_, impl ConnectionTrait>,
    draft: &GuideDraft,
    replaced: Option<&BTreeSet<TaskId>>,
    memory: &mut WorkMemory,
) -> Result<OutsideUses, StoreError> {
    let tasks = draft.tasks().map(|task| task.task.guid.0);
    let steps = draft.steps().map(|step| step.step.guid.0);
    let inside = tasks.chain(steps).collect();
    let read = draft.account_variables();
    let read = read.filter(|variable| variable.is_read);
    let setters = find_users(scope, NameUse::Sets, read, &inside, replaced).await?;
    let set = draft.account_variables().filter(|variable| {
        replaced.is_some() && variable.task.is_none() && !variable.setters.is_empty()
    });
    let mut readers = find_users(scope, NameUse::Reads, set, &inside, replaced).await?;
    if !readers.is_complete {
        readers.users.clear();
    }
    let users = setters.users.iter().chain(&readers.users);
    let bytes: i64 = users.map(|user| user.size).sum();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if !memory.try_grow(bytes.saturating_mul(MEMORY_PER_BYTE)) {
        return Err(Error::Overloaded.into());
    }
    Ok(OutsideUses {
        setters: read_setters(scope, setters).await?,
        readers: read_readers(scope, readers).await?,
    })
}

/// The tasks and steps outside a guide that use names in one way, in the order of their ids.
struct OutsideUsers<'a> {
    /// The names that they use.
    names: BTreeSet<&'a str>,
    users: Vec<NameUser>,
    /// Whether none was left out.
    is_complete: bool,
}

/// Finds the first tasks and steps that use one of the names. Tasks and steps of `inside`, and steps of
/// replaced tasks, are left out.
async fn find_users<'a>(
    scope: Scope<'_, impl ConnectionTrait>,
    name_use: NameUse,
    variables: impl Iterator<Item = &'a Variable>,
    inside: &HashSet<Uuid>,
    replaced: Option<&BTreeSet<TaskId>>,
) -> Result<OutsideUsers<'a>, StoreError> {
    let max_users = MAX_USERS + inside.len();
    let max_rows = INDEX_ROWS_PER_USER * max_users;
    let names = variables.map(|variable| (indexed_name(&variable.name), variable.name.as_str()));
    let names: BTreeMap<String, &str> = names.collect();
    let keys: Vec<&String> = names.keys().collect();
    let mut rows: Vec<(Uuid, String)> = Vec::new();
    for keys in keys.chunks(MAX_IDS_PER_STATEMENT) {
        let found = name_uses(scope, name_use, keys.iter().copied())
            .select_only()
            .columns([Column::Guid, Column::Name])
            .order_by_asc(Column::Guid)
            .limit(max_rows as u64 + 1)
            .into_tuple::<(Uuid, String)>()
            .all(scope.db);
        rows.extend(found.await?);
        rows.sort_unstable();
        rows.truncate(max_rows + 1);
    }
    let has_all_rows = rows.len() <= max_rows;
    rows.truncate(max_rows);
    rows.retain(|(guid, _)| !inside.contains(guid));
    let mut used: BTreeSet<&str> = names.values().copied().collect();
    if has_all_rows && rows.len() <= MAX_ROWS_BY_NAME {
        let keys = rows.iter().map(|(_, key)| key);
        used = keys.filter_map(|key| names.get(key).copied()).collect();
    }
    let mut ids: Vec<Uuid> = rows.into_iter().map(|(guid, _)| guid).collect();
    ids.dedup();
    let mut is_complete = has_all_rows && ids.len() <= max_users;
    ids.truncate(max_users);
    let mut users = read_users(scope, &ids).await?;
    let is_replaced =
        |user: &NameUser| replaced.is_some_and(|replaced| replaced.contains(&TaskId(user.task)));
    users.retain(|user| !is_replaced(user));
    let mut bytes_left = MAX_BYTES;
    users.retain(|user| {
        let fits = user.size <= bytes_left;
        bytes_left -= if fits { user.size } else { 0 };
        is_complete &= fits;
        fits
    });
    Ok(OutsideUsers {
        names: used,
        users,
        is_complete,
    })
}

/// The observations that set the names, by name.
async fn read_setters(
    scope: Scope<'_, impl ConnectionTrait>,
    found: OutsideUsers<'_>,
) -> Result<BTreeMap<String, OutsideSetters>, StoreError> {
    let mut by_name: BTreeMap<String, Vec<OutsideSetter>> = BTreeMap::new();
    for name in &found.names {
        by_name.insert((*name).to_owned(), Vec::new());
    }
    for (step, fields) in read_texts(scope, &found.users).await? {
        let question = fields.question.ok_or(StoreError::Corrupt("content"))?;
        let name = account_name(read_product(step.product_id)?, question.name.as_str());
        if let Some(setters) = by_name.get_mut(&name) {
            let keys = question.values.into_iter();
            setters.push(OutsideSetter {
                task: TaskId(step.task),
                step: StepId(step.guid),
                title: step.title,
                keys: keys.map(|value| value.key.into_string()).collect(),
            });
        }
    }
    let list = match found.is_complete {
        true => OutsideSetters::All,
        false => OutsideSetters::TooMany,
    };
    let by_name = by_name.into_iter();
    Ok(by_name
        .map(|(name, setters)| (name, list(setters)))
        .collect())
}

/// The conditions that read the names, by name. If some were left out, none are read.
async fn read_readers(
    scope: Scope<'_, impl ConnectionTrait>,
    found: OutsideUsers<'_>,
) -> Result<BTreeMap<String, OutsideReaders>, StoreError> {
    if !found.is_complete {
        let names = found.names.into_iter();
        return Ok(names
            .map(|name| (name.to_owned(), OutsideReaders::TooMany))
            .collect());
    }
    let mut by_name: BTreeMap<String, Vec<OutsideReader>> = BTreeMap::new();
    for (_, fields) in read_texts(scope, &found.users).await? {
        let dependencies = fields.dependencies.ok_or(StoreError::Corrupt("content"))?;
        dependencies.for_each_condition(&mut |condition| {
            let name = full_name(condition);
            if found.names.contains(name.as_str()) {
                by_name.entry(name).or_default().push(OutsideReader {
                    operator: condition.operator,
                    targets: TargetSet::new(&condition.targets),
                });
            }
        });
    }
    let readers = by_name.into_iter();
    Ok(readers
        .map(|(name, readers)| (name, OutsideReaders::All(readers)))
        .collect())
}
