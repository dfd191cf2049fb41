//! Reading steps. One statement each, so that what a caller sees is one state.

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, EntityTrait, FromQueryResult, QueryResult, Value,
};
use uuid::Uuid;

use super::{
    Account, backend,
    cells::Cells,
    entity::task,
    fault::Fault,
    row,
    transaction::{Tx, statement},
};
use crate::domain::{
    Error, Result,
    feedback::Feedback,
    ids::{AccountId, StepId, TaskId},
    order::{Cursor, Place},
    page::{PAGE_BYTES, Page, PageSize},
    step::{Cost, Step, StepContent, StepKind, StepType, SubtaskRef},
    task::Published,
    text::{Body, Title},
    time::Timestamp,
    violation::{Path, Reason},
};

/// A step with its body and its translations.
pub(super) struct StepRow {
    guid: Uuid,
    task: Uuid,
    place: Place,
    kind: i32,
    product: i64,
    title: String,
    cost: i32,
    published: i32,
    dependencies: Option<String>,
    feedback: Option<String>,
    instructions: Option<String>,
    looping: Option<String>,
    parts: Option<String>,
    skills: Option<String>,
    tags: Option<String>,
    subtask: Option<Uuid>,
    subtask_product: Option<i64>,
    link: Option<Uuid>,
    r_data: Option<String>,
    version: i64,
    dirty: bool,
    created: i64,
    modified: i64,
    body: Option<String>,
    translations: Option<String>,
}

impl StepRow {
    fn take(cells: &mut Cells<'_>) -> Result<Self, DbErr> {
        Ok(Self {
            guid: cells.take()?,
            task: cells.take()?,
            place: Place {
                position: cells.take()?,
                fraction: cells.take()?,
            },
            kind: cells.take()?,
            product: cells.take()?,
            title: cells.take()?,
            cost: cells.take()?,
            published: cells.take()?,
            dependencies: cells.take()?,
            feedback: cells.take()?,
            instructions: cells.take()?,
            looping: cells.take()?,
            parts: cells.take()?,
            skills: cells.take()?,
            tags: cells.take()?,
            subtask: cells.take()?,
            subtask_product: cells.take()?,
            link: cells.take()?,
            r_data: cells.take()?,
            version: cells.take()?,
            dirty: cells.take()?,
            created: cells.take()?,
            modified: cells.take()?,
            body: cells.take()?,
            translations: cells.take()?,
        })
    }
}

impl FromQueryResult for StepRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        Self::take(&mut Cells::of(row))
    }
}

/// What is selected of steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    /// Whether bodies are, too.
    pub bodies: bool,
    /// How many bytes a step may have for more than what is small in every step.
    pub most: Option<i64>,
}

impl Selected {
    /// Everything.
    pub const WHOLE: Self = Self {
        bodies: true,
        most: None,
    };

    /// The bytes of a step `s`, as it is selected.
    fn bytes(self) -> &'static str {
        if self.bodies {
            "(s.size + s.body_size)"
        } else {
            "s.size"
        }
    }

    /// The columns of a step `s` for a [`StepRow`], in the order of its fields.
    pub fn columns(self, backend: DbBackend) -> String {
        let (array, rows, cast, null) = match backend {
            DbBackend::Sqlite => ("json_array", "json_group_array", "", "NULL"),
            _ => ("json_build_array", "json_agg", "::text", "NULL::text"),
        };
        let what_may_be_large = |what: &str| match self.most {
            Some(most) => format!("CASE WHEN {} <= {most} THEN {what} END", self.bytes()),
            None => what.to_owned(),
        };
        let texts = [
            "s.dependencies",
            "s.feedback_config",
            "s.instructions",
            "s.looping",
            "s.parts",
            "s.skills",
            "s.tags",
        ];
        let texts = texts.map(what_may_be_large).join(", ");
        let r_data = what_may_be_large("s.r_data");
        let (body, overlay_body) = if self.bodies {
            let body = "(SELECT b.body FROM step_bodies b \
                 WHERE b.account_id = s.account_id AND b.step = s.guid)";
            (what_may_be_large(body), "l.body")
        } else {
            (null.to_owned(), null)
        };
        let translations = what_may_be_large(&format!(
            "(SELECT {rows}({array}(l.language, l.locked, l.title, l.instructions, \
                                    l.feedback_config, {overlay_body})){cast} \
              FROM step_translations l \
              WHERE l.account_id = s.account_id AND l.step = s.guid)"
        ));
        format!(
            "s.guid, s.task, s.position, s.fraction, s.kind, s.product_id, s.title, s.cost, \
             s.published, {texts}, s.subtask_id, s.subtask_pid, s.link, {r_data}, s.version, \
             s.dirty_record, s.created_ts, s.modified_ts, {body} AS body, \
             {translations} AS translations"
        )
    }
}

/// Bytes of a step beyond which it is read in turn.
const LARGE: i64 = 1024 * 1024;

/// A step, and the bytes that it has.
struct FoundRow {
    row: StepRow,
    bytes: i64,
}

impl FromQueryResult for FoundRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        let mut cells = Cells::of(row);
        Ok(Self {
            row: StepRow::take(&mut cells)?,
            bytes: cells.take()?,
        })
    }
}

async fn find(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
    selected: Selected,
) -> Result<FoundRow, Fault> {
    let backend = backend(db);
    let (columns, bytes) = (selected.columns(backend), selected.bytes());
    let sql =
        format!("SELECT {columns}, {bytes} FROM steps s WHERE s.account_id = $1 AND s.guid = $2");
    let statement = statement(backend, account, sql, [Value::from(guid.0)]);
    let found = FoundRow::find_by_statement(statement).one(db).await?;
    Ok(found.ok_or(Error::StepNotFound(guid))?)
}

/// A page that is asked for.
struct Asked {
    task: TaskId,
    bodies: bool,
    after: Option<Cursor>,
    size: i64,
}

impl Asked {
    /// The bytes up to which a step is small: a page of them is at most twice as large as
    /// it should be.
    fn most(&self) -> i64 {
        2 * PAGE_BYTES as i64 / (self.size + 1)
    }

    /// The condition that the columns of its steps meet, and its values from `$2` on,
    /// with the most that is to be read.
    fn condition(&self) -> (&'static str, Vec<Value>) {
        let mut values = vec![Value::from(self.task.0), Value::from(self.size + 1)];
        match &self.after {
            None => ("s.account_id = $1 AND s.task = $2", values),
            Some(Cursor { place, .. }) => {
                values.push(place.position.into());
                values.push(place.fraction.clone().into());
                let behind = "s.account_id = $1 AND s.task = $2 \
                     AND (s.position, s.fraction) > ($4, $5)";
                (behind, values)
            }
        }
    }
}

/// A step of a listing.
struct ListedRow {
    row: StepRow,
    /// The bytes that it has, or what else is counted.
    bytes: i64,
    epoch: i64,
}

impl FromQueryResult for ListedRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        let mut cells = Cells::of(row);
        Ok(Self {
            row: StepRow::take(&mut cells)?,
            bytes: cells.take()?,
            epoch: cells.take()?,
        })
    }
}

/// How many of these steps a page holds: about [`PAGE_BYTES`], or one step.
fn fitting(rows: &[ListedRow], limit: usize) -> usize {
    let mut before = 0_i64;
    let fits = |row: &&ListedRow| {
        let fits = before < PAGE_BYTES as i64;
        before = before.saturating_add(row.bytes);
        fits
    };
    rows.iter().take(limit).take_while(fits).count()
}

impl Tx {
    /// A step as it is now; the caller holds its lock.
    pub async fn read_step(&self, guid: StepId) -> Result<Step, Fault> {
        let found = find(&self.db, &self.account, guid, Selected::WHOLE).await?;
        found.row.read(&self.account)
    }
}

impl Account {
    /// A step with its body. Large steps are read a few at a time, as the driver holds
    /// an answer whole before it hands it on: that takes a second statement.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let db = self.reader();
        let small = Selected {
            most: Some(LARGE),
            ..Selected::WHOLE
        };
        let mut found = find(db, &self.id, guid, small).await?;
        if found.bytes > LARGE {
            let _turn = self.large_read().await;
            found = find(db, &self.id, guid, Selected::WHOLE).await?;
        }
        Ok(found.row.read(&self.id)?)
    }

    /// A task's steps in their order, each with the cursor behind it. A page
    /// holds about [`PAGE_BYTES`], or one step.
    pub async fn list_steps(
        &self,
        task: TaskId,
        bodies: bool,
        after: Option<Cursor>,
        size: PageSize,
    ) -> Result<Page<(Step, Cursor)>> {
        let limit = size.get() as usize;
        let epoch = after.as_ref().map(|cursor| cursor.epoch);
        let page = Asked {
            task,
            bodies,
            after,
            size: i64::from(size.get()),
        };
        let mut rows = self.small_steps(&page).await?;
        let most = page.most();
        let mut found = rows.len();
        rows.truncate(fitting(&rows, limit));
        if rows.iter().any(|row| row.bytes > most) {
            let _turn = self.large_read().await;
            (rows, found) = self.steps(&page).await?;
            rows.truncate(limit);
        }
        let current = match rows.first() {
            Some(row) => row.epoch,
            None => self.order_epoch(task).await?,
        };
        if epoch.is_some_and(|epoch| epoch != current) {
            return Err(Error::invalid(
                &Path::root("page_token"),
                Reason::PageTokenInvalid,
                "the order of the steps was made anew; start again from the first page",
            ));
        }
        let more = found > rows.len();
        let items = rows.into_iter().map(|listed| listed.read(&self.id));
        let items = items.collect::<Result<_, Fault>>()?;
        Ok(Page { items, more })
    }

    /// The steps of a page and the one behind it, all read at once: of those that have
    /// more than [`Asked::most`] bytes, what may be large is left out.
    async fn small_steps(&self, page: &Asked) -> Result<Vec<ListedRow>, Fault> {
        let db = &self.lagging();
        let selected = Selected {
            bodies: page.bodies,
            most: Some(page.most()),
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.bytes());
        let (condition, values) = page.condition();
        let sql = format!(
            "SELECT {columns}, {bytes}, (SELECT t.order_epoch FROM tasks t \
                                         WHERE t.account_id = $1 AND t.guid = $2) \
             FROM steps s WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        Ok(ListedRow::find_by_statement(statement).all(db).await?)
    }

    /// The steps that fit into a page, whole, and how many there are with those that do
    /// not.
    async fn steps(&self, page: &Asked) -> Result<(Vec<ListedRow>, usize), Fault> {
        let db = &self.lagging();
        let selected = Selected {
            bodies: page.bodies,
            most: None,
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.bytes());
        let (condition, values) = page.condition();
        // The innermost query finds the page; around it, the bytes before each
        // step are counted; and only what fits is read whole.
        let sql = format!(
            "SELECT {columns}, p.found, t.order_epoch FROM ( \
               SELECT guid, CAST(SUM(bytes) OVER (ORDER BY position, fraction) - bytes AS bigint) \
                        AS before, \
                      COUNT(*) OVER () AS found \
               FROM (SELECT s.guid, s.position, s.fraction, {bytes} AS bytes FROM steps s \
                     WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3) f \
             ) p JOIN steps s ON s.account_id = $1 AND s.guid = p.guid \
             JOIN tasks t ON t.account_id = $1 AND t.guid = $2 \
             WHERE p.before < {PAGE_BYTES} ORDER BY s.position, s.fraction"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = ListedRow::find_by_statement(statement).all(db).await?;
        let found = rows.first().map_or(0, |row| row.bytes);
        Ok((rows, usize::try_from(found).unwrap_or(usize::MAX)))
    }

    /// The numbering of a task's steps, or that there is no such task, which a
    /// replica cannot say.
    pub(super) async fn order_epoch(&self, task: TaskId) -> Result<i64> {
        let row = task::Entity::find_by_id((self.id.as_str().to_owned(), task.0))
            .one(self.reader())
            .await
            .map_err(Fault::from)?;
        Ok(row.ok_or(Error::TaskNotFound(task))?.order_epoch)
    }
}

impl ListedRow {
    fn read(self, account: &AccountId) -> Result<(Step, Cursor), Fault> {
        let cursor = Cursor {
            epoch: self.epoch,
            place: self.row.place(),
        };
        Ok((self.row.read(account)?, cursor))
    }
}

impl StepRow {
    /// Where the step stands.
    pub fn place(&self) -> Place {
        self.place.clone()
    }

    /// The step.
    pub fn read(self, account: &AccountId) -> Result<Step, Fault> {
        let Self {
            guid,
            task,
            place: _,
            kind,
            product,
            title,
            cost,
            published,
            dependencies,
            feedback,
            instructions,
            looping,
            parts,
            skills,
            tags,
            subtask,
            subtask_product,
            link,
            r_data,
            version,
            dirty,
            created,
            modified,
            body,
            translations,
        } = self;
        let kind = Kind {
            number: kind,
            title: &title,
            cost,
            feedback,
            subtask,
            subtask_product,
        };
        let kind = kind.read()?;
        let content = StepContent {
            body: body
                .map(|body| row::text(Body::parse(body), "body"))
                .transpose()?,
            dependencies: row::read_dependencies(dependencies)?,
            instructions: row::read_instructions(instructions)?,
            looping: row::read_looping(looping)?,
            parts: row::read_tags(parts)?,
            published: Published::new(published).ok_or(Fault::Corrupt("published"))?,
            skills: row::read_tags(skills)?,
            tags: row::read_tags(tags)?,
            translations: row::read_step_translations(translations)?,
        };
        Ok(Step {
            guid: StepId(guid),
            account: account.clone(),
            task: TaskId(task),
            product: row::product(product)?,
            kind,
            title,
            content,
            link: link.map(TaskId),
            r_data: row::read_r_data(r_data)?,
            dirty,
            version,
            created: Timestamp(created),
            modified: Timestamp(modified),
        })
    }
}

/// What a step's type asks for, in columns.
struct Kind<'a> {
    number: i32,
    title: &'a str,
    cost: i32,
    feedback: Option<String>,
    subtask: Option<Uuid>,
    subtask_product: Option<i64>,
}

impl Kind<'_> {
    fn read(self) -> Result<StepKind, Fault> {
        let title = || row::text(Title::parse(self.title.to_owned()), "title");
        let cost = Cost::new(self.cost).ok_or(Fault::Corrupt("cost"))?;
        let feedback = row::read_feedback(self.feedback)?;
        let kind = StepType::from_number(self.number).ok_or(Fault::Corrupt("kind"))?;
        Ok(match kind {
            StepType::Solution => StepKind::Solution {
                title: title()?,
                cost,
                feedback,
            },
            StepType::Observation => StepKind::Observation {
                title: title()?,
                feedback: required(feedback)?,
            },
            StepType::Information => StepKind::Information {
                title: title()?,
                feedback,
            },
            StepType::Subtask => StepKind::Subtask {
                subtask: SubtaskRef {
                    task: TaskId(self.subtask.ok_or(Fault::Corrupt("subtask_id"))?),
                    product: row::product(self.subtask_product.unwrap_or_default())?,
                },
                feedback,
            },
            StepType::End => StepKind::End {
                title: title()?,
                feedback,
            },
            StepType::Idp => StepKind::Idp {
                title: title()?,
                cost,
                feedback,
            },
        })
    }
}

fn required(feedback: Option<Feedback>) -> Result<Feedback, Fault> {
    feedback.ok_or(Fault::Corrupt("feedback_config"))
}
