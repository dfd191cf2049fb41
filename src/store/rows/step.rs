use sea_orm::{ActiveValue::NotSet, IntoActiveModel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{read_external_id, read_product, read_published, read_step_translation, valid};
use crate::{
    domain::{
        Error,
        dependency::Group,
        external_id::ExternalId,
        feedback::Feedback,
        ids::{AccountId, StepId, TaskId},
        order::Place,
        row_version::RowVersion,
        size::{StepSize, stored_count},
        step::{Cost, Step, StepContent, StepKind, StepType, SubtaskRef},
        task::Published,
        text::Body,
        time::Timestamp,
        translation::StepTranslations,
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
    #[serde(skip_serializing_if = "is_default")]
    pub cost: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub question: Option<Feedback>,
    /// Not in `content`, so that tasks and steps have them in the same place.
    #[serde(skip_serializing_if = "is_default")]
    pub dependencies: Option<Group>,
    #[serde(skip_serializing_if = "is_default")]
    pub content: StepContent,
    #[serde(skip_serializing_if = "is_default")]
    pub r_data: Map<String, Value>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The row of a step with the rows of its translations.
pub type StepRows = (step::Model, Vec<step_translation::Model>);

/// A step of the account, and its place in the task.
pub fn read_step(
    account: &AccountId,
    (row, translations): StepRows,
) -> Result<(Step, Place), StoreError> {
    let Json(fields) = row.content;
    let step_type = StepType::from_repr(row.kind).ok_or(StoreError::Corrupt("kind"))?;
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
        account: account.clone(),
        task: TaskId(row.task),
        product: read_product(row.product_id)?,
        kind: kind.ok_or(StoreError::Corrupt("kind"))?,
        title: row.title,
        subtask_external_id: read_external_id(row.subtask_external_id)?,
        content: StepContent {
            body: valid(row.body.map(Body::parse).transpose(), "body")?,
            dependencies: fields.dependencies,
            external_id: read_external_id(row.external_id)?,
            published: read_published(row.published)?,
            translations: translations
                .into_iter()
                .map(read_step_translation)
                .collect::<Result<_, _>>()?,
            ..fields.content
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

/// The row of a step at a place, without `listed` and `indexed`, which only index calls change.
pub fn step_row(step: Step, place: Place) -> Result<step::ActiveModel, StoreError> {
    let StepSize { listed, bodies } = StepSize::for_step(&step);
    let rest_digest = SourceDigest::for_step_content(&step).0.to_vec();
    let manages_tasks = !step.managed_tasks().is_empty();
    let (kind, mut content) = (step.kind, step.content);
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
        external_id: content.external_id.take().map(ExternalId::into_string),
        published: content.published.get(),
        subtask_id: subtask.map(|subtask| subtask.task.0),
        subtask_pid: subtask.map(|subtask| subtask.product.get()),
        subtask_external_id: step.subtask_external_id.map(ExternalId::into_string),
        is_link: step.link.is_some(),
        manages_tasks,
        size: listed,
        body_size: bodies,
        rest_digest,
        language_count: stored_count(content.translations.len()),
        version: step.row_version.version,
        dirty_record: step.row_version.dirty,
        listed: false,
        indexed: false,
        created_ts: step.row_version.created.0,
        modified_ts: step.row_version.modified.0,
        body: content.body.take().map(Body::into_string),
        content: Json(Box::new(StepFields {
            cost: cost.get(),
            question: kind.into_feedback(),
            dependencies: content.dependencies.take(),
            content: StepContent {
                published: Published::default(),
                translations: StepTranslations::new(),
                ..content
            },
            r_data: step.r_data,
        })),
    };
    Ok(step::ActiveModel {
        listed: NotSet,
        indexed: NotSet,
        ..row.into_active_model()
    })
}
