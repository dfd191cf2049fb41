//! Finds what uses a guide's account-wide names outside the guide: observations that set
//! them, and conditions that read them.
//!
//! The index of names says which tasks and steps use a name. Only the sizes and then the texts of those
//! outside the guide are read.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sea_orm::{ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{
    MAX_IDS_PER_STATEMENT,
    guide::MEMORY_PER_BYTE,
    named::{NameUser, read_texts, read_users},
};
use crate::{
    analysis_threads::check_call,
    call_context::WorkMemory,
    domain::{
        Error,
        analysis::{
            NameDigest, NameUse, OutsideSetter, OutsideSetters, TargetSet, account_name, full_name,
        },
        ids::{StepId, TaskId},
        validation::{OutsideReader, OutsideReaders},
    },
    store::{account::Scope, entity::name_use, error::StoreError, rows::read_product},
};

/// The maximum number of observations outside a guide that are read.
const MAX_SETTERS: usize = 1_000;
/// The maximum number of tasks and steps outside a guide whose conditions are read.
const MAX_READERS: usize = 1_000;
/// The maximum total size of the steps whose questions are read, and of the tasks and steps whose
/// conditions are read.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How many rows of the index are read for each task and step of the guide. Most have fewer.
const MAX_INDEX_ROWS_PER_ID: usize = 8;

/// Account-wide names of a guide.
#[derive(Default)]
pub struct AccountNames<'a> {
    /// Names that conditions of the guide read, for which setters are found.
    pub read: BTreeSet<&'a str>,
    /// Names that observations of the guide set, for which readers are found.
    pub set: BTreeSet<&'a str>,
}

/// The ids that count as a part of a guide.
pub struct GuideExtent {
    /// Its tasks and steps.
    pub ids: HashSet<Uuid>,
    /// Stored tasks that it replaces, whose steps are left out, too.
    pub replaced: BTreeSet<TaskId>,
}

/// What uses account-wide names outside a guide, by name.
#[derive(Default)]
pub struct OutsideUses {
    /// The observations that set the names which the guide reads; all of these names have an
    /// entry.
    pub setters: BTreeMap<String, OutsideSetters>,
    /// The conditions that read the names which the guide sets; names without any have no
    /// entry. If there are more than [`MAX_READERS`] or [`MAX_BYTES`], all names
    /// have [`OutsideReaders::TooMany`].
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

impl AccountNames<'_> {
    /// The digests of what sets the names that the guide reads.
    fn setter_digests(&self) -> Vec<Uuid> {
        digests(&self.read, NameUse::Sets)
    }

    /// The digests of what reads the names that the guide sets.
    fn reader_digests(&self) -> Vec<Uuid> {
        digests(&self.set, NameUse::Reads)
    }

    /// Keeps the names whose digests something outside has.
    fn retain(&mut self, outside: &HashSet<NameDigest>) {
        // Without digests to keep, no name is hashed.
        let is_kept =
            |used, name| !outside.is_empty() && outside.contains(&NameDigest::new(used, name));
        self.read.retain(|name| is_kept(NameUse::Sets, name));
        self.set.retain(|name| is_kept(NameUse::Reads, name));
    }
}

fn digests(names: &BTreeSet<&str>, used: NameUse) -> Vec<Uuid> {
    let digests = names.iter().map(|name| NameDigest::new(used, name));
    digests.map(|NameDigest(digest)| digest).collect()
}

/// Keeps the names that are used outside the guide, or by steps of tasks that it replaces: the
/// index does not say to which task a step belongs.
///
/// Most names are used in one guide only, which the index shows without reading a step.
pub async fn retain_used_outside(
    names: &mut AccountNames<'_>,
    scope: Scope<'_, impl ConnectionTrait>,
    inside: &GuideExtent,
) -> Result<(), StoreError> {
    use name_use::Column;
    let digests = [names.setter_digests(), names.reader_digests()].concat();
    let mut rows_left = MAX_SETTERS + MAX_READERS + MAX_INDEX_ROWS_PER_ID * inside.ids.len();
    let mut outside = HashSet::new();
    for digests in digests.chunks(MAX_IDS_PER_STATEMENT) {
        check_call()?;
        let rows: Vec<(Uuid, Uuid)> = scope
            .find::<name_use::Entity>()
            .select_only()
            .columns([Column::NameDigest, Column::Guid])
            .filter(Column::NameDigest.is_in(digests.iter().copied()))
            .limit(rows_left as u64)
            .into_tuple()
            .all(scope.db)
            .await?;
        rows_left -= rows.len();
        if rows_left == 0 {
            // There are too many rows to tell, so all names are kept.
            return Ok(());
        }
        for (digest, guid) in rows {
            if !inside.ids.contains(&guid) {
                outside.insert(NameDigest(digest));
            }
        }
    }
    names.retain(&outside);
    Ok(())
}

/// Finds what uses the names outside the guide, and holds the memory for it. Fails with
/// [`Error::Overloaded`] if there is none.
pub async fn find_outside_uses(
    names: &AccountNames<'_>,
    scope: Scope<'_, impl ConnectionTrait>,
    inside: &GuideExtent,
    memory: &mut WorkMemory,
) -> Result<OutsideUses, StoreError> {
    let setters = find_users(scope, &names.setter_digests(), MAX_SETTERS, inside).await?;
    let mut readers = find_users(scope, &names.reader_digests(), MAX_READERS, inside).await?;
    if !readers.is_complete {
        // None are kept.
        readers = FoundUsers::default();
    }
    let bytes = setters.bytes + readers.bytes;
    if !memory.try_grow(bytes.saturating_mul(MEMORY_PER_BYTE)) {
        return Err(Error::Overloaded.into());
    }
    let mut uses = OutsideUses::default();
    let mut by_name = read_setters(scope, &setters.users, &names.read).await?;
    for name in &names.read {
        let list = by_name.remove(*name).unwrap_or_default();
        let of_name = if setters.is_complete {
            OutsideSetters::All(list)
        } else {
            OutsideSetters::TooMany(list)
        };
        uses.setters.insert((*name).to_owned(), of_name);
    }
    if readers.is_complete {
        let by_name = read_readers(scope, &readers.users, &names.set).await?;
        let by_name = by_name.into_iter();
        uses.readers = by_name
            .map(|(name, list)| (name, OutsideReaders::All(list)))
            .collect();
    } else {
        let names = names.set.iter().map(|name| (*name).to_owned());
        uses.readers = names.map(|name| (name, OutsideReaders::TooMany)).collect();
    }
    Ok(uses)
}

/// The tasks and steps outside a guide that use names in one way, in the order of their ids.
#[derive(Default)]
struct FoundUsers {
    users: Vec<NameUser>,
    bytes: usize,
    /// Whether none was left out.
    is_complete: bool,
}

/// Finds the tasks and steps outside a guide that have one of these digests, at most `max_users` in
/// addition to the tasks and steps of the guide.
async fn find_users(
    scope: Scope<'_, impl ConnectionTrait>,
    digests: &[Uuid],
    max_users: usize,
    inside: &GuideExtent,
) -> Result<FoundUsers, StoreError> {
    let max_users = max_users + inside.ids.len();
    let mut ids = read_user_ids(scope, digests, max_users + 1).await?;
    let mut found = FoundUsers {
        is_complete: ids.len() <= max_users,
        ..FoundUsers::default()
    };
    ids.truncate(max_users);
    ids.retain(|(guid, _)| !inside.ids.contains(guid));
    let users = read_users(scope, &ids).await?.into_iter();
    for user in users.filter(|user| !inside.replaced.contains(&TaskId(user.task))) {
        let bytes = found.bytes.saturating_add(user.bytes());
        if bytes <= MAX_BYTES {
            found.bytes = bytes;
            found.users.push(user);
        } else {
            found.is_complete = false;
        }
    }
    Ok(found)
}

/// The first tasks and steps that have one of these digests, in the order of their ids, each with
/// `in_step` of the index.
async fn read_user_ids(
    scope: Scope<'_, impl ConnectionTrait>,
    digests: &[Uuid],
    limit: usize,
) -> Result<Vec<(Uuid, i16)>, StoreError> {
    use name_use::Column;
    let mut users = BTreeSet::new();
    for digests in digests.chunks(MAX_IDS_PER_STATEMENT) {
        check_call()?;
        let rows: Vec<(Uuid, i16)> = scope
            .find::<name_use::Entity>()
            .select_only()
            .columns([Column::Guid, Column::InStep])
            .distinct()
            .filter(Column::NameDigest.is_in(digests.iter().copied()))
            .order_by_asc(Column::Guid)
            .limit(limit as u64)
            .into_tuple()
            .all(scope.db)
            .await?;
        users.extend(rows);
    }
    Ok(users.into_iter().take(limit).collect())
}

/// The observations among these steps that set one of the names, by name.
async fn read_setters(
    scope: Scope<'_, impl ConnectionTrait>,
    steps: &[NameUser],
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Vec<OutsideSetter>>, StoreError> {
    let mut found: BTreeMap<String, Vec<OutsideSetter>> = BTreeMap::new();
    for step in read_texts(scope, steps).await? {
        let question = step.content.0.question;
        let question = question.ok_or(StoreError::Corrupt("content"))?;
        let name = account_name(read_product(step.product_id)?, question.name.as_str());
        if names.contains(name.as_str()) {
            let keys = question.values.into_iter();
            found.entry(name).or_default().push(OutsideSetter {
                task: TaskId(step.task),
                step: StepId(step.guid),
                title: step.title,
                keys: keys.map(|value| value.key.into_string()).collect(),
            });
        }
    }
    Ok(found)
}

/// The conditions of these tasks and steps that read one of the names, by name.
async fn read_readers(
    scope: Scope<'_, impl ConnectionTrait>,
    users: &[NameUser],
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Vec<OutsideReader>>, StoreError> {
    let mut found: BTreeMap<String, Vec<OutsideReader>> = BTreeMap::new();
    for user in read_texts(scope, users).await? {
        check_call()?;
        let dependencies = user.content.0.dependencies;
        let dependencies = dependencies.ok_or(StoreError::Corrupt("content"))?;
        dependencies.for_each_condition(&mut |condition| {
            let name = full_name(condition);
            if names.contains(name.as_str()) {
                found.entry(name).or_default().push(OutsideReader {
                    operator: condition.operator,
                    targets: TargetSet::new(&condition.targets),
                });
            }
        });
    }
    Ok(found)
}
