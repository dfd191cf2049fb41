//! Roles.

use std::sync::{Arc, LazyLock};

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::{
    Account, Mode,
    entity::role::{Column, Entity, Model},
    fault::Fault,
    script::{CHANGED, Script, Words},
    transaction::{Tx, Write, work},
};
use crate::domain::{
    Error, Result,
    ids::RoleId,
    page::{Page, PageSize},
    role::Role,
    text::Name,
};

/// Counts up and never back, so that the id of a deleted role is not used again. `$1` is
/// the account, `$2` the name.
static CREATE: LazyLock<Words> = LazyLock::new(|| {
    Words::of(&Script {
        decides: "INSERT INTO accounts (account_id, last_role_id) VALUES ($1, 1) \
            ON CONFLICT (account_id) DO UPDATE SET last_role_id = accounts.last_role_id + 1"
            .to_owned(),
        columns: "last_role_id",
        row: "FROM accounts WHERE account_id = $1",
        then: vec![format!(
            "INSERT INTO roles (account_id, id, name) SELECT $1, last_role_id, $2 FROM {CHANGED}"
        )],
        wary: false,
    })
});

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
        let name = Arc::new(name);
        self.run(Write {
            mode: Mode::Store,
            quick: Some(work(&name, |tx, name| {
                Box::pin(async move { create(tx, &name).await.map(Some) })
            })),
            whole: work(&name, |tx, name| {
                Box::pin(async move { create(tx, &name).await })
            }),
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

async fn create(tx: &Tx, name: &Name) -> Result<Role, Fault> {
    let values = [name.as_str().into()];
    let counted = tx.run(CREATE.for_database_of(tx), values).await?;
    let counted = counted.ok_or(Fault::Corrupt("role counter"))?;
    Ok(Role {
        id: RoleId(counted.try_get_by_index(0)?),
        name: name.clone(),
    })
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
