//! Creating and deleting roles.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ExprTrait, QueryFilter,
    sea_query::{Expr, OnConflict},
};

use super::{Operation, Tx, batch::Batch};
use crate::{
    domain::{
        Error, Result,
        changes::{Changes, RoleChange},
        decide::WriteContext,
        ids::RoleId,
        role::Role,
        text::Name,
    },
    store::{
        Account, WriteMode,
        entity::{account, role},
        error::StoreError,
    },
};

impl Account {
    /// Creates a role.
    pub async fn create_role(&self, name: Name) -> Result<Role> {
        self.write(CreateRole(name), WriteMode::Store).await
    }

    /// Deletes a role.
    pub async fn delete_role(&self, id: RoleId) -> Result<()> {
        self.write(DeleteRole(id), WriteMode::Store).await
    }
}

struct CreateRole(Name);

impl Operation for CreateRole {
    /// The id of the new role.
    type Snapshot = RoleId;
    type Answer = Role;

    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<RoleId, StoreError> {
        tx.take_role_id().await
    }

    fn decide(&self, id: RoleId, _: &WriteContext) -> Result<(Changes, Role)> {
        let name = self.0.clone();
        let changes = Changes {
            role: Some(RoleChange::Create(id, name.clone())),
            ..Changes::default()
        };
        Ok((changes, Role { id, name }))
    }
}

struct DeleteRole(RoleId);

impl Operation for DeleteRole {
    type Snapshot = ();
    type Answer = ();

    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<(), StoreError> {
        let role = tx
            .find::<role::Entity>()
            .filter(role::Column::Id.eq(self.0.0));
        let found = tx.locked(role, role::Column::Id).all(tx.db()).await?;
        if found.is_empty() {
            return Err(Error::role_not_found(self.0, "id").into());
        }
        Ok(())
    }

    fn decide(&self, (): (), _: &WriteContext) -> Result<(Changes, ())> {
        let changes = Changes {
            role: Some(RoleChange::Delete(self.0)),
            ..Changes::default()
        };
        Ok((changes, ()))
    }
}

impl Tx<'_> {
    /// Takes the next role id of the account, and locks the account's row.
    async fn take_role_id(&self) -> Result<RoleId, StoreError> {
        use account::{ActiveModel, Column, Entity};
        let first = ActiveModel {
            account_id: Set(self.context.account.as_str().to_owned()),
            last_role_id: Set(1),
        };
        let next = Expr::col((Entity, Column::LastRoleId)).add(1);
        let increment = OnConflict::column(Column::AccountId)
            .value(Column::LastRoleId, next)
            .to_owned();
        let mut batch = Batch::new(self);
        batch.insert_rows(vec![first], Some(increment));
        batch.send(self).await?;
        let accounts = self.find::<Entity>().all(self.db()).await?;
        let account = accounts.first().ok_or(StoreError::Conflict)?;
        Ok(RoleId(account.last_role_id))
    }
}
