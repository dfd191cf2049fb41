//! Steps, without their translations.

use sea_orm::entity::prelude::*;

use super::Relation;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "steps")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
    pub task: Uuid,
    pub position: i64,
    pub fraction: Vec<u8>,
    /// The type's number in the contract.
    pub kind: i32,
    pub product_id: i64,
    pub title: String,
    pub external_id: Option<String>,
    pub cost: i32,
    pub published: i32,
    pub dependencies: Option<String>,
    pub feedback_config: Option<String>,
    pub instructions: Option<String>,
    pub looping: Option<String>,
    pub parts: Option<String>,
    pub skills: Option<String>,
    pub tags: Option<String>,
    pub subtask_id: Option<Uuid>,
    pub subtask_pid: Option<i64>,
    /// Whether the subtask is the step's link.
    pub is_link: bool,
    pub r_data: Option<String>,
    /// [`StepSize::listed`](crate::domain::size::StepSize::listed).
    pub size: i64,
    /// [`StepSize::bodies`](crate::domain::size::StepSize::bodies).
    pub body_size: i64,
    /// [`SourceDigest::of_content`](crate::domain::translation_work::SourceDigest::of_content).
    pub rest_digest: Vec<u8>,
    /// How many translations it has. Reads skip the translations when there are none.
    pub language_count: i64,
    pub version: i64,
    pub dirty_record: bool,
    /// Whether the external index holds it. Only its acknowledgements set it.
    pub indexed: bool,
    pub created_ts: i64,
    pub modified_ts: i64,
    pub body: Option<String>,
}

impl ActiveModelBehavior for ActiveModel {}
