//! Measurements that need databases of their own.

pub mod against;
pub mod analysis;
mod bulk_insert;
pub mod delete_step;
pub mod flat;
pub mod memory;
pub mod million;
pub mod start;
