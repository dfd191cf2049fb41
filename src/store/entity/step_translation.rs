//! A step's texts in one language.

use sea_orm::entity::prelude::*;

use crate::{domain::translation::StepTranslation, store::json::Json};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "step_translations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub step: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub language: String,
    pub locked: bool,
    /// Its texts except the body.
    pub content: Json<StepTranslation>,
    /// The step's title when this translation was written.
    pub translated_from_title: String,
    /// The step's `rest_digest` when this translation was written.
    pub translated_from_rest: Vec<u8>,
    pub body: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::step::Entity",
        from = "(Column::AccountId, Column::Step)",
        to = "(super::step::Column::AccountId, super::step::Column::Guid)"
    )]
    Step,
}

impl Related<super::step::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Step.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
