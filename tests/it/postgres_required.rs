//! A run without PostgreSQL fails where it is required.

use std::env;

use crate::kit::databases::Database;

#[test]
fn postgres_is_there_where_it_is_required() {
    let required = env::var("EXPERTISE_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
    assert!(
        !required || Database::Postgres.server().is_some(),
        "EXPERTISE_REQUIRE_POSTGRES=1, but there is no PostgreSQL"
    );
}
