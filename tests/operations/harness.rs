//! Servers of a test's own, what they show to those who run them, and a collector of
//! traces.

#[path = "../support/absent.rs"]
pub mod absent;
#[path = "../support/cluster.rs"]
pub mod cluster;
#[path = "../support/collector.rs"]
pub mod collector;
pub mod exposition;
#[path = "../support/scratch.rs"]
pub mod scratch;
pub mod service;

/// Where a PostgreSQL for this run is, unless there is none here. One for all tests
/// of the run.
pub fn postgres() -> Option<String> {
    static URL: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let url = URL.get_or_init(cluster::database_url).clone();
    if url.is_none() {
        absent::is_absent("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
    }
    url
}
