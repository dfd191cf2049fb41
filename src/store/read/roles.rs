//! Lists roles.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

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
        entity::role::{Column, Entity, Model},
        error::StoreError,
        rows::valid,
    },
};

impl Account {
    /// A page of the account's roles in order of creation.
    pub async fn list_roles(&self, after: Option<RoleId>, size: PageSize) -> Result<Page<Role>> {
        let scope = self.reader();
        let rows = scope
            .find::<Entity>()
            .apply_if(after, |roles, after| roles.filter(Column::Id.gt(after.0)))
            .order_by_asc(Column::Id)
            .limit(size.rows())
            .all(scope.db)
            .await
            .map_err(StoreError::from)?;
        Ok(Page::from_rows(rows, size).try_map(read_role)?)
    }
}

fn read_role(row: Model) -> Result<Role, StoreError> {
    Ok(Role {
        id: RoleId(row.id),
        name: valid(Name::parse(row.name), "role name")?,
    })
}
