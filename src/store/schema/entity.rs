//! The SeaORM entities of the tables.

use sea_orm::entity::prelude::*;

pub mod request_outcome;
pub mod role;
pub mod server_key;
pub mod step;
pub mod step_symbol;
pub mod step_translation;
pub mod task;
pub mod task_symbol;
pub mod task_translation;

/// The relations of every entity: none, as each query writes its own joins.
#[derive(Copy, Clone, Debug, EnumIter)]
pub enum Relation {}

impl RelationTrait for Relation {
    fn def(&self) -> RelationDef {
        match *self {}
    }
}
