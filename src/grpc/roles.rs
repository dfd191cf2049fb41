//! RoleService: decode, one store call, encode.

use tonic::{Request, Response, Status};

use super::{
    Services,
    call::respond,
    decode::{self, Field, REQUIRED, field},
    encode, page,
};
use crate::{
    domain::{
        Result,
        ids::RoleId,
        violation::{Reason, Violations},
    },
    messages::ignored::Ignored,
    proto::v1::{
        self, CreateRoleRequest, CreateRoleResponse, DeleteRoleRequest, DeleteRoleResponse,
        ListRolesRequest, ListRolesResponse, role_service_server::RoleService,
    },
};

#[tonic::async_trait]
impl RoleService for Services {
    async fn list_roles(
        &self,
        request: Request<ListRolesRequest>,
    ) -> Result<Response<ListRolesResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListRoles", &request);
            let ListRolesRequest {
                page_size,
                page_token,
            } = request;
            let (after, size) =
                decode::all(|violations| page::start(&tokens, page_size, &page_token, violations))?;
            let account = self.account(&caller);
            let page = account.list_roles(after, size).await?;
            let (roles, next_page_token) =
                page::encode(page, &tokens, |role| role.id, encode::role);
            Ok(ListRolesResponse {
                roles,
                next_page_token,
            })
        })
        .await
    }

    async fn create_role(
        &self,
        request: Request<CreateRoleRequest>,
    ) -> Result<Response<CreateRoleResponse>, Status> {
        respond(request, async |caller, request| {
            let CreateRoleRequest { role } = request;
            let mut ignored = Ignored::default();
            let name = decode::all(|violations| {
                let mut field = Field::root("role", violations);
                let v1::Role { id, name } = field.required(role)?;
                ignored.add((id != 0).then_some("id"));
                field::non_blank_text(name, field.field("name"))
            })?;
            let role = self.account(&caller).create_role(name).await?;
            Ok(CreateRoleResponse {
                role: Some(encode::role(role)),
                ignored_paths: ignored.into_paths("role"),
            })
        })
        .await
    }

    async fn delete_role(
        &self,
        request: Request<DeleteRoleRequest>,
    ) -> Result<Response<DeleteRoleResponse>, Status> {
        respond(request, async |caller, request| {
            let DeleteRoleRequest { id } = request;
            let id = role_id(id)?;
            self.account(&caller).delete_role(id).await?;
            Ok(DeleteRoleResponse {
                ignored_paths: Vec::new(),
            })
        })
        .await
    }
}

/// The `id` of a request.
fn role_id(id: i64) -> Result<RoleId, Violations> {
    decode::all(|violations| {
        let mut field = Field::root("id", violations);
        match id {
            0 => field.refuse(Reason::FieldRequired, REQUIRED),
            id if id < 0 => field.refuse(Reason::FieldOutOfRange, "must be greater than 0"),
            _ => {}
        }
        Some(RoleId(id))
    })
}
