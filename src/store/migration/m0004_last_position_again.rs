//! The number that a task's last step stands at, counted anew: an import that changed a
//! managed task without naming its steps lost it.

use sea_orm_migration::prelude::*;

use super::m0002_last_position::COUNTED;

/// The migration.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0004_last_position_again"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(COUNTED).await?;
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Err(DbErr::Migration(
            "there is no way back: restore a back-up".to_owned(),
        ))
    }
}
