//! References that most rows do not have are indexed where they are.
//!
//! A write need not keep two entries for each step that say that there is nothing.
//! And while PostgreSQL has no statistics of a young database, an index that begins
//! with the account looked to it as good as any for finding a row by its id.

use sea_orm_migration::prelude::*;

/// The migration.
pub struct Migration;

/// An index, its table, and the reference that it finds.
const INDEXES: [(&str, &str, &str); 3] = [
    ("steps_subtask_id", "steps", "subtask_id"),
    ("steps_link_task", "steps", "link"),
    ("tasks_parent_guid", "tasks", "parent_guid"),
];

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0003_partial_indexes"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (index, table, reference) in INDEXES {
            let anew = format!(
                "DROP INDEX {index}; \
                 CREATE INDEX {index} ON {table} (account_id, {reference}) \
                 WHERE {reference} IS NOT NULL"
            );
            manager.get_connection().execute_unprepared(&anew).await?;
        }
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Err(DbErr::Migration(
            "there is no way back: restore a back-up".to_owned(),
        ))
    }
}
