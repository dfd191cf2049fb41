//! Points in time.

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the Unix epoch, UTC. Both databases store exactly this
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Timestamp(pub i64);
