//! The number that a task's last step stands at, so that a step is appended
//! without looking for it.

use sea_orm_migration::prelude::*;

use crate::store::entity::task::{Column, Entity};

/// The migration. Servers of the version before do not keep the number: stop them
/// before the first one of this version writes.
pub struct Migration;

/// Counts the number of every task.
pub(super) const COUNTED: &str = "UPDATE tasks SET last_position = \
    COALESCE((SELECT MAX(position) FROM steps \
              WHERE steps.account_id = tasks.account_id AND steps.task = tasks.guid), 0)";

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0002_last_position"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut number = ColumnDef::new(Column::LastPosition);
        let added = Table::alter()
            .table(Entity)
            .add_column(number.big_integer().not_null().default(0))
            .take();
        manager.alter_table(added).await?;
        manager.get_connection().execute_unprepared(COUNTED).await?;
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Err(DbErr::Migration(
            "there is no way back: restore a back-up".to_owned(),
        ))
    }
}
