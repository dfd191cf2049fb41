//! A step as it is selected, and what becomes of it in memory.

use sea_orm::{DbBackend, DbErr, FromQueryResult, QueryResult};
use uuid::Uuid;

use super::{cells::Cells, fault::Fault, row};
use crate::domain::{
    feedback::Feedback,
    ids::{AccountId, StepId, TaskId},
    order::Place,
    step::{Cost, Step, StepContent, StepKind, StepType, SubtaskRef},
    task::Published,
    text::{Body, Title},
    time::Timestamp,
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
    /// Takes the columns that [`Selected`] names.
    pub fn take(cells: &mut Cells<'_>) -> Result<Self, DbErr> {
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
    pub fn bytes(self) -> &'static str {
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
