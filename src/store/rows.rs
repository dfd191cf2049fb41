//! Conversions between rows and the types of the domain. A row that does not convert is damaged:
//! [`StoreError::Corrupt`] names the column.

mod step;
mod task;
mod translation;

use sea_orm::{ColIdx, QueryResult, TryGetError, TryGetable};
use uuid::Uuid;

use crate::{
    domain::{
        external_id::ExternalId,
        ids::{ProductId, StepId, TaskId},
        task::Published,
        translation_work::SourceDigest,
    },
    store::error::StoreError,
};

pub use step::{StepFields, StepRows, read_step, step_row};
pub use task::{KIND_LINKED, LockedTaskRow, TaskRows, read_task, task_row};
pub use translation::{
    read_step_translation, read_task_translation, step_translation_row, task_translation_row,
};

impl TryGetable for TaskId {
    fn try_get_by<I: ColIdx>(row: &QueryResult, index: I) -> Result<Self, TryGetError> {
        Uuid::try_get_by(row, index).map(Self)
    }
}

impl TryGetable for StepId {
    fn try_get_by<I: ColIdx>(row: &QueryResult, index: I) -> Result<Self, TryGetError> {
        Uuid::try_get_by(row, index).map(Self)
    }
}

/// Turns an invalid value into [`StoreError::Corrupt`].
pub fn valid<T, E>(value: Result<T, E>, column: &'static str) -> Result<T, StoreError> {
    value.map_err(|_| StoreError::Corrupt(column))
}

pub fn read_product(id: i64) -> Result<ProductId, StoreError> {
    ProductId::new(id).ok_or(StoreError::Corrupt("product_id"))
}

pub fn read_digest(bytes: Vec<u8>, column: &'static str) -> Result<SourceDigest, StoreError> {
    valid(bytes.try_into().map(SourceDigest), column)
}

fn read_published(number: i32) -> Result<Published, StoreError> {
    Published::new(number).ok_or(StoreError::Corrupt("published"))
}

fn read_external_id(id: Option<String>) -> Result<Option<ExternalId>, StoreError> {
    valid(id.map(ExternalId::parse).transpose(), "external_id")
}
