//! References of a variable.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, ConnectionTrait, QueryFilter, QuerySelect, Value};
use uuid::Uuid;

use super::{limit_value, page};
use crate::{
    call_context::WorkMemory,
    domain::{
        Error, Result,
        analysis::{
            NameDigest, NameUse, Reference, ReferenceCursor, ReferenceKind, ReferencePage,
            ReferencePlace, VariableFilter,
        },
        dependency::Group,
        ids::{StepId, TaskId},
        page::PAGE_BYTES,
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns,
        read::{check_call, guide::MEMORY_PER_BYTE},
        row_reader::RowReader,
        schema::entity::name_use,
        statement,
    },
};

/// Most statements of one call.
const MAX_STATEMENTS: usize = 4;
/// Most tasks and steps that one statement examines. The first statement for setters, and
/// for readers, only examines as many as the page has room for.
const MAX_EXAMINED_ROWS: usize = 2_000;
/// A task or step with more bytes is large: it is read under a permit.
const LARGE_ROW_BYTES: usize = 1024 * 1024;

/// A task or step that the index names for a variable.
struct NamedRow {
    place: ReferencePlace,
    column: NamedColumn,
}

/// The column in which the variable is named.
enum NamedColumn {
    /// The product and question of an observation.
    Question(i64, Option<String>),
    /// The dependencies.
    Dependencies(Option<String>),
}

/// Rows of one statement, and whether there are more.
struct NamedRows {
    rows: Vec<NamedRow>,
    more: bool,
}

/// A page after which the next one starts at the cursor.
fn page_continued_at(items: Vec<Reference>, cursor: ReferenceCursor) -> ReferencePage {
    let next = Some(cursor);
    ReferencePage { items, next }
}

impl Account {
    /// A page of the observations that set a variable and the conditions that read it.
    pub(super) async fn references_to_variable(
        &self,
        filter: &VariableFilter,
        after: Option<ReferenceCursor>,
        size: usize,
    ) -> Result<ReferencePage> {
        let mut statements_left = MAX_STATEMENTS;
        if let Some(task) = filter.task {
            // Fails if the task does not exist.
            self.order_epoch(task).await?;
            statements_left -= 1;
        }
        // A name that no observation can set for the account may be a task's own: then the
        // conditions of that task read its own variable.
        let may_have_setters = filter.may_have_setters();
        let first = ReferenceCursor::start_of(ReferenceKind::Sets);
        let mut memory = WorkMemory::of_current_call();
        let mut cursor = after.unwrap_or(first);
        let mut items = Vec::new();
        for used in [NameUse::Sets, NameUse::Reads] {
            let kind = kind_of(used);
            if kind < cursor.kind || (used == NameUse::Sets && !may_have_setters) {
                continue;
            }
            if kind > cursor.kind {
                cursor = ReferenceCursor::start_of(kind);
            }
            let skips_own = used == NameUse::Reads && !may_have_setters;
            let statements_needed = 1 + usize::from(skips_own);
            let mut limit = size + 1 - items.len();
            loop {
                if statements_left < statements_needed {
                    return Ok(page_continued_at(items, cursor));
                }
                statements_left -= statements_needed;
                let read = self.named_rows(filter, used, &cursor, limit, false);
                let mut found = match read.await {
                    Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                        let _permit = self.large_read_permit(PAGE_BYTES).await?;
                        let bytes = bytes.saturating_mul(MEMORY_PER_BYTE);
                        if !memory.try_grow(bytes.saturating_sub(memory.bytes())) {
                            return Err(Error::Overloaded);
                        }
                        self.named_rows(filter, used, &cursor, limit, true).await?
                    }
                    found => found?,
                };
                let last = found.rows.last().map(NamedRow::id);
                if skips_own {
                    self.skip_own_names(filter, &mut found.rows).await?;
                }
                for row in found.rows {
                    check_call()?;
                    let references = row.references(filter)?.into_iter();
                    items.extend(references.filter(|item| cursor.is_before(item)));
                }
                if items.len() > size {
                    return Ok(page(items, size));
                }
                let Some(last) = last.filter(|_| found.more) else {
                    break;
                };
                cursor = ReferenceCursor {
                    kind,
                    id: last,
                    path: None,
                };
                if items.len() == size {
                    return Ok(page_continued_at(items, cursor));
                }
                limit = MAX_EXAMINED_ROWS;
            }
        }
        Ok(ReferencePage { items, next: None })
    }

    /// The tasks and steps after a cursor that the index names for the variable, in the
    /// order of ids. Their texts have about [`PAGE_BYTES`] in total; one is read however
    /// large it is, if `large` ones may be read. Else it fails with
    /// [`StoreError::NeedsLargeReadPermit`].
    async fn named_rows(
        &self,
        filter: &VariableFilter,
        used: NameUse,
        cursor: &ReferenceCursor,
        limit: usize,
        large: bool,
    ) -> Result<NamedRows, StoreError> {
        let db = self.reader();
        let VariableFilter {
            name,
            task,
            answer: _,
        } = filter;
        let NameDigest(digest) = NameDigest::new(used, name);
        let mut values: Vec<Value> = vec![
            digest.into(),
            cursor.id.into(),
            limit_value(limit.saturating_add(1)),
        ];
        values.extend(task.map(|task| Value::from(task.0)));
        if let (NameUse::Sets, Some(task)) = (used, task) {
            let NameDigest(own) = NameDigest::of_own_name(*task, name);
            values.push(own.into());
        }
        let sql = named_rows_sql(used, task.is_some(), cursor.path.is_some(), large);
        let statement = statement(backend(db), &self.id, sql, values);
        let (mut count, mut total_bytes, mut has_large) = (0_i64, 0_usize, false);
        let mut rows = Vec::new();
        for row in db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            count = row.take()?;
            let bytes = usize::try_from(row.take::<i64>()?).unwrap_or(usize::MAX);
            total_bytes = total_bytes.saturating_add(bytes);
            has_large |= bytes > LARGE_ROW_BYTES;
            if rows.len() < limit && (large || !has_large) {
                rows.push(NamedRow::read(&mut row, used)?);
            }
        }
        if has_large && !large {
            return Err(StoreError::NeedsLargeReadPermit(total_bytes));
        }
        let more = usize::try_from(count).is_ok_and(|count| count > rows.len());
        Ok(NamedRows { rows, more })
    }

    /// Leaves out the rows of tasks that set the name as their own: their conditions read
    /// that variable instead.
    async fn skip_own_names(
        &self,
        filter: &VariableFilter,
        rows: &mut Vec<NamedRow>,
    ) -> Result<(), StoreError> {
        let tasks: BTreeSet<TaskId> = rows.iter().map(|row| row.place.task).collect();
        let digest = |task: TaskId| (NameDigest::of_own_name(task, &filter.name), task);
        let digests: BTreeMap<NameDigest, TaskId> = tasks.into_iter().map(digest).collect();
        if digests.is_empty() {
            return Ok(());
        }
        let db = self.reader();
        let given = digests.keys().map(|NameDigest(digest)| *digest);
        let found: Vec<Uuid> = self
            .select::<name_use::Entity>()
            .select_only()
            .column(name_use::Column::NameDigest)
            .filter(name_use::Column::NameDigest.is_in(given))
            .into_tuple()
            .all(db)
            .await?;
        let own = found
            .into_iter()
            .filter_map(|digest| digests.get(&NameDigest(digest)));
        let own: BTreeSet<TaskId> = own.copied().collect();
        rows.retain(|row| !own.contains(&row.place.task));
        Ok(())
    }
}

/// The statement that reads a page of the rows that the index names.
///
/// Its parameters: account, digest, the id of the cursor, the number of rows, the task, and
/// the digest of the task's own name.
pub fn named_rows_sql(
    used: NameUse,
    in_one_task: bool,
    with_cursor_row: bool,
    large: bool,
) -> String {
    let steps = index_rows_sql("step", used, in_one_task, with_cursor_row);
    let (found, column) = match used {
        NameUse::Sets => (steps, "s.feedback_config"),
        NameUse::Reads => {
            let tasks = index_rows_sql("task", used, in_one_task, with_cursor_row);
            let both = format!("{tasks} UNION ALL {steps} ORDER BY id LIMIT $4");
            (both, "s.dependencies")
        }
    };
    let text = |column: &str| match large {
        true => column.to_owned(),
        false => format!("CASE WHEN p.bytes <= {LARGE_ROW_BYTES} THEN {column} END"),
    };
    let (of_step, of_task) = (text(column), text("t.dependencies"));
    // The innermost query finds the rows, the next one sums the bytes before each, and
    // the outer one reads those that fit.
    format!(
        "SELECT p.found, p.bytes, s.guid, s.task, s.title, s.product_id, {of_step}, \
           t.guid, t.name, {of_task} \
         FROM (SELECT id, in_step, bytes, \
                 CAST(SUM(bytes) OVER (ORDER BY id) - bytes AS bigint) AS before, \
                 COUNT(*) OVER () AS found \
               FROM ({found}) f) p \
         LEFT JOIN steps s ON s.account_id = $1 AND s.guid = p.id AND p.in_step = 1 \
         LEFT JOIN tasks t ON t.account_id = $1 AND t.guid = p.id AND p.in_step = 0 \
         WHERE p.before < {PAGE_BYTES} ORDER BY p.id"
    )
}

/// The query for the ids and sizes of the rows of one table, `step` or `task`.
fn index_rows_sql(table: &str, used: NameUse, in_one_task: bool, with_cursor_row: bool) -> String {
    let named = match used {
        NameUse::Sets if in_one_task => "y.name_digest IN ($2, $6)",
        NameUse::Sets | NameUse::Reads => "y.name_digest = $2",
    };
    let (in_step, of_task) = match table {
        "step" => (1, "r.task = $5"),
        _ => (0, "r.guid = $5"),
    };
    // The tables of a CROSS JOIN are read from left to right by SQLite.
    let (from, id) = if in_one_task {
        let from = format!("{table}s r CROSS JOIN name_uses y WHERE {of_task}");
        (from, "r.guid")
    } else {
        let from = format!("name_uses y CROSS JOIN {table}s r WHERE true");
        (from, "y.guid")
    };
    let after = if with_cursor_row { ">=" } else { ">" };
    format!(
        "SELECT * FROM (SELECT {id} AS id, {in_step} AS in_step, r.size AS bytes \
         FROM {from} AND y.account_id = $1 AND {named} AND y.in_step = {in_step} \
         AND r.account_id = $1 AND r.guid = y.guid AND {id} {after} $3 ORDER BY {id} LIMIT $4) of_{table}"
    )
}

impl NamedRow {
    /// Reads a row with the columns of a step and of a task; those of one of them are null.
    fn read(row: &mut RowReader<'_>, used: NameUse) -> Result<Self, StoreError> {
        let step: Option<Uuid> = row.take()?;
        let step_task: Option<Uuid> = row.take()?;
        let step_title: Option<String> = row.take()?;
        let product: Option<i64> = row.take()?;
        let of_step: Option<String> = row.take()?;
        let task: Option<Uuid> = row.take()?;
        let name: Option<String> = row.take()?;
        let of_task: Option<String> = row.take()?;
        let place = ReferencePlace {
            task: TaskId(step_task.or(task).ok_or(StoreError::Corrupt("task"))?),
            step: step.map(StepId),
            path: String::new(),
            title: step_title.or(name).unwrap_or_default(),
        };
        let column = match used {
            NameUse::Sets => NamedColumn::Question(product.unwrap_or_default(), of_step),
            NameUse::Reads => NamedColumn::Dependencies(of_step.or(of_task)),
        };
        Ok(Self { place, column })
    }

    fn id(&self) -> Uuid {
        let ReferencePlace { task, step, .. } = &self.place;
        step.map_or(task.0, |step| step.0)
    }

    /// Its references to the variable, in the order of their paths.
    fn references(self, filter: &VariableFilter) -> Result<Vec<Reference>, StoreError> {
        let Self { place, column } = self;
        let reference = |kind, path, condition| Reference {
            kind,
            place: ReferencePlace {
                path,
                ..place.clone()
            },
            condition,
        };
        Ok(match column {
            NamedColumn::Question(product, question) => {
                let product = json_columns::product(product)?;
                let question = json_columns::read_feedback(question.as_deref())?;
                let sets = question.is_some_and(|question| filter.is_set_by(product, &question));
                let path = || "feedback_config[0]".to_owned();
                let found = sets.then(|| reference(ReferenceKind::Sets, path(), None));
                found.into_iter().collect()
            }
            NamedColumn::Dependencies(group) => {
                let group: Option<Group> =
                    json_columns::optional(group.as_deref(), "dependencies")?;
                let conditions = group.map(|group| filter.conditions_reading(&group));
                let conditions = conditions.into_iter().flatten();
                conditions
                    .map(|(path, condition)| reference(ReferenceKind::Reads, path, Some(condition)))
                    .collect()
            }
        })
    }
}

fn kind_of(used: NameUse) -> ReferenceKind {
    match used {
        NameUse::Sets => ReferenceKind::Sets,
        NameUse::Reads => ReferenceKind::Reads,
    }
}
