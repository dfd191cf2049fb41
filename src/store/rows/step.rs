use sea_orm::{ActiveValue::NotSet, IntoActiveModel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{read_account, read_external_id, read_product, valid};
use crate::{
    domain::{
        Error,
        dependency::Group,
        external_id::ExternalId,
        feedback::Feedback,
        ids::{StepId, TaskId},
        json::Instruction,
        order::Place,
        row_version::RowVersion,
        size::{StepSize, stored_count},
        step::{Cost, Looping, Step, StepContent, StepKind, StepType, SubtaskRef},
        task::Published,
        text::{Body, Tag},
        time::Timestamp,
        translation::StepTranslations,
        translation_work::SourceDigest,
    },
    store::{entity::step, error::StoreError, json::Json},
};

/// The fields of a step that no statement filters or sorts by: the column `content`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepFields {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Group>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Feedback>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looping: Option<Looping>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub r_data: Map<String, Value>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The step of a row, and its place in the task.
pub fn read_step(
    row: step::Model,
    translations: StepTranslations,
) -> Result<(Step, Place), StoreError> {
    let step::Model {
        account_id,
        guid,
        task,
        position,
        kind,
        product_id,
        title,
        external_id,
        published,
        subtask_id,
        subtask_pid,
        is_link,
        // Computed from the other columns.
        size: _,
        body_size: _,
        rest_digest: _,
        language_count: _,
        version,
        dirty_record,
        indexed: _,
        created_ts,
        modified_ts,
        content: Json(fields),
        body,
    } = row;
    let StepFields {
        cost,
        dependencies,
        question,
        instructions,
        looping,
        parts,
        skills,
        tags,
        r_data,
    } = fields;
    let step_type = StepType::from_number(kind).ok_or(StoreError::Corrupt("kind"))?;
    let cost = Cost::new(cost).ok_or(StoreError::Corrupt("cost"))?;
    let subtask = read_subtask(subtask_id, subtask_pid)?;
    let link = read_link(is_link, subtask.map(|subtask| subtask.task))?;
    let kind = StepKind::new(step_type, cost, question, subtask);
    let step = Step {
        guid: StepId(guid),
        account: read_account(&account_id)?,
        task: TaskId(task),
        product: read_product(product_id)?,
        kind: kind.ok_or(StoreError::Corrupt("kind"))?,
        title,
        content: StepContent {
            body: valid(body.map(Body::parse).transpose(), "body")?,
            dependencies,
            external_id: read_external_id(external_id)?,
            instructions,
            looping,
            parts,
            published: Published::new(published).ok_or(StoreError::Corrupt("published"))?,
            skills,
            tags,
            translations,
        },
        link,
        r_data,
        row_version: RowVersion {
            version,
            dirty: dirty_record,
            created: Timestamp(created_ts),
            modified: Timestamp(modified_ts),
        },
    };
    Ok((step, Place(position)))
}

/// The managed task that the step links to, if it is a wiring step.
pub fn read_link(is_link: bool, subtask: Option<TaskId>) -> Result<Option<TaskId>, StoreError> {
    match (is_link, subtask) {
        (true, None) => Err(StoreError::Corrupt("is_link")),
        (true, subtask) => Ok(subtask),
        (false, _) => Ok(None),
    }
}

fn read_subtask(
    task: Option<Uuid>,
    product: Option<i64>,
) -> Result<Option<SubtaskRef>, StoreError> {
    let Some(task) = task.map(TaskId) else {
        return Ok(None);
    };
    let product = read_product(product.unwrap_or_default())?;
    Ok(Some(SubtaskRef { task, product }))
}

/// The row of a step at a place, without `indexed`, which only acknowledgements change.
pub fn step_row(step: Step, place: Place) -> Result<step::ActiveModel, StoreError> {
    let StepSize { listed, bodies } = StepSize::of(&step);
    let rest_digest = SourceDigest::of_step_content(&step).0.to_vec();
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
        body,
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
    let (step_type, cost, subtask) = (kind.step_type(), kind.cost(), kind.subtask());
    if link.is_some() && link != subtask.map(|subtask| subtask.task) {
        return Err(Error::Internal("a link that is not the subtask".to_owned()).into());
    }
    let row = step::Model {
        account_id: account.into_string(),
        guid: guid.0,
        task: task.0,
        position: place.0,
        kind: step_type.number(),
        product_id: product.get(),
        title,
        external_id: external_id.map(ExternalId::into_string),
        published: published.get(),
        subtask_id: subtask.map(|subtask| subtask.task.0),
        subtask_pid: subtask.map(|subtask| subtask.product.get()),
        is_link: link.is_some(),
        size: listed,
        body_size: bodies,
        rest_digest,
        language_count: stored_count(translations.len()),
        version: row_version.version,
        dirty_record: row_version.dirty,
        indexed: false,
        created_ts: row_version.created.0,
        modified_ts: row_version.modified.0,
        content: Json(StepFields {
            cost: cost.get(),
            dependencies,
            question: kind.into_feedback(),
            instructions,
            looping,
            parts,
            skills,
            tags,
            r_data,
        }),
        body: body.map(Body::into_string),
    };
    Ok(step::ActiveModel {
        indexed: NotSet,
        ..row.into_active_model()
    })
}
