//! Texts of statements that are made once.

use std::sync::OnceLock;

use sea_orm::DbBackend;

/// The text of a statement for each database, made when it is first used.
pub struct CachedSql {
    make: fn(DbBackend) -> String,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl CachedSql {
    pub const fn new(make: fn(DbBackend) -> String) -> Self {
        Self {
            make,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
    }

    pub fn of(&self, backend: DbBackend) -> &str {
        let text = match backend {
            DbBackend::Sqlite => &self.sqlite,
            _ => &self.postgres,
        };
        text.get_or_init(|| (self.make)(backend))
    }
}
