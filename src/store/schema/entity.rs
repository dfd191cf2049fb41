//! The SeaORM entities of the tables.

pub mod request_outcome;
pub mod role;
pub mod server_key;
pub mod step;
pub mod step_translation;
pub mod task;
pub mod task_translation;
