//! Servers of a test's own, what they show to those who run them, and a collector of
//! traces.

#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{collector, missing as absent, postgres as cluster, scratch};
pub mod exposition;
pub mod service;

/// Where a PostgreSQL for this run is, unless there is none here. One for all tests
/// of the run.
pub fn postgres() -> Option<String> {
    static URL: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let url = URL.get_or_init(cluster::database_url).clone();
    if url.is_none() {
        absent::report_missing("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
    }
    url
}
