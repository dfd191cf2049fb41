//! Creating and deleting roles. They are written directly, not as [`Changes`].

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ExprTrait, QueryFilter,
    sea_query::{Expr, OnConflict},
};

use super::{Operation, Tx, batch::Batch};
use crate::{
    domain::{Error, Missing, Result, changes::Changes, ids::RoleId, role::Role, text::Name},
    store::{
        Account, WriteMode,
        entity::{account, role},
        error::StoreError,
    },
};

impl Account {
    pub async fn create_role(&self, name: Name) -> Result<Role> {
        self.write(CreateRole(name), WriteMode::Store).await
    }

    pub async fn delete_role(&self, id: RoleId) -> Result<()> {
        self.write(DeleteRole(id), WriteMode::Store).await
    }
}

struct CreateRole(Name);

impl Operation for CreateRole {
    type Answer = Role;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Role), StoreError> {
        let (id, name) = (tx.take_role_id().await?, self.0.clone());
        let row = role::ActiveModel {
            account_id: Set(tx.context.account.as_str().to_owned()),
            id: Set(id.0),
            name: Set(name.as_str().to_owned()),
        };
        let mut batch = Batch::new(tx);
        batch.insert(vec![row]);
        batch.send().await?;
        Ok((Changes::default(), Role { id, name }))
    }
}

struct DeleteRole(RoleId);

impl Operation for DeleteRole {
    type Answer = ();

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, ()), StoreError> {
        let delete = tx.scope().delete::<role::Entity>();
        let delete = delete.filter(role::Column::Id.eq(self.0.0));
        match delete.exec(tx.db()).await?.rows_affected {
            0 => Err(Error::not_found(Missing::Role(self.0), "id").into()),
            _ => Ok((Changes::default(), ())),
        }
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
        batch.send().await?;
        let accounts = self.find::<Entity>().all(self.db()).await?;
        let account = accounts.first().ok_or(StoreError::Conflict)?;
        Ok(RoleId(account.last_role_id))
    }
}
