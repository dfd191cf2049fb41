use sea_orm::{ActiveValue::NotSet, IntoActiveModel};

use super::{read_external_id, read_product, read_published, read_task_translation, valid};
use crate::{
    domain::{
        ids::{AccountId, StepId, TaskId},
        order::Numbering,
        row_version::RowVersion,
        size::{stored_count, task_size},
        task::{IndexState, LockedTask, ManagedBy, Task, TaskContent},
        text::Name,
        time::Timestamp,
    },
    store::{
        entity::{task, task_translation},
        error::StoreError,
        json::Json,
    },
};

/// The number of the API's `TASK_TYPE_LINKED`, stored in `kind`.
pub const KIND_LINKED: i32 = 1;

/// The row of a task with the rows of its translations.
pub type TaskRows = (task::Model, Vec<task_translation::Model>);

/// A task of the account, with the ids of its steps in order.
pub fn read_task(
    account: &AccountId,
    (row, translations): TaskRows,
    steps: Vec<StepId>,
) -> Result<Task, StoreError> {
    let managed = row.parent_guid.filter(|_| row.kind == KIND_LINKED);
    Ok(Task {
        guid: TaskId(row.guid),
        account: account.clone(),
        name: valid(Name::parse(row.name), "name")?,
        product: read_product(row.product_id)?,
        content: TaskContent {
            published: read_published(row.published)?,
            external_id: read_external_id(row.external_id)?,
            translations: translations
                .into_iter()
                .map(read_task_translation)
                .collect::<Result<_, _>>()?,
            ..row.content.0
        },
        managed: managed.map(|parent| ManagedBy {
            parent: TaskId(parent),
            idx: row.idx,
        }),
        steps,
        numbering: Numbering {
            epoch: row.order_epoch,
            last_position: row.last_position,
        },
        index: IndexState {
            indexed: row.mvn_indexed,
            version: row.mvn_version,
            info: row.mvn_info,
            at: row.mvn_ts.map(Timestamp),
        },
        row_version: RowVersion {
            version: row.version,
            dirty: row.dirty_record,
            created: Timestamp(row.created_ts),
            modified: Timestamp(row.modified_ts),
        },
    })
}

/// The columns that are read when a task is locked: all but the large `content` and a few others.
#[derive(sea_orm::DerivePartialModel)]
#[sea_orm(entity = "task::Entity")]
pub struct LockedTaskRow {
    guid: uuid::Uuid,
    name: String,
    product_id: i64,
    external_id: Option<String>,
    kind: i32,
    step_count: i64,
    last_position: i64,
    order_epoch: i64,
    language_count: i64,
    size: i64,
    version: i64,
    dirty_record: bool,
    created_ts: i64,
    modified_ts: i64,
    kept_ts: i64,
}

impl LockedTaskRow {
    /// When the guide was last known to be kept or, if it never was, created. Its newest revision is
    /// at least as new. `None` for a managed task, which belongs to the guide of another task.
    pub fn kept_ts(&self) -> Option<i64> {
        (self.kind != KIND_LINKED).then(|| self.kept_ts.max(self.created_ts))
    }

    pub fn read(self) -> Result<LockedTask, StoreError> {
        Ok(LockedTask {
            guid: TaskId(self.guid),
            name: valid(Name::parse(self.name), "name")?,
            product: read_product(self.product_id)?,
            external_id: read_external_id(self.external_id)?,
            managed: self.kind == KIND_LINKED,
            step_count: self.step_count,
            numbering: Numbering {
                epoch: self.order_epoch,
                last_position: self.last_position,
            },
            languages: usize::try_from(self.language_count).unwrap_or_default(),
            size: self.size,
            row_version: RowVersion {
                version: self.version,
                dirty: self.dirty_record,
                created: Timestamp(self.created_ts),
                modified: Timestamp(self.modified_ts),
            },
        })
    }
}

/// The row of a task, without `listed`, which only index calls change, and `kept_ts`, which only
/// checkpoints change.
pub fn task_row(task: &Task) -> task::ActiveModel {
    let content = &task.content;
    let row = task::Model {
        account_id: task.account.as_str().to_owned(),
        guid: task.guid.0,
        name: task.name.as_str().to_owned(),
        product_id: task.product.get(),
        kind: if task.managed.is_some() {
            KIND_LINKED
        } else {
            0
        },
        published: content.published.get(),
        role_bits: content
            .roles
            .iter()
            .fold(0, |bits, level| bits | level.bit()),
        external_id: content
            .external_id
            .as_ref()
            .map(|id| id.as_str().to_owned()),
        parent_guid: task.managed.map(|managed| managed.parent.0),
        idx: task.managed.map_or(0, |managed| managed.idx),
        step_count: stored_count(task.steps.len()),
        last_position: task.numbering.last_position,
        order_epoch: task.numbering.epoch,
        size: task_size(task),
        language_count: stored_count(content.translations.len()),
        version: task.row_version.version,
        dirty_record: task.row_version.dirty,
        listed: false,
        mvn_indexed: task.index.indexed,
        mvn_version: task.index.version,
        mvn_info: task.index.info.clone(),
        mvn_ts: task.index.at.map(|at| at.0),
        created_ts: task.row_version.created.0,
        modified_ts: task.row_version.modified.0,
        kept_ts: 0,
        content: Json(content.clone()),
    };
    task::ActiveModel {
        listed: NotSet,
        kept_ts: NotSet,
        ..row.into_active_model()
    }
}
