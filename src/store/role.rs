//! Roles.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::{
    Account, Mode,
    entity::role::{ActiveModel, Column, Entity, Model},
    fault::Fault,
};
use crate::domain::{
    Error, Result,
    ids::RoleId,
    page::{Page, PageSize},
    role::Role,
    text::Name,
};

/// Counts up and never back, so that the id of a deleted role is not used again.
const NEXT_ID: &str = "INSERT INTO accounts (account_id, last_role_id) VALUES ($1, 1) \
    ON CONFLICT (account_id) DO UPDATE SET last_role_id = accounts.last_role_id + 1 \
    RETURNING last_role_id";

impl Account {
    /// The account's roles in the order of their creation.
    pub async fn list_roles(&self, after: Option<RoleId>, size: PageSize) -> Result<Page<Role>> {
        let limit = size.get() as usize;
        let rows = Entity::find()
            .filter(Column::AccountId.eq(self.id.as_str()))
            .filter(Column::Id.gt(after.map_or(0, |id| id.0)))
            .order_by_asc(Column::Id)
            .limit(u64::from(size.get()) + 1)
            .all(&self.lagging())
            .await
            .map_err(Fault::from)?;
        let more = rows.len() > limit;
        let items = rows
            .into_iter()
            .take(limit)
            .map(read)
            .collect::<Result<_, Fault>>()?;
        Ok(Page { items, more })
    }

    /// Creates a role.
    pub async fn create_role(&self, name: Name) -> Result<Role> {
        self.write(Mode::Store, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                use sea_orm::ConnectionTrait;
                let row = tx
                    .db
                    .query_one_raw(tx.statement(NEXT_ID, []))
                    .await?
                    .ok_or(Fault::Corrupt("role counter"))?;
                let id: i64 = row.try_get_by_index(0)?;
                Entity::insert(ActiveModel {
                    account_id: Set(tx.account_id().to_owned()),
                    id: Set(id),
                    name: Set(name.as_str().to_owned()),
                })
                .exec_without_returning(&tx.db)
                .await?;
                Ok(Role {
                    id: RoleId(id),
                    name,
                })
            })
        })
        .await
    }

    /// Deletes a role.
    pub async fn delete_role(&self, id: RoleId) -> Result<()> {
        self.write(Mode::Store, move |tx| {
            Box::pin(async move {
                let gone = Entity::delete_many()
                    .filter(Column::AccountId.eq(tx.account_id()))
                    .filter(Column::Id.eq(id.0))
                    .exec(&tx.db)
                    .await?
                    .rows_affected;
                if gone == 0 {
                    return Err(Error::RoleNotFound(id).into());
                }
                Ok(())
            })
        })
        .await
    }
}

fn read(row: Model) -> Result<Role, Fault> {
    let Model {
        account_id: _,
        id,
        name,
    } = row;
    Ok(Role {
        id: RoleId(id),
        name: Name::parse(name).map_err(|_| Fault::Corrupt("role name"))?,
    })
}
