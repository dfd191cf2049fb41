//! The schema, the same for both databases.
//!
//! *Invariant:* every key of an account's table begins with `account_id`, and so does
//! every foreign key, so that a reference across accounts cannot be stored, and the
//! tables can be spread by account over a distributed PostgreSQL.

pub mod entity;
mod m0001;

use sea_orm_migration::{MigrationTrait, MigratorTrait, async_trait};

/// All migrations, oldest first. From the first release on they are only added.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m0001::Migration)]
    }
}

/// The name of the newest migration: what the schema of this version is called.
pub fn newest() -> String {
    let newest = Migrator::migrations().pop();
    newest.map_or_else(String::new, |migration| migration.name().to_owned())
}
