use sea_orm::{ActiveValue::NotSet, IntoActiveModel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    read_account, read_external_id, read_product, read_published, read_step_translation, valid,
};
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
        text::{Body, Tag},
        time::Timestamp,
        translation_work::SourceDigest,
    },
    store::{
        entity::{step, step_translation},
        error::StoreError,
        json::Json,
    },
};

/// The fields of a step that no statement filters or sorts by: the column `content`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFields {
    #[serde(skip_serializing_if = "is_zero")]
    pub cost: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Feedback>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looping: Option<Looping>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Tag>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Tag>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub r_data: Map<String, Value>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The row of a step with those of its translations.
pub type StepRows = (step::Model, Vec<step_translation::Model>);

/// A step, and its place in the task.
pub fn read_step((row, translations): StepRows) -> Result<(Step, Place), StoreError> {
    let Json(fields) = row.content;
    let step_type = StepType::from_number(row.kind).ok_or(StoreError::Corrupt("kind"))?;
    let cost = Cost::new(fields.cost).ok_or(StoreError::Corrupt("cost"))?;
    let subtask = match row.subtask_id {
        Some(task) => Some(SubtaskRef {
            task: TaskId(task),
            product: read_product(row.subtask_pid.unwrap_or_default())?,
        }),
        None => None,
    };
    let kind = StepKind::new(step_type, cost, fields.question, subtask);
    let step = Step {
        guid: StepId(row.guid),
        account: read_account(&row.account_id)?,
        task: TaskId(row.task),
        product: read_product(row.product_id)?,
        kind: kind.ok_or(StoreError::Corrupt("kind"))?,
        title: row.title,
        content: StepContent {
            body: valid(row.body.map(Body::parse).transpose(), "body")?,
            dependencies: fields.dependencies,
            external_id: read_external_id(row.external_id)?,
            instructions: fields.instructions,
            looping: fields.looping,
            parts: fields.parts,
            published: read_published(row.published)?,
            skills: fields.skills,
            tags: fields.tags,
            translations: translations
                .into_iter()
                .map(read_step_translation)
                .collect::<Result<_, _>>()?,
        },
        link: read_link(row.is_link, subtask.map(|subtask| subtask.task))?,
        r_data: fields.r_data,
        row_version: RowVersion {
            version: row.version,
            dirty: row.dirty_record,
            created: Timestamp(row.created_ts),
            modified: Timestamp(row.modified_ts),
        },
    };
    Ok((step, Place(row.position)))
}

/// The managed task that the step links to, if it is a wiring step.
fn read_link(is_link: bool, subtask: Option<TaskId>) -> Result<Option<TaskId>, StoreError> {
    match (is_link, subtask) {
        (true, None) => Err(StoreError::Corrupt("is_link")),
        (true, subtask) => Ok(subtask),
        (false, _) => Ok(None),
    }
}

/// The row of a step at a place, without `indexed`, which only acknowledgements change.
pub fn step_row(step: Step, place: Place) -> Result<step::ActiveModel, StoreError> {
    let StepSize { listed, bodies } = StepSize::of(&step);
    let rest_digest = SourceDigest::of_step_content(&step).0.to_vec();
    let (kind, content) = (step.kind, step.content);
    let (step_type, cost, subtask) = (kind.step_type(), kind.cost(), kind.subtask());
    if step.link.is_some() && step.link != subtask.map(|subtask| subtask.task) {
        return Err(Error::Internal("a link that is not the subtask".to_owned()).into());
    }
    let row = step::Model {
        account_id: step.account.into_string(),
        guid: step.guid.0,
        task: step.task.0,
        position: place.0,
        kind: step_type.number(),
        product_id: step.product.get(),
        title: step.title,
        external_id: content.external_id.map(ExternalId::into_string),
        published: content.published.get(),
        subtask_id: subtask.map(|subtask| subtask.task.0),
        subtask_pid: subtask.map(|subtask| subtask.product.get()),
        is_link: step.link.is_some(),
        size: listed,
        body_size: bodies,
        rest_digest,
        language_count: stored_count(content.translations.len()),
        version: step.row_version.version,
        dirty_record: step.row_version.dirty,
        indexed: false,
        created_ts: step.row_version.created.0,
        modified_ts: step.row_version.modified.0,
        content: Json(StepFields {
            cost: cost.get(),
            dependencies: content.dependencies,
            question: kind.into_feedback(),
            instructions: content.instructions,
            looping: content.looping,
            parts: content.parts,
            skills: content.skills,
            tags: content.tags,
            r_data: step.r_data,
        }),
        body: content.body.map(Body::into_string),
    };
    Ok(step::ActiveModel {
        indexed: NotSet,
        ..row.into_active_model()
    })
}
