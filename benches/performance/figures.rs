//! What has a bar other than the floor: the cost of many steps, of many writers,
//! of a start, and of memory.

pub mod flat;
pub mod memory;
pub mod million;
pub mod start;
mod swell;
pub mod writers;
