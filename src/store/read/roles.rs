//! Lists roles.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::{
    domain::{
        Result,
        ids::RoleId,
        page::{Page, PageSize},
        role::Role,
        text::Name,
    },
    store::{
        Account,
        error::StoreError,
        json_columns,
        schema::entity::role::{Column, Entity, Model},
    },
};

impl Account {
    /// A page of the account's roles in order of creation.
    pub async fn list_roles(&self, after: Option<RoleId>, size: PageSize) -> Result<Page<Role>> {
        let limit = size.get() as usize;
        let rows = self
            .select::<Entity>()
            .filter(Column::Id.gt(after.map_or(0, |id| id.0)))
            .order_by_asc(Column::Id)
            .limit(u64::from(size.get()) + 1)
            .all(self.reader())
            .await
            .map_err(StoreError::from)?;
        let more = rows.len() > limit;
        let items = rows
            .into_iter()
            .take(limit)
            .map(read_role)
            .collect::<Result<_, StoreError>>()?;
        Ok(Page { items, more })
    }
}

fn read_role(row: Model) -> Result<Role, StoreError> {
    let Model {
        account_id: _,
        id,
        name,
    } = row;
    Ok(Role {
        id: RoleId(id),
        name: json_columns::valid(Name::parse(name), "role name")?,
    })
}
