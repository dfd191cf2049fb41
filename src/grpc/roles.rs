//! RoleService: decode, one store call, encode.

use std::collections::BTreeSet;

use super::call::{Call, ignored_paths};
use crate::{
    domain::{Result, ids::RoleId, role::Role, violation::Reason},
    messages::decode::{self, REQUIRED, field},
    proto::v1::{
        self, CreateRoleRequest, CreateRoleResponse, DeleteRoleRequest, DeleteRoleResponse,
        ListRolesRequest, ListRolesResponse,
    },
};

impl Call {
    pub async fn list_roles(self, request: ListRolesRequest) -> Result<ListRolesResponse> {
        let tokens = self.page_tokens(&request);
        let (after, size) = decode::all(|violations| {
            tokens.start(request.page_size, &request.page_token, violations)
        })?;
        let page = self.account.list_roles(after, size).await?;
        let (roles, next_page_token) = tokens.page(page, |role| role.id, role);
        Ok(ListRolesResponse {
            roles,
            next_page_token,
        })
    }

    pub async fn create_role(self, request: CreateRoleRequest) -> Result<CreateRoleResponse> {
        let mut ignored = BTreeSet::new();
        let name = decode::all(|violations| {
            let mut field = violations.at("role");
            let role = field.required(request.role)?;
            ignored.extend((role.id != 0).then_some("id"));
            field::non_blank_text(role.name, field.field("name"))
        })?;
        let role = self.account.create_role(name).await?;
        Ok(CreateRoleResponse {
            role: Some(self::role(role)),
            ignored_paths: ignored_paths("role", ignored),
        })
    }

    pub async fn delete_role(self, request: DeleteRoleRequest) -> Result<DeleteRoleResponse> {
        let id = decode::all(|violations| {
            let mut field = violations.at("id");
            match request.id {
                0 => field.refuse(Reason::FieldRequired, REQUIRED),
                ..0 => field.refuse(Reason::FieldOutOfRange, "must be greater than 0"),
                _ => {}
            }
            Some(RoleId(request.id))
        })?;
        self.account.delete_role(id).await?;
        Ok(DeleteRoleResponse::default())
    }
}

fn role(role: Role) -> v1::Role {
    v1::Role {
        id: role.id.0,
        name: role.name.into_string(),
    }
}
