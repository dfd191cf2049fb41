//! A step's texts in one language.

use super::prelude::*;

use crate::store::{json::Json, rows::StepTranslationTexts};

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
    pub content: Json<StepTranslationTexts>,
    /// The step's title when this translation was written.
    pub translated_from_title: String,
    /// The step's `rest_digest` when this translation was written.
    pub translated_from_rest: Vec<u8>,
    pub body: Option<String>,
}

impl ActiveModelBehavior for ActiveModel {}
