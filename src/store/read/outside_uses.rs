//! Finds what uses a guide's account-wide names outside the guide: observations that set
//! them, and conditions that read them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sea_orm::{
    ConnectionTrait, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Asterisk, Query, UnionType},
};
use uuid::Uuid;

use super::{
    MAX_IDS_PER_STATEMENT,
    guide::MEMORY_PER_BYTE,
    name_users::{NameUser, NamingFields, name_uses, read_texts, read_users},
};
use crate::{
    call_context::{Permit, take_memory},
    domain::{
        analysis::{
            Criterion, GuideDraft, Outside, OutsideSetter, Variable, account_name, full_name,
        },
        ids::{StepId, TaskId},
    },
    store::{
        account::Scope,
        entity::name_use::{Column, NameUse, indexed_name},
        error::StoreError,
        rows::read_product,
    },
};

/// The maximum number of observations outside a guide that are read, and of tasks and steps outside
/// whose conditions are read. As many as the guide has are read in addition, because it may replace
/// them.
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
    pub setters: BTreeMap<String, Outside<OutsideSetter>>,
    /// The conditions that read names which the guide sets. None is listed if there are too many.
    pub readers: BTreeMap<String, Outside<Criterion>>,
}

impl OutsideUses {
    /// How many keys and targets it has.
    pub fn weight(&self) -> usize {
        let setters = self.setters.values().flat_map(|setters| &setters.list);
        let readers = self.readers.values().flat_map(|readers| &readers.list);
        setters.map(|setter| 1 + setter.keys.len()).sum::<usize>()
            + readers
                .map(|reader| 1 + reader.target_count())
                .sum::<usize>()
    }
}

/// Finds the observations outside a guide that set the names which it reads. With `replaced`, also finds
/// the conditions outside that read the names which it sets; steps of the stored tasks `replaced` are
/// not outside. Reserves the memory, and fails with OVERLOADED if there is none.
pub async fn find_outside_uses(
    scope: Scope<'_, impl ConnectionTrait>,
    draft: &GuideDraft,
    replaced: Option<&BTreeSet<TaskId>>,
    memory: &mut Permit,
) -> Result<OutsideUses, StoreError> {
    let tasks = draft.tasks().iter().map(|task| task.task.guid.0);
    let steps = draft.steps().map(|step| step.step.guid.0);
    let inside: HashSet<Uuid> = tasks.chain(steps).collect();
    let set = |variable: &&Variable| {
        replaced.is_some() && variable.task.is_none() && !variable.setters.is_empty()
    };
    let names = [
        indexed_names(
            draft
                .account_variables()
                .filter(|variable| variable.is_read),
        ),
        indexed_names(draft.account_variables().filter(set)),
    ];
    let max_users = MAX_USERS + inside.len();
    let [set, read] = read_index(scope, &names, INDEX_ROWS_PER_USER * max_users).await?;
    let [set_names, read_names] = &names;
    let mut setters = OutsideUsers::new(set_names, set, &inside);
    let mut readers = OutsideUsers::new(read_names, read, &inside);
    let ids: BTreeSet<Uuid> = setters.ids.union(&readers.ids).copied().collect();
    let mut users = read_users(scope, &Vec::from_iter(ids)).await?;
    if let Some(replaced) = replaced {
        users.retain(|user| !replaced.contains(&TaskId(user.task)));
    }
    setters.keep_fitting(&users);
    readers.keep_fitting(&users);
    if !readers.is_complete {
        readers.ids.clear();
    }
    users.retain(|user| setters.ids.contains(&user.guid) || readers.ids.contains(&user.guid));
    let bytes: i64 = users.iter().map(|user| user.size).sum();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    memory.merge(take_memory(bytes.saturating_mul(MEMORY_PER_BYTE))?);
    let texts = read_texts(scope, &users).await?;
    Ok(OutsideUses {
        setters: setters.setters(&texts)?,
        readers: readers.readers(&texts),
    })
}

/// A task or step that uses a name, and the name as the index has it.
type IndexRow = (Uuid, String);

/// Names by their form in the index.
type Names<'a> = BTreeMap<String, &'a str>;

fn indexed_names<'a>(variables: impl Iterator<Item = &'a Variable>) -> Names<'a> {
    variables
        .map(|variable| (indexed_name(&variable.name), variable.name.as_str()))
        .collect()
}

/// The rows of the index that set the first names, and the rows that read the second names, in the
/// order of their ids. If there are more than `max_rows` of either, `max_rows + 1` are returned.
async fn read_index(
    scope: Scope<'_, impl ConnectionTrait>,
    names: &[Names<'_>; 2],
    max_rows: usize,
) -> Result<[Vec<IndexRow>; 2], StoreError> {
    let mut rows = [Vec::new(), Vec::new()];
    let mut keys = names.each_ref().map(|names| names.keys());
    loop {
        let uses = keys.iter_mut().zip([NameUse::Sets, NameUse::Reads]);
        let uses = uses.filter_map(|(keys, name_use)| {
            let keys: Vec<&String> = keys.take(MAX_IDS_PER_STATEMENT).collect();
            let uses = name_uses(scope, name_use, (!keys.is_empty()).then_some(keys)?)
                .select_only()
                .columns([Column::NameUse, Column::Name, Column::Guid])
                .order_by_asc(Column::Guid)
                .limit(max_rows as u64 + 1);
            // SQLite limits the parts of a union only as subqueries.
            let mut part = Query::select();
            part.column(Asterisk)
                .from_subquery(uses.into_query(), "uses");
            Some(part)
        });
        let statement = uses.reduce(|mut all, part| all.union(UnionType::All, part).take());
        let Some(statement) = statement else {
            return Ok(rows);
        };
        for row in scope.db.query_all(&statement).await? {
            // By position, which takes less time than by name.
            let (name, guid) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
            let [set, read] = &mut rows;
            match row.try_get_by_index(0)? {
                NameUse::Sets => set.push((guid, name)),
                NameUse::Reads => read.push((guid, name)),
            }
        }
        for rows in &mut rows {
            rows.sort_unstable_by_key(|(guid, _)| *guid);
            rows.truncate(max_rows + 1);
        }
    }
}

/// The tasks and steps outside a guide that set names, or that read names.
struct OutsideUsers<'a> {
    /// The names that they use.
    names: BTreeSet<&'a str>,
    ids: BTreeSet<Uuid>,
    /// Whether none was left out.
    is_complete: bool,
}

impl<'a> OutsideUsers<'a> {
    fn new(names: &Names<'a>, mut rows: Vec<IndexRow>, inside: &HashSet<Uuid>) -> Self {
        let max_users = MAX_USERS + inside.len();
        let max_rows = INDEX_ROWS_PER_USER * max_users;
        let has_all_rows = rows.len() <= max_rows;
        rows.truncate(max_rows);
        rows.retain(|(guid, _)| !inside.contains(guid));
        let mut used: BTreeSet<&str> = names.values().copied().collect();
        if has_all_rows && rows.len() <= MAX_ROWS_BY_NAME {
            used = rows
                .iter()
                .filter_map(|(_, name)| names.get(name).copied())
                .collect();
        }
        let ids: BTreeSet<Uuid> = rows.iter().map(|(guid, _)| *guid).collect();
        Self {
            names: used,
            is_complete: has_all_rows && ids.len() <= max_users,
            ids: ids.into_iter().take(max_users).collect(),
        }
    }

    /// Keeps the users that exist, in the order of their ids, as far as their texts fit into
    /// [`MAX_BYTES`].
    fn keep_fitting(&mut self, users: &[NameUser]) {
        let ids = std::mem::take(&mut self.ids);
        let mut bytes_left = MAX_BYTES;
        for user in users.iter().filter(|user| ids.contains(&user.guid)) {
            if user.size <= bytes_left {
                bytes_left -= user.size;
                self.ids.insert(user.guid);
            } else {
                self.is_complete = false;
            }
        }
    }

    /// The uses by name.
    fn by_name<T>(
        &self,
        uses: impl IntoIterator<Item = (String, T)>,
    ) -> BTreeMap<String, Outside<T>> {
        let none = |name: &&str| {
            let outside = Outside {
                list: Vec::new(),
                is_complete: self.is_complete,
            };
            ((*name).to_owned(), outside)
        };
        let mut by_name: BTreeMap<String, Outside<T>> = self.names.iter().map(none).collect();
        for (name, used) in uses {
            if let Some(outside) = by_name.get_mut(&name) {
                outside.list.push(used);
            }
        }
        by_name
    }

    fn setters(
        &self,
        texts: &[(NameUser, NamingFields)],
    ) -> Result<BTreeMap<String, Outside<OutsideSetter>>, StoreError> {
        let mut setters = Vec::new();
        for (step, fields) in texts {
            if let (true, Some(question)) = (self.ids.contains(&step.guid), &fields.question) {
                let name = account_name(read_product(step.product_id)?, question.name.as_str());
                let keys = question.values.iter();
                let setter = OutsideSetter {
                    task: TaskId(step.task),
                    step: StepId(step.guid),
                    title: step.title.clone(),
                    keys: keys.map(|value| value.key.as_str().to_owned()).collect(),
                };
                setters.push((name, setter));
            }
        }
        Ok(self.by_name(setters))
    }

    fn readers(&self, texts: &[(NameUser, NamingFields)]) -> BTreeMap<String, Outside<Criterion>> {
        let mut readers = Vec::new();
        for (user, fields) in texts {
            if let (true, Some(group)) = (self.ids.contains(&user.guid), &fields.dependencies) {
                group.for_each_condition(&mut |condition| {
                    let name = full_name(condition);
                    if self.names.contains(name.as_ref()) {
                        readers.push((name.into_owned(), Criterion::new(condition)));
                    }
                });
            }
        }
        self.by_name(readers)
    }
}
