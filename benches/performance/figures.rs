//! Measurements that do not compare with the floor alone: many steps, many writers,
//! start and memory.

mod bulk_insert;
pub mod flat;
pub mod memory;
pub mod million;
pub mod start;
pub mod writers;
