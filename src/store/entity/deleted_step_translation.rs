//! The translations of deleted steps: the columns of [`step_translation`](super::step_translation).

use super::prelude::*;
use crate::{domain::translation::StepTranslation, store::json::Json};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "deleted_step_translations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub step: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub language: String,
    pub locked: bool,
    pub content: Json<StepTranslation>,
    pub translated_from_title: String,
    pub translated_from_rest: Vec<u8>,
    pub body: Option<String>,
}

impl ActiveModelBehavior for ActiveModel {}
