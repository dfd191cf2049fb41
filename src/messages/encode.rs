//! Converts domain values to messages. A field with a default gets its effective value.

use prost_types::Timestamp as ProtoTimestamp;

use crate::domain::time::Timestamp;

mod document;
mod finding;
pub mod json;
pub mod step;
mod task;

pub use document::document;
pub use finding::{finding, finding_counts, rule};
pub use step::{deleted_step, step, step_without_bodies};
pub use task::task;

/// An id, etag or the like; empty if there is none.
pub fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

pub fn timestamp(time: Timestamp) -> ProtoTimestamp {
    const MICROS: i64 = 1_000_000;
    let Timestamp(micros) = time;
    let rest = i32::try_from(micros.rem_euclid(MICROS)).unwrap_or_default();
    ProtoTimestamp {
        seconds: micros.div_euclid(MICROS),
        nanos: rest * 1_000,
    }
}
