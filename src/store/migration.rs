//! The schema, the same for both databases.
//!
//! *Invariant:* every key of a tenant's table begins with `account_id`, and so
//! does every foreign key, so that a reference across accounts cannot be
//! stored, and the tables can be spread by account over a distributed
//! PostgreSQL.

use sea_orm_migration::{MigrationTrait, MigratorTrait, async_trait};

mod m0001_core;
mod m0002_last_position;
mod m0003_partial_indexes;
mod m0004_last_position_again;
mod m0005_more_partial_indexes;

/// All migrations, oldest first.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_core::Migration),
            Box::new(m0002_last_position::Migration),
            Box::new(m0003_partial_indexes::Migration),
            Box::new(m0004_last_position_again::Migration),
            Box::new(m0005_more_partial_indexes::Migration),
        ]
    }
}

/// The name of the newest migration: what the schema of this version is called.
pub fn newest() -> String {
    let newest = Migrator::migrations().pop();
    newest.map_or_else(String::new, |migration| migration.name().to_owned())
}
