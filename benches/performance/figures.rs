//! Measurements other than the service's calls against the floor: many steps, many
//! writers, start and memory.

pub mod against;
pub mod analysis;
mod bulk_insert;
pub mod flat;
pub mod memory;
pub mod million;
pub mod partitions;
pub mod postgraphile;
pub mod start;
pub mod writers;
