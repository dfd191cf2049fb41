//! Deleted steps that can be restored: the columns of [`step`](super::step), and of the deletion.

use super::prelude::*;
use crate::store::{json::Json, rows::StepFields};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "deleted_steps")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    pub task: Uuid,
    pub position: i64,
    pub kind: i32,
    pub product_id: i64,
    pub title: String,
    pub external_id: Option<String>,
    pub published: i32,
    pub subtask_id: Option<Uuid>,
    pub subtask_pid: Option<i64>,
    pub subtask_external_id: Option<String>,
    pub is_link: bool,
    pub manages_tasks: bool,
    pub size: i64,
    pub body_size: i64,
    pub rest_digest: Vec<u8>,
    pub language_count: i64,
    pub version: i64,
    pub dirty_record: bool,
    pub listed: bool,
    pub indexed: bool,
    pub created_ts: i64,
    pub modified_ts: i64,
    pub content: Json<Box<StepFields>>,
    pub deleted_ts: i64,
    /// The subject of the call.
    pub deleted_by: String,
    /// The step before it; none if it was the first.
    pub previous_step: Option<Uuid>,
    pub body: Option<String>,
}

impl ActiveModelBehavior for ActiveModel {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sea_orm::Iterable;

    use super::super::step;
    use super::*;

    #[test]
    fn it_has_every_column_of_a_step() {
        let columns: BTreeSet<&str> = Column::iter().map(|it| it.as_str()).collect();
        let missing = step::Column::iter().find(|it| !columns.contains(it.as_str()));
        assert_eq!(missing.map(|it| it.as_str()), None);
    }
}
