//! The columns of a step: how a step is read from them, and how it is written to them.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    DbBackend, IntoActiveModel,
};
use uuid::Uuid;

use crate::{
    domain::{
        Error,
        external_id::ExternalId,
        ids::{AccountId, StepId, TaskId},
        order::Place,
        size::{StepSize, stored_count},
        step::{Cost, Step, StepContent, StepKind, StepType, SubtaskRef},
        task::Published,
        text::Body,
        translation_work::SourceDigest,
    },
    store::{
        error::StoreError,
        json_columns::{self, json_functions},
        row_reader::RowReader,
        schema::entity::step,
    },
};

/// Which columns of steps are selected.
#[derive(Clone, Copy, Debug)]
pub struct StepColumns {
    /// Whether the bodies are selected.
    pub bodies: bool,
    /// Whether the step's own body is selected, too; if not, only those of its translations.
    pub own_body: bool,
    /// Steps of more bytes than this are read without their large columns.
    pub max_bytes: Option<i64>,
    /// Whether the translations are selected.
    pub translations: bool,
}

impl StepColumns {
    pub const ALL: Self = Self {
        bodies: true,
        own_body: true,
        max_bytes: None,
        translations: true,
    };

    /// SQL for the bytes of the selected columns of a step `s`.
    pub fn size_sql(self) -> &'static str {
        if self.bodies {
            "(s.size + s.body_size)"
        } else {
            "s.size"
        }
    }

    /// The columns of a step `s`, in the order in which [`read_step`] takes them.
    pub fn columns(self, backend: DbBackend) -> String {
        let (array, aggregate, cast) = json_functions(backend);
        let null = format!("NULL{cast}");
        let unless_large = |sql: &str| match self.max_bytes {
            Some(max) => format!("CASE WHEN {} <= {max} THEN {sql} END", self.size_sql()),
            None => sql.to_owned(),
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
        let texts = texts.map(unless_large).join(", ");
        let r_data = unless_large("s.r_data");
        let body = match self.bodies && self.own_body {
            true => unless_large("s.body"),
            false => null.clone(),
        };
        let translated_body = if self.bodies { "l.body" } else { &null };
        let translations = || {
            unless_large(&format!(
                "CASE WHEN s.language_count > 0 THEN \
               (SELECT {aggregate}({array}(l.language, l.locked, l.title, l.instructions, \
                                      l.feedback_config, {translated_body})){cast} \
                FROM step_translations l \
                WHERE l.account_id = $1 AND l.step = s.guid) END"
            ))
        };
        let translations = match self.translations {
            true => translations(),
            false => null,
        };
        format!(
            "s.guid, s.task, s.position, s.fraction, s.kind, s.product_id, s.title, \
             s.external_id, s.cost, s.published, {texts}, s.subtask_id, s.subtask_pid, s.is_link, {r_data}, s.version, \
             s.dirty_record, s.created_ts, s.modified_ts, {body} AS body, \
             {translations} AS translations"
        )
    }
}

/// Reads the [columns](StepColumns::columns) of a step, and its place.
pub fn read_step(
    row: &mut RowReader<'_>,
    account: &AccountId,
) -> Result<(Step, Place), StoreError> {
    let guid = StepId(row.take()?);
    let task = TaskId(row.take()?);
    let place = Place {
        position: row.take()?,
        fraction: row.take()?,
    };
    let step_type = StepType::from_number(row.take()?).ok_or(StoreError::Corrupt("kind"))?;
    let product = json_columns::product(row.take()?)?;
    let title: String = row.take()?;
    let external_id = json_columns::external_id(row.take()?)?;
    let cost = Cost::new(row.take()?).ok_or(StoreError::Corrupt("cost"))?;
    let published = Published::new(row.take()?).ok_or(StoreError::Corrupt("published"))?;
    let dependencies = json_columns::optional(row.take()?, "dependencies")?;
    let feedback = json_columns::read_feedback(row.take()?)?;
    let instructions = json_columns::list(row.take()?, "instructions")?;
    let looping = json_columns::optional(row.take()?, "looping")?;
    let parts = json_columns::list(row.take()?, "parts")?;
    let skills = json_columns::list(row.take()?, "skills")?;
    let tags = json_columns::list(row.take()?, "tags")?;
    let subtask = subtask(row.take()?, row.take()?)?;
    let kind = StepKind::new(step_type, cost, feedback, subtask);
    let kind = kind.ok_or(StoreError::Corrupt("kind"))?;
    let link = read_link(row.take()?, kind.subtask().map(|subtask| subtask.task))?;
    let r_data: Option<_> = json_columns::optional(row.take()?, "r_data")?;
    let row_version = row.take_row_version()?;
    let body: Option<String> = row.take()?;
    let body = body.map(|body| json_columns::valid(Body::parse(body), "body"));
    let content = StepContent {
        body: body.transpose()?,
        dependencies,
        external_id,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        translations: json_columns::read_step_translations(row.take()?)?,
    };
    let step = Step {
        guid,
        account: account.clone(),
        task,
        product,
        kind,
        title,
        content,
        link,
        r_data: r_data.unwrap_or_default(),
        row_version,
    };
    Ok((step, place))
}

/// The link of a step.
pub fn read_link(is_link: bool, subtask: Option<TaskId>) -> Result<Option<TaskId>, StoreError> {
    match (is_link, subtask) {
        (true, None) => Err(StoreError::Corrupt("is_link")),
        (true, subtask) => Ok(subtask),
        (false, _) => Ok(None),
    }
}

/// The task of a subtask step.
fn subtask(task: Option<Uuid>, product: Option<i64>) -> Result<Option<SubtaskRef>, StoreError> {
    let Some(task) = task.map(TaskId) else {
        return Ok(None);
    };
    let product = json_columns::product(product.unwrap_or_default())?;
    Ok(Some(SubtaskRef { task, product }))
}

/// The row of a step at a place.
pub fn step_row(step: Step, place: Place) -> Result<step::ActiveModel, StoreError> {
    let body = step.content.body.clone();
    let mut row = step_row_without_body(step, place)?;
    row.body = Set(body.map(Body::into_string));
    Ok(row)
}

/// The row of a step at a place, without the column of its body, which stays as it is.
pub fn step_row_without_body(step: Step, place: Place) -> Result<step::ActiveModel, StoreError> {
    let StepSize { listed, bodies } = StepSize::of(&step);
    let rest = SourceDigest::of_step_content(&step);
    let Step {
        guid,
        account,
        task,
        product,
        kind,
        title,
        content,
        link,
        r_data,
        row_version,
    } = step;
    let StepContent {
        body: _,
        dependencies,
        external_id,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        translations,
    } = content;
    let r_data = (!r_data.is_empty())
        .then(|| serde_json::to_string(&r_data))
        .transpose()
        .map_err(|_| StoreError::Corrupt("r_data"))?;
    let subtask = kind.subtask();
    if link.is_some() && link != subtask.map(|subtask| subtask.task) {
        return Err(Error::Internal("a link that is not the subtask".to_owned()).into());
    }
    let row = step::Model {
        account_id: account.as_str().to_owned(),
        guid: guid.0,
        task: task.0,
        position: place.position,
        fraction: place.fraction,
        kind: kind.step_type().number(),
        product_id: product.get(),
        title,
        external_id: external_id.map(ExternalId::into_string),
        cost: kind.cost().get(),
        published: published.get(),
        dependencies: json_columns::write_optional(dependencies.as_ref()),
        feedback_config: json_columns::write_feedback(kind.feedback()),
        instructions: json_columns::write_list(&instructions),
        looping: json_columns::write_optional(looping.as_ref()),
        parts: json_columns::write_list(&parts),
        skills: json_columns::write_list(&skills),
        tags: json_columns::write_list(&tags),
        subtask_id: subtask.map(|subtask| subtask.task.0),
        subtask_pid: subtask.map(|subtask| subtask.product.get()),
        is_link: link.is_some(),
        r_data,
        size: listed,
        body_size: bodies,
        rest_digest: rest.0.to_vec(),
        language_count: stored_count(translations.len()),
        version: row_version.version,
        dirty_record: row_version.dirty,
        indexed: false,
        created_ts: row_version.created.0,
        modified_ts: row_version.modified.0,
        body: None,
    };
    Ok(step::ActiveModel {
        body: NotSet,
        indexed: NotSet,
        ..row.into_active_model()
    })
}
