//! Reads. Each returns one state of the database: most are one statement, and an export is
//! one transaction.

mod roles;
mod row_reader;
pub mod step_row;
pub mod steps;
pub mod task_tree;
pub mod tasks;
mod translation_work;

pub use row_reader::RowReader;
