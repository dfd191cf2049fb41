//! Reading steps. One statement each, so that what a caller sees is one state.

use sea_orm::{DbBackend, EntityTrait, FromQueryResult, Value};

use super::{
    Account, backend,
    entity::{step::Model, task},
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
#[derive(FromQueryResult)]
pub(super) struct StepRow {
    #[sea_orm(nested)]
    step: Model,
    body: Option<String>,
    translations: Option<String>,
}

#[derive(FromQueryResult)]
struct ListedRow {
    #[sea_orm(nested)]
    row: StepRow,
    found: i64,
    epoch: i64,
}

/// What is selected of a step `s`, with or without bodies.
pub(super) fn columns(backend: DbBackend, bodies: bool) -> String {
    let (array, rows, cast, null) = match backend {
        DbBackend::Sqlite => ("json_array", "json_group_array", "", "NULL"),
        _ => ("json_build_array", "json_agg", "::text", "NULL::text"),
    };
    let (body, overlay_body) = if bodies {
        (
            "(SELECT b.body FROM step_bodies b \
              WHERE b.account_id = s.account_id AND b.step = s.guid)",
            "l.body",
        )
    } else {
        (null, null)
    };
    format!(
        "s.*, {body} AS body, \
         (SELECT {rows}({array}(l.language, l.locked, l.title, l.instructions, \
                                l.feedback_config, {overlay_body})){cast} \
          FROM step_translations l \
          WHERE l.account_id = s.account_id AND l.step = s.guid) AS translations"
    )
}

fn get(backend: DbBackend, account: &AccountId, guid: StepId) -> sea_orm::Statement {
    let columns = columns(backend, true);
    let sql = format!("SELECT {columns} FROM steps s WHERE s.account_id = $1 AND s.guid = $2");
    statement(backend, account, sql, [Value::from(guid.0)])
}

impl Tx {
    /// A step as it is now; the caller holds its lock.
    pub async fn read_step(&self, guid: StepId) -> Result<Step, Fault> {
        let statement = get(backend(&self.db), &self.account, guid);
        let row = StepRow::find_by_statement(statement).one(&self.db).await?;
        row.ok_or(Error::StepNotFound(guid))?.read()
    }
}

impl Account {
    /// A step with its body.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let db = self.reader();
        let row = StepRow::find_by_statement(get(backend(db), &self.id, guid))
            .one(db)
            .await
            .map_err(Fault::from)?;
        Ok(row.ok_or(Error::StepNotFound(guid))?.read()?)
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
        let db = &self.lagging();
        let limit = size.get() as usize;
        let epoch = after.as_ref().map(|cursor| cursor.epoch);
        let (mut condition, mut values) = (
            "",
            vec![Value::from(task.0), Value::from(i64::from(size.get()) + 1)],
        );
        if let Some(Cursor { place, .. }) = after {
            condition = " AND (position, fraction) > ($4, $5)";
            values.extend([Value::from(place.position), Value::from(place.fraction)]);
        }
        let columns = columns(backend(db), bodies);
        let bytes = if bodies { "size + body_size" } else { "size" };
        // The innermost query finds the page; around it, the bytes before each
        // step are counted; and only what fits is read whole.
        let sql = format!(
            "SELECT {columns}, p.found, t.order_epoch AS epoch FROM ( \
               SELECT guid, CAST(SUM(bytes) OVER (ORDER BY position, fraction) - bytes AS bigint) \
                        AS before, \
                      COUNT(*) OVER () AS found \
               FROM (SELECT guid, position, fraction, {bytes} AS bytes FROM steps \
                     WHERE account_id = $1 AND task = $2{condition} \
                     ORDER BY position, fraction LIMIT $3) f \
             ) p JOIN steps s ON s.account_id = $1 AND s.guid = p.guid \
             JOIN tasks t ON t.account_id = $1 AND t.guid = $2 \
             WHERE p.before < {PAGE_BYTES} ORDER BY s.position, s.fraction"
        );
        let rows = ListedRow::find_by_statement(statement(backend(db), &self.id, sql, values))
            .all(db)
            .await
            .map_err(Fault::from)?;
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
        let found = rows.first().map_or(0, |row| row.found);
        let items: Vec<(Step, Cursor)> = rows
            .into_iter()
            .take(limit)
            .map(ListedRow::read)
            .collect::<Result<_, Fault>>()?;
        let more = usize::try_from(found).is_ok_and(|found| found > items.len());
        Ok(Page { items, more })
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
    fn read(self) -> Result<(Step, Cursor), Fault> {
        let cursor = Cursor {
            epoch: self.epoch,
            place: self.row.place(),
        };
        Ok((self.row.read()?, cursor))
    }
}

impl StepRow {
    /// Where the step stands.
    pub fn place(&self) -> Place {
        Place {
            position: self.step.position,
            fraction: self.step.fraction.clone(),
        }
    }

    /// The step.
    pub fn read(self) -> Result<Step, Fault> {
        let Self {
            step,
            body,
            translations,
        } = self;
        let kind = read_kind(&step)?;
        let content = StepContent {
            body: body
                .map(|body| row::text(Body::parse(body), "body"))
                .transpose()?,
            dependencies: row::read_dependencies(step.dependencies)?,
            instructions: row::read_instructions(step.instructions)?,
            looping: row::read_looping(step.looping)?,
            parts: row::read_tags(step.parts)?,
            published: Published::new(step.published).ok_or(Fault::Corrupt("published"))?,
            skills: row::read_tags(step.skills)?,
            tags: row::read_tags(step.tags)?,
            translations: row::read_step_translations(translations)?,
        };
        Ok(Step {
            guid: StepId(step.guid),
            account: AccountId::parse(&step.account_id).ok_or(Fault::Corrupt("account_id"))?,
            task: TaskId(step.task),
            product: row::product(step.product_id)?,
            kind,
            title: step.title,
            content,
            link: step.link.map(TaskId),
            r_data: row::read_r_data(step.r_data)?,
            dirty: step.dirty_record,
            version: step.version,
            created: Timestamp(step.created_ts),
            modified: Timestamp(step.modified_ts),
        })
    }
}

fn read_kind(step: &Model) -> Result<StepKind, Fault> {
    let title = || row::text(Title::parse(step.title.clone()), "title");
    let cost = Cost::new(step.cost).ok_or(Fault::Corrupt("cost"))?;
    let feedback = row::read_feedback(step.feedback_config.clone())?;
    let kind = StepType::from_number(step.kind).ok_or(Fault::Corrupt("kind"))?;
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
                task: TaskId(step.subtask_id.ok_or(Fault::Corrupt("subtask_id"))?),
                product: row::product(step.subtask_pid.unwrap_or_default())?,
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

fn required(feedback: Option<Feedback>) -> Result<Feedback, Fault> {
    feedback.ok_or(Fault::Corrupt("feedback_config"))
}
