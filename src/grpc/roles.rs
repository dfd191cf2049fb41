//! RoleService: decode, one store call, encode.

use tonic::{Request, Response};

use super::{Services, call::Answer};
use crate::{
    domain::{ids::RoleId, role::Role, violation::Reason},
    messages::{
        decode::{self, REQUIRED, field},
        ignored::Ignored,
    },
    proto::v1::{
        self, CreateRoleRequest, CreateRoleResponse, DeleteRoleRequest, DeleteRoleResponse,
        ListRolesRequest, ListRolesResponse, role_service_server::RoleService,
    },
};

#[tonic::async_trait]
impl RoleService for Services {
    async fn list_roles(&self, request: Request<ListRolesRequest>) -> Answer<ListRolesResponse> {
        let (call, request) = self.call(request)?;
        let tokens = call.page_tokens("ListRoles", &request);
        let (after, size) = decode::all(|violations| {
            tokens.start(request.page_size, &request.page_token, violations)
        })?;
        let page = call.account.list_roles(after, size).await?;
        let (roles, next_page_token) = tokens.page(page, |role| role.id, role);
        Ok(Response::new(ListRolesResponse {
            roles,
            next_page_token,
        }))
    }

    async fn create_role(&self, request: Request<CreateRoleRequest>) -> Answer<CreateRoleResponse> {
        let (call, request) = self.call(request)?;
        let mut ignored = Ignored::default();
        let name = decode::all(|violations| {
            let mut field = violations.at("role");
            let role = field.required(request.role)?;
            ignored.add((role.id != 0).then_some("id"));
            field::non_blank_text(role.name, field.field("name"))
        })?;
        let role = call.account.create_role(name).await?;
        Ok(Response::new(CreateRoleResponse {
            role: Some(self::role(role)),
            ignored_paths: ignored.into_paths("role"),
        }))
    }

    async fn delete_role(&self, request: Request<DeleteRoleRequest>) -> Answer<DeleteRoleResponse> {
        let (call, request) = self.call(request)?;
        let id = decode::all(|violations| {
            let mut field = violations.at("id");
            match request.id {
                0 => field.refuse(Reason::FieldRequired, REQUIRED),
                ..0 => field.refuse(Reason::FieldOutOfRange, "must be greater than 0"),
                _ => {}
            }
            Some(RoleId(request.id))
        })?;
        call.account.delete_role(id).await?;
        Ok(Response::new(DeleteRoleResponse::default()))
    }
}

fn role(role: Role) -> v1::Role {
    v1::Role {
        id: role.id.0,
        name: role.name.into_string(),
    }
}
