use sea_orm::IntoActiveModel;
use serde::{Deserialize, Serialize};

use super::{read_account, read_external_id, read_product, valid};
use crate::{
    domain::{
        dependency::Group,
        ids::{StepId, TaskId},
        order::Numbering,
        row_version::RowVersion,
        size::{stored_count, task_size},
        task::{AccessLevel, IndexState, LockedTask, ManagedBy, Published, Task, TaskContent},
        text::Name,
        time::Timestamp,
        translation::TaskTranslations,
    },
    store::{entity::task, error::StoreError, json::Json},
};

/// The number of the API's `TASK_TYPE_LINKED`, stored in `kind`.
pub const KIND_LINKED: i32 = 1;

/// The fields of a task that no statement filters or sorts by: the column `content`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Group>,
    /// The numbers of the access levels in the caller's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<i32>,
}

/// The task of a row with its translations and the ids of its steps in order.
pub fn read_task(
    row: task::Model,
    translations: TaskTranslations,
    steps: Vec<StepId>,
) -> Result<Task, StoreError> {
    let task::Model {
        account_id,
        guid,
        name,
        product_id,
        kind,
        published,
        role_bits: _,
        external_id,
        parent_guid,
        idx,
        step_count: _,
        last_position,
        order_epoch,
        size: _,
        language_count: _,
        version,
        dirty_record,
        mvn_indexed,
        mvn_version,
        mvn_info,
        mvn_ts,
        created_ts,
        modified_ts,
        content: Json(TaskFields {
            dependencies,
            roles,
        }),
    } = row;
    let roles = roles
        .into_iter()
        .map(|number| AccessLevel::from_number(number).ok_or(StoreError::Corrupt("roles")));
    let managed = parent_guid.filter(|_| kind == KIND_LINKED);
    Ok(Task {
        guid: TaskId(guid),
        account: read_account(&account_id)?,
        name: valid(Name::parse(name), "name")?,
        product: read_product(product_id)?,
        content: TaskContent {
            dependencies,
            published: Published::new(published).ok_or(StoreError::Corrupt("published"))?,
            roles: roles.collect::<Result<_, _>>()?,
            external_id: read_external_id(external_id)?,
            translations,
        },
        managed: managed.map(|parent| ManagedBy {
            parent: TaskId(parent),
            idx,
        }),
        steps,
        numbering: Numbering {
            epoch: order_epoch,
            last_position,
        },
        index: IndexState {
            indexed: mvn_indexed,
            version: mvn_version,
            info: mvn_info,
            at: mvn_ts.map(Timestamp),
        },
        row_version: RowVersion {
            version,
            dirty: dirty_record,
            created: Timestamp(created_ts),
            modified: Timestamp(modified_ts),
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
}

impl LockedTaskRow {
    pub fn read(self) -> Result<LockedTask, StoreError> {
        Ok(LockedTask {
            guid: TaskId(self.guid),
            name: valid(Name::parse(self.name), "name")?,
            product: read_product(self.product_id)?,
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

/// The row of a task.
pub fn task_row(task: &Task) -> task::ActiveModel {
    let Task {
        guid,
        account,
        name,
        product,
        content:
            TaskContent {
                dependencies,
                published,
                roles,
                external_id,
                translations,
            },
        managed,
        steps,
        numbering,
        index,
        row_version,
    } = task;
    task::Model {
        account_id: account.as_str().to_owned(),
        guid: guid.0,
        name: name.as_str().to_owned(),
        product_id: product.get(),
        kind: if managed.is_some() { KIND_LINKED } else { 0 },
        published: published.get(),
        role_bits: roles.iter().fold(0, |bits, level| bits | level.bit()),
        external_id: external_id.as_ref().map(|id| id.as_str().to_owned()),
        parent_guid: managed.map(|managed| managed.parent.0),
        idx: managed.map_or(0, |managed| managed.idx),
        step_count: stored_count(steps.len()),
        last_position: numbering.last_position,
        order_epoch: numbering.epoch,
        size: task_size(task),
        language_count: stored_count(translations.len()),
        version: row_version.version,
        dirty_record: row_version.dirty,
        mvn_indexed: index.indexed,
        mvn_version: index.version,
        mvn_info: index.info.clone(),
        mvn_ts: index.at.map(|at| at.0),
        created_ts: row_version.created.0,
        modified_ts: row_version.modified.0,
        content: Json(TaskFields {
            dependencies: dependencies.clone(),
            roles: roles.iter().map(|level| level.number()).collect(),
        }),
    }
    .into_active_model()
}
