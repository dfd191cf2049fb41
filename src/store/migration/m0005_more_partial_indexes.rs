//! The indexes for lists serve lists alone.
//!
//! While PostgreSQL has no statistics of a young or restored database, an index that
//! begins with the account looks to it as good as the primary key for finding a row by
//! its id, and of equals it takes the newer one: reading one step went through all steps
//! of the account. A partial index is passed over by a statement that does not speak of
//! its column. The columns are never NULL, so the indexes hold what they held.

use sea_orm_migration::prelude::*;

/// The migration.
pub struct Migration;

/// An index, its table and columns, and the one that a statement must speak of.
const INDEXES: [(&str, &str, &str); 2] = [
    (
        "tasks_product",
        "tasks (account_id, product_id, guid)",
        "product_id",
    ),
    (
        "steps_order",
        "steps (account_id, task, position, fraction)",
        "task",
    ),
];

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0005_more_partial_indexes"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (index, columns, needed) in INDEXES {
            let anew = format!(
                "DROP INDEX {index}; \
                 CREATE INDEX {index} ON {columns} WHERE {needed} IS NOT NULL"
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
