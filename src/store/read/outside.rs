//! Finds what uses a guide's account-wide names outside the guide: observations that set
//! them, and conditions that read them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sea_orm::ConnectionTrait;
use uuid::Uuid;

use super::{guide::MEMORY_PER_BYTE, off_runtime::check_call};
use crate::{
    call_context::WorkMemory,
    domain::{
        Error,
        analysis::{
            NameDigest, NameUse, OutsideSetter, OutsideSetters, TargetSet, account_name, full_name,
        },
        dependency::Group,
        ids::{AccountId, StepId, TaskId},
        validation::{OutsideReader, OutsideReaders},
    },
    store::{
        backend,
        error::StoreError,
        json_columns,
        row_reader::RowReader,
        values::{MAX_IDS_PER_STATEMENT, Values, list},
    },
};

/// Most observations outside a guide that are read.
const MAX_SETTERS: usize = 1_000;
/// Most tasks and steps outside a guide whose conditions are read.
const MAX_READERS: usize = 1_000;
/// Most bytes of the steps whose questions are read, and of the tasks and steps whose
/// conditions are read.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How many rows of the index are read for a task or step of the guide. Most have fewer.
const MAX_INDEX_ROWS_OF_AN_ID: usize = 8;

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
    fn is_empty(&self) -> bool {
        self.read.is_empty() && self.set.is_empty()
    }

    /// A WITH clause with the table `given`: the digests to search for, those of setters for
    /// names that the guide reads, and the reverse. `used` is the use as a number.
    fn bind(&self, values: &mut Values) -> String {
        let read = self.read.iter().map(|name| (name, NameUse::Sets));
        let set = self.set.iter().map(|name| (name, NameUse::Reads));
        let rows = list(read.chain(set).map(|(name, used)| {
            let NameDigest(digest) = NameDigest::new(used, name);
            format!("({}, {})", values.bind(digest), use_number(used))
        }));
        format!("WITH given (name_digest, used) AS (VALUES {rows})")
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

/// Keeps the names that are used outside the guide, or by steps of tasks that it replaces: the
/// index does not say to which task a step belongs.
///
/// Most names are used in one guide only, which the index shows without reading a step.
pub async fn retain_used_outside(
    names: &mut AccountNames<'_>,
    db: &impl ConnectionTrait,
    account: &AccountId,
    inside: &GuideExtent,
) -> Result<(), StoreError> {
    if names.is_empty() {
        return Ok(());
    }
    let limit = MAX_SETTERS + MAX_READERS + MAX_INDEX_ROWS_OF_AN_ID * inside.ids.len();
    let mut values = Values::in_order();
    let given = names.bind(&mut values);
    let of_account = values.bind(account.as_str());
    let sql = format!(
        "{given} SELECT y.name_digest, y.guid FROM given g CROSS JOIN name_uses y \
         WHERE y.account_id = {of_account} AND y.name_digest = g.name_digest LIMIT {limit}"
    );
    let statement = values.statement(sql, backend(db), account);
    let rows = db.query_all_raw(statement).await?;
    if rows.len() >= limit {
        // There are too many rows to tell, so all names are kept.
        return Ok(());
    }
    let mut outside = HashSet::new();
    for row in rows {
        let mut row = RowReader::new(&row);
        let digest = NameDigest(row.take()?);
        if !inside.ids.contains(&row.take()?) {
            outside.insert(digest);
        }
    }
    names.retain(&outside);
    Ok(())
}

/// Finds what uses the names outside the guide, and holds the memory for it. Fails with
/// [`Error::Overloaded`] if there is none.
pub async fn find_outside_uses(
    names: &AccountNames<'_>,
    db: &impl ConnectionTrait,
    account: &AccountId,
    inside: &GuideExtent,
    memory: &mut WorkMemory,
) -> Result<OutsideUses, StoreError> {
    if names.is_empty() {
        return Ok(OutsideUses::default());
    }
    let max_setters = MAX_SETTERS + inside.ids.len();
    let max_readers = MAX_READERS + inside.ids.len();
    let mut values = Values::in_order();
    let given = names.bind(&mut values);
    let mut selects = Vec::new();
    if !names.read.is_empty() {
        let users = users_sql("step", NameUse::Sets, account, &mut values);
        selects.push(format!("{users} LIMIT {}", max_setters + 1));
    }
    if !names.set.is_empty() {
        for kind in ["step", "task"] {
            let users = users_sql(kind, NameUse::Reads, account, &mut values);
            selects.push(format!("{users} LIMIT {}", max_readers + 1));
        }
    }
    let selects = selects.into_iter().enumerate();
    let selects = selects.map(|(index, select)| format!("SELECT * FROM ({select}) u{index}"));
    let selects: Vec<String> = selects.collect();
    let sql = format!("{given} {}", selects.join(" UNION ALL "));
    let statement = values.statement(sql, backend(db), account);
    let rows = db.query_all_raw(statement).await?;
    let mut of_setters = FoundRows::new(max_setters);
    let mut of_readers = FoundRows::new(max_readers);
    for row in rows {
        let row = FoundRow::read(&mut RowReader::new(&row))?;
        let is_inside = inside.ids.contains(&row.guid) || inside.replaced.contains(&row.task);
        let found = match row.used == use_number(NameUse::Sets) {
            true => &mut of_setters,
            false => &mut of_readers,
        };
        found.add(row, is_inside);
    }
    let (all_setters, all_readers) = (of_setters.is_complete, of_readers.is_complete);
    if !all_readers {
        of_readers.rows.clear();
    }
    let mut setters: BTreeMap<String, Vec<OutsideSetter>> = BTreeMap::new();
    let mut readers: BTreeMap<String, Vec<OutsideReader>> = BTreeMap::new();
    let found: Vec<FoundRow> = of_setters.rows.into_iter().chain(of_readers.rows).collect();
    let bytes: usize = found.iter().map(|row| row.bytes).sum();
    if !memory.try_grow(bytes.saturating_mul(MEMORY_PER_BYTE)) {
        return Err(Error::Overloaded.into());
    }
    for found in found.chunks(MAX_IDS_PER_STATEMENT) {
        check_call()?;
        let mut values = Values::in_order();
        let sql = texts_sql(found, account, &mut values);
        let statement = values.statement(sql, backend(db), account);
        for row in db.query_all_raw(statement).await? {
            check_call()?;
            let mut row = RowReader::new(&row);
            let used: i32 = row.take()?;
            if used == use_number(NameUse::Sets) {
                add_setter(&mut row, &names.read, &mut setters)?;
            } else {
                add_readers(&read_conditions(&mut row)?, &names.set, &mut readers);
            }
        }
    }
    let setters = names.read.iter().map(|name| {
        let list = setters.remove(*name).unwrap_or_default();
        let setters = if all_setters {
            OutsideSetters::All(list)
        } else {
            OutsideSetters::TooMany(list)
        };
        ((*name).to_owned(), setters)
    });
    let readers = names.set.iter().filter_map(|name| {
        let readers = if all_readers {
            OutsideReaders::All(readers.remove(*name)?)
        } else {
            OutsideReaders::TooMany
        };
        Some(((*name).to_owned(), readers))
    });
    Ok(OutsideUses {
        setters: setters.collect(),
        readers: readers.collect(),
    })
}

/// The number of a use in SQL.
fn use_number(used: NameUse) -> i32 {
    match used {
        NameUse::Sets => 1,
        NameUse::Reads => 2,
    }
}

/// A task or step that uses a name, without its texts.
struct FoundRow {
    used: i32,
    in_step: bool,
    guid: Uuid,
    task: TaskId,
    bytes: usize,
}

impl FoundRow {
    /// Reads a row that [`users_sql`] selects.
    fn read(row: &mut RowReader<'_>) -> Result<Self, StoreError> {
        let used = row.take()?;
        let in_step: i32 = row.take()?;
        Ok(Self {
            used,
            in_step: in_step != 0,
            guid: row.take()?,
            task: TaskId(row.take()?),
            bytes: usize::try_from(row.take::<i64>()?).unwrap_or(usize::MAX),
        })
    }
}

/// The tasks and steps outside a guide that use names in one way.
struct FoundRows {
    rows: Vec<FoundRow>,
    rows_left: usize,
    bytes_left: usize,
    /// Whether no row was left out.
    is_complete: bool,
}

impl FoundRows {
    /// At most so many rows, those of the guide included.
    fn new(max_rows: usize) -> Self {
        Self {
            rows: Vec::new(),
            rows_left: max_rows,
            bytes_left: MAX_BYTES,
            is_complete: true,
        }
    }

    fn add(&mut self, row: FoundRow, is_inside: bool) {
        let bytes = if is_inside { 0 } else { row.bytes };
        match (
            self.rows_left.checked_sub(1),
            self.bytes_left.checked_sub(bytes),
        ) {
            (Some(rows), Some(bytes)) => {
                self.rows_left = rows;
                self.bytes_left = bytes;
                self.rows.extend((!is_inside).then_some(row));
            }
            _ => self.is_complete = false,
        }
    }
}

/// The query for the steps or tasks that the index has for the `given` digests of a use, without
/// their texts.
fn users_sql(kind: &str, used: NameUse, account: &AccountId, values: &mut Values) -> String {
    let (in_step, task) = match kind {
        "task" => (0, "r.guid"),
        _ => (1, "r.task"),
    };
    let used = use_number(used);
    let of_digests = values.bind(account.as_str());
    let of_rows = values.bind(account.as_str());
    format!(
        "SELECT {used} AS used, {in_step} AS in_step, r.guid, {task} AS task, r.size FROM ( \
           SELECT DISTINCT guid FROM name_uses \
           WHERE account_id = {of_digests} AND in_step = {in_step} \
             AND name_digest IN (SELECT name_digest FROM given WHERE used = {used}) \
         ) y CROSS JOIN {kind}s r WHERE r.account_id = {of_rows} AND r.guid = y.guid \
         ORDER BY r.guid"
    )
}

/// The query for the texts of found tasks and steps: the use, then the columns that
/// [`add_setter`] or [`read_conditions`] takes.
fn texts_sql(found: &[FoundRow], account: &AccountId, values: &mut Values) -> String {
    let sets = use_number(NameUse::Sets);
    let reads = use_number(NameUse::Reads);
    let mut selects = Vec::new();
    for (used, in_step, table, columns) in [
        (
            sets,
            true,
            "steps",
            "r.guid, r.task, r.product_id, r.title, r.feedback_config",
        ),
        (
            reads,
            true,
            "steps",
            "r.guid, r.task, r.product_id, r.title, r.dependencies",
        ),
        (
            reads,
            false,
            "tasks",
            "r.guid, r.guid, r.product_id, r.name, r.dependencies",
        ),
    ] {
        let rows = found.iter();
        let rows = rows.filter(|row| row.used == used && row.in_step == in_step);
        let guids: Vec<Uuid> = rows.map(|row| row.guid).collect();
        if !guids.is_empty() {
            let account = values.bind(account.as_str());
            let guids = values.bind_all(guids);
            selects.push(format!(
                "SELECT {used} AS used, {columns} FROM {table} r \
                 WHERE r.account_id = {account} AND r.guid IN ({guids})"
            ));
        }
    }
    format!("{} ORDER BY 1, 2", selects.join(" UNION ALL "))
}

/// Adds the observation of a row that [`texts_sql`] selects, if it sets one of the names.
fn add_setter(
    row: &mut RowReader<'_>,
    names: &BTreeSet<&str>,
    found: &mut BTreeMap<String, Vec<OutsideSetter>>,
) -> Result<(), StoreError> {
    let step = StepId(row.take()?);
    let task = TaskId(row.take()?);
    let product = json_columns::product(row.take()?)?;
    let title = row.take()?;
    let feedback = json_columns::read_feedback(row.take()?)?;
    let feedback = feedback.ok_or(StoreError::Corrupt("feedback_config"))?;
    let name = account_name(product, feedback.name.as_str());
    if names.contains(name.as_str()) {
        let keys = feedback.values.into_iter();
        found.entry(name).or_default().push(OutsideSetter {
            task,
            step,
            title,
            keys: keys.map(|value| value.key.into_string()).collect(),
        });
    }
    Ok(())
}

/// The conditions of a row that [`texts_sql`] selects.
fn read_conditions(row: &mut RowReader<'_>) -> Result<Group, StoreError> {
    let (_guid, _task): (Uuid, Uuid) = (row.take()?, row.take()?);
    let (_product, _title): (i64, &str) = (row.take()?, row.take()?);
    let group = json_columns::optional(row.take()?, "dependencies")?;
    group.ok_or(StoreError::Corrupt("dependencies"))
}

fn add_readers(
    group: &Group,
    names: &BTreeSet<&str>,
    found: &mut BTreeMap<String, Vec<OutsideReader>>,
) {
    group.for_each_condition(&mut |condition| {
        let name = full_name(condition);
        if names.contains(name.as_str()) {
            found.entry(name).or_default().push(OutsideReader {
                operator: condition.operator,
                targets: TargetSet::new(&condition.targets),
            });
        }
    });
}
