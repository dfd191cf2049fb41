//! Tasks, steps, their translations, roles, and what makes retries safe.

use sea_orm_migration::{
    prelude::*,
    sea_orm::{ActiveValue::Set, EntityTrait},
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::store::{
    PAGE_KEY,
    entity::{
        account, request_outcome, role, server_key, step, step_body, step_translation, task,
        task_translation,
    },
};

/// Longest account id.
const ACCOUNT_MAX: u32 = 64;

/// The migration.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0001_core"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            accounts(),
            server_keys(),
            roles(),
            request_outcomes(),
            tasks(),
            task_translations(),
            steps(),
            step_bodies(),
            step_translations(),
        ] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        server_key::Entity::insert(server_key::ActiveModel {
            name: Set(PAGE_KEY.to_owned()),
            value: Set(secret()),
        })
        .exec_without_returning(manager.get_connection())
        .await?;
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Err(DbErr::Migration(
            "there is no way back: restore a back-up".to_owned(),
        ))
    }
}

/// 32 bytes nobody can guess.
fn secret() -> Vec<u8> {
    Sha256::new()
        .chain_update(Uuid::new_v4())
        .chain_update(Uuid::new_v4())
        .finalize()
        .to_vec()
}

fn col<T: IntoIden>(name: T) -> ColumnDef {
    ColumnDef::new(name)
}

fn account_id<T: IntoIden>(name: T) -> ColumnDef {
    col(name).string_len(ACCOUNT_MAX).not_null().take()
}

fn accounts() -> TableCreateStatement {
    use account::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId).primary_key())
        .col(col(Column::LastRoleId).big_integer().not_null())
        .take()
}

fn server_keys() -> TableCreateStatement {
    use server_key::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(col(Column::Name).text().not_null().primary_key())
        .col(col(Column::Value).blob().not_null())
        .take()
}

fn roles() -> TableCreateStatement {
    use role::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::Id).big_integer().not_null())
        .col(col(Column::Name).text().not_null())
        .primary_key(Index::create().col(Column::AccountId).col(Column::Id))
        .take()
}

fn request_outcomes() -> TableCreateStatement {
    use request_outcome::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::RequestId).uuid().not_null())
        .col(col(Column::Digest).blob().not_null())
        .col(col(Column::Outcome).blob().not_null())
        .col(col(Column::CreatedTs).big_integer().not_null())
        .primary_key(
            Index::create()
                .col(Column::AccountId)
                .col(Column::RequestId),
        )
        .take()
}

fn tasks() -> TableCreateStatement {
    use task::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::Guid).uuid().not_null())
        .col(col(Column::Name).text().not_null())
        .col(col(Column::ProductId).big_integer().not_null())
        .col(col(Column::Kind).integer().not_null())
        .col(col(Column::Published).integer().not_null())
        .col(col(Column::Roles).text().not_null())
        .col(col(Column::RoleBits).integer().not_null())
        .col(col(Column::Dependencies).text().null())
        .col(col(Column::ParentGuid).uuid().null())
        .col(col(Column::Idx).integer().not_null())
        .col(col(Column::StepCount).big_integer().not_null())
        .col(col(Column::OrderEpoch).big_integer().not_null())
        .col(col(Column::Size).big_integer().not_null())
        .col(col(Column::Version).big_integer().not_null())
        .col(col(Column::DirtyRecord).boolean().not_null())
        .col(col(Column::MvnIndexed).boolean().not_null())
        .col(col(Column::MvnVersion).big_integer().not_null())
        .col(col(Column::MvnInfo).text().not_null())
        .col(col(Column::MvnTs).big_integer().null())
        .col(col(Column::CreatedTs).big_integer().not_null())
        .col(col(Column::ModifiedTs).big_integer().not_null())
        .primary_key(Index::create().col(Column::AccountId).col(Column::Guid))
        .foreign_key(
            ForeignKey::create()
                .name("tasks_parent")
                .from(Entity, (Column::AccountId, Column::ParentGuid))
                .to(Entity, (Column::AccountId, Column::Guid)),
        )
        .take()
}

fn task_translations() -> TableCreateStatement {
    use task_translation::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::Task).uuid().not_null())
        .col(col(Column::Language).text().not_null())
        .col(col(Column::Name).text().null())
        .col(col(Column::Locked).boolean().not_null())
        .col(col(Column::MadeName).text().not_null())
        .primary_key(
            Index::create()
                .col(Column::AccountId)
                .col(Column::Task)
                .col(Column::Language),
        )
        .foreign_key(
            ForeignKey::create()
                .name("task_translations_task")
                .from(Entity, (Column::AccountId, Column::Task))
                .to(task::Entity, (task::Column::AccountId, task::Column::Guid))
                .on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

fn steps() -> TableCreateStatement {
    use step::{Column, Entity};
    let task_key = (task::Column::AccountId, task::Column::Guid);
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::Guid).uuid().not_null())
        .col(col(Column::Task).uuid().not_null())
        .col(col(Column::Position).big_integer().not_null())
        .col(col(Column::Fraction).blob().not_null())
        .col(col(Column::Kind).integer().not_null())
        .col(col(Column::ProductId).big_integer().not_null())
        .col(col(Column::Title).text().not_null())
        .col(col(Column::Cost).integer().not_null())
        .col(col(Column::Published).integer().not_null())
        .col(col(Column::Dependencies).text().null())
        .col(col(Column::FeedbackConfig).text().null())
        .col(col(Column::Instructions).text().null())
        .col(col(Column::Looping).text().null())
        .col(col(Column::Parts).text().null())
        .col(col(Column::Skills).text().null())
        .col(col(Column::Tags).text().null())
        .col(col(Column::SubtaskId).uuid().null())
        .col(col(Column::SubtaskPid).big_integer().null())
        .col(col(Column::Link).uuid().null())
        .col(col(Column::RData).text().null())
        .col(col(Column::Size).big_integer().not_null())
        .col(col(Column::BodySize).big_integer().not_null())
        .col(col(Column::RestDigest).blob().not_null())
        .col(col(Column::Version).big_integer().not_null())
        .col(col(Column::DirtyRecord).boolean().not_null())
        .col(col(Column::CreatedTs).big_integer().not_null())
        .col(col(Column::ModifiedTs).big_integer().not_null())
        .primary_key(Index::create().col(Column::AccountId).col(Column::Guid))
        .foreign_key(
            ForeignKey::create()
                .name("steps_task")
                .from(Entity, (Column::AccountId, Column::Task))
                .to(task::Entity, task_key),
        )
        .foreign_key(
            ForeignKey::create()
                .name("steps_subtask")
                .from(Entity, (Column::AccountId, Column::SubtaskId))
                .to(task::Entity, task_key),
        )
        .foreign_key(
            ForeignKey::create()
                .name("steps_link")
                .from(Entity, (Column::AccountId, Column::Link))
                .to(task::Entity, task_key),
        )
        .take()
}

fn step_bodies() -> TableCreateStatement {
    use step_body::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::Step).uuid().not_null())
        .col(col(Column::Body).text().not_null())
        .primary_key(Index::create().col(Column::AccountId).col(Column::Step))
        .foreign_key(
            ForeignKey::create()
                .name("step_bodies_step")
                .from(Entity, (Column::AccountId, Column::Step))
                .to(step::Entity, (step::Column::AccountId, step::Column::Guid))
                .on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

fn step_translations() -> TableCreateStatement {
    use step_translation::{Column, Entity};
    Table::create()
        .table(Entity)
        .col(account_id(Column::AccountId))
        .col(col(Column::Step).uuid().not_null())
        .col(col(Column::Language).text().not_null())
        .col(col(Column::Locked).boolean().not_null())
        .col(col(Column::Title).text().null())
        .col(col(Column::Instructions).text().null())
        .col(col(Column::FeedbackConfig).text().null())
        .col(col(Column::MadeTitle).text().not_null())
        .col(col(Column::MadeRest).blob().not_null())
        .col(col(Column::Body).text().null())
        .primary_key(
            Index::create()
                .col(Column::AccountId)
                .col(Column::Step)
                .col(Column::Language),
        )
        .foreign_key(
            ForeignKey::create()
                .name("step_translations_step")
                .from(Entity, (Column::AccountId, Column::Step))
                .to(step::Entity, (step::Column::AccountId, step::Column::Guid))
                .on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        Index::create()
            .name("tasks_product")
            .table(task::Entity)
            .col(task::Column::AccountId)
            .col(task::Column::ProductId)
            .col(task::Column::Guid)
            .take(),
        Index::create()
            .name("tasks_parent_guid")
            .table(task::Entity)
            .col(task::Column::AccountId)
            .col(task::Column::ParentGuid)
            .take(),
        Index::create()
            .name("steps_order")
            .table(step::Entity)
            .col(step::Column::AccountId)
            .col(step::Column::Task)
            .col(step::Column::Position)
            .col(step::Column::Fraction)
            .take(),
        Index::create()
            .name("steps_subtask_id")
            .table(step::Entity)
            .col(step::Column::AccountId)
            .col(step::Column::SubtaskId)
            .take(),
        Index::create()
            .name("steps_link_task")
            .table(step::Entity)
            .col(step::Column::AccountId)
            .col(step::Column::Link)
            .take(),
        Index::create()
            .name("request_outcomes_age")
            .table(request_outcome::Entity)
            .col(request_outcome::Column::AccountId)
            .col(request_outcome::Column::CreatedTs)
            .take(),
    ]
}
