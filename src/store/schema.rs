//! The schema, the same for both databases.
//!
//! *Invariant:* every primary and foreign key of an account's table begins with `account_id`. So no
//! reference across accounts can be stored, and Citus can shard the tables by account.

mod m0001;

use sea_orm::DbBackend;

use crate::domain::sha256::Sha256;

/// All migrations, oldest first. Once released, none is changed or removed.
pub const MIGRATIONS: [Migration; 1] = [m0001::MIGRATION];

pub struct Migration {
    pub name: &'static str,
    /// The statements, with placeholders for what differs between the databases.
    templates: &'static [&'static [&'static str]],
    pub statements: fn(DbBackend) -> Vec<String>,
}

/// The sequence that the `seq` of changes is drawn from, on PostgreSQL.
pub const CHANGES_SEQUENCE: &str = "changes_seq";

/// The version of the JSON in `content` columns. Defaults of serde cover added fields. Any other
/// change needs a new version, or a migration once it is released.
const CONTENT_VERSION: &str = "2";

/// A digest of the statements of the first `migrations` migrations. It distinguishes schemas of the same
/// name that different commits create. Line breaks do not affect it.
pub fn digest(migrations: usize) -> [u8; 32] {
    MIGRATIONS
        .iter()
        .take(migrations)
        .flat_map(|migration| migration.templates.concat())
        .flat_map(|statement| statement.split_whitespace().chain([";"]))
        .fold(Sha256::default().with(CONTENT_VERSION), |digest, word| {
            digest.with(word).with(" ")
        })
        .finish()
}

pub struct SchemaTable {
    pub name: &'static str,
    /// Whether its rows belong to accounts. Calls change only such tables.
    pub belongs_to_accounts: bool,
}

/// All tables that migrations create.
pub fn tables() -> impl Iterator<Item = SchemaTable> {
    m0001::tables()
}

/// The name of the newest migration, which names the schema of this version.
pub fn newest_migration() -> &'static str {
    MIGRATIONS.last().map_or("", |migration| migration.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_is_part_of_the_digest() {
        for applied in 0..MIGRATIONS.len() {
            assert_ne!(digest(applied), digest(applied + 1), "{applied}");
        }
    }
}
