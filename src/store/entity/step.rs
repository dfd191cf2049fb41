//! Steps, without their translations.

use sea_orm::entity::prelude::*;

use crate::store::{json::Json, rows::StepFields};

#[derive(Clone, Debug, Default, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "steps")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    pub task: Uuid,
    /// [`Place`](crate::domain::order::Place).
    pub position: i64,
    /// The type's number in the API.
    pub kind: i32,
    pub product_id: i64,
    pub title: String,
    pub external_id: Option<String>,
    pub published: i32,
    pub subtask_id: Option<Uuid>,
    pub subtask_pid: Option<i64>,
    pub subtask_external_id: Option<String>,
    /// Whether this is a wiring step. Its subtask is then the managed task.
    pub is_link: bool,
    /// Whether an answer to its question manages a task.
    pub manages_tasks: bool,
    /// [`StepSize::listed`](crate::domain::size::StepSize::listed).
    pub size: i64,
    /// [`StepSize::bodies`](crate::domain::size::StepSize::bodies).
    pub body_size: i64,
    /// [`SourceDigest::for_content`](crate::domain::translation_work::SourceDigest::for_content).
    pub rest_digest: Vec<u8>,
    /// The number of its translations.
    pub language_count: i64,
    pub version: i64,
    /// Whether the external index has not acknowledged this version.
    pub dirty_record: bool,
    /// Whether `ListIndexWork` has listed it since the external index last reported that it does
    /// not hold it.
    pub listed: bool,
    /// Whether the external index holds the step. Only its acknowledgements set it.
    pub indexed: bool,
    pub created_ts: i64,
    pub modified_ts: i64,
    /// The fields that no statement filters or sorts by. They may be large. Boxed, so that the allocator
    /// reuses the memory of a list of rows. Lists were a third slower without the box.
    pub content: Json<Box<StepFields>>,
    pub body: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::task::Entity",
        from = "(Column::AccountId, Column::Task)",
        to = "(super::task::Column::AccountId, super::task::Column::Guid)"
    )]
    Task,
    #[sea_orm(
        belongs_to = "super::task::Entity",
        from = "(Column::AccountId, Column::SubtaskId)",
        to = "(super::task::Column::AccountId, super::task::Column::Guid)"
    )]
    Subtask,
    #[sea_orm(has_many = "super::step_translation::Entity")]
    Translations,
}

impl Related<super::step_translation::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Translations.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
