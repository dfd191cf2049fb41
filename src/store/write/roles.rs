//! Creating and deleting roles.

use sea_orm::{ColumnTrait, QueryFilter, QueryResult};

use super::{Operation, transaction::Tx};
use crate::{
    domain::{
        Error, Result,
        changes::{Changes, RoleChange},
        decide::WriteContext,
        ids::RoleId,
        role::Role,
        text::Name,
    },
    store::{Account, WriteMode, error::StoreError, schema::entity::role},
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
    type Snapshot = ();
    type Answer = Role;

    async fn read(&self, _: &Tx) -> Result<Option<()>, StoreError> {
        Ok(Some(()))
    }

    async fn read_locked(&self, _: &Tx) -> Result<(), StoreError> {
        Ok(())
    }

    fn decide(&self, (): (), _: &WriteContext) -> Result<(Changes, Role)> {
        let changes = Changes {
            role: Some(RoleChange::Create(self.0.clone())),
            ..Changes::default()
        };
        let role = Role {
            // `complete` sets the id.
            id: RoleId(0),
            name: self.0.clone(),
        };
        Ok((changes, role))
    }

    fn complete(&self, role: Role, guard: &QueryResult) -> Result<Role, StoreError> {
        Ok(Role {
            id: RoleId(guard.try_get_by_index(0)?),
            ..role
        })
    }
}

struct DeleteRole(RoleId);

impl Operation for DeleteRole {
    type Snapshot = ();
    type Answer = ();

    async fn read(&self, _: &Tx) -> Result<Option<()>, StoreError> {
        Ok(Some(()))
    }

    async fn read_locked(&self, tx: &Tx) -> Result<(), StoreError> {
        let role = tx
            .select::<role::Entity>()
            .filter(role::Column::Id.eq(self.0.0));
        let found = role.one(&tx.db).await?;
        found.ok_or_else(|| Error::role_not_found(self.0, "id"))?;
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
