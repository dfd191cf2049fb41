//! Which build this is.

use crate::store;

/// Version, commit and database schema, such as `0.1.0 (commit 1a2b3c4, schema m0001)`. The commit
/// is `unknown` if the build found none.
pub fn text() -> String {
    format!(
        "{} (commit {}, schema {})",
        env!("CARGO_PKG_VERSION"),
        env!("BUILD_COMMIT"),
        store::schema(),
    )
}
