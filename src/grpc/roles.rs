//! RoleService: decode, one store call, encode.

use tonic::{Request, Response, Status};

use super::{
    call::answer,
    decode::{self, REQUIRED, accepted, line, required},
    encode,
    ignored::Ignored,
    page,
    page_token::Listing,
};
use crate::{
    auth::Caller,
    domain::{
        Result,
        ids::RoleId,
        text::Name,
        violation::{Path, Reason, Violations},
    },
    proto::v1::{
        self, CreateRoleRequest, CreateRoleResponse, DeleteRoleRequest, DeleteRoleResponse,
        ListRolesRequest, ListRolesResponse, role_service_server::RoleService,
    },
    store::Store,
};

/// The roles of a store.
#[derive(Clone)]
pub struct Roles {
    /// The store.
    pub store: Store,
}

#[tonic::async_trait]
impl RoleService for Roles {
    async fn list_roles(
        &self,
        request: Request<ListRolesRequest>,
    ) -> Result<Response<ListRolesResponse>, Status> {
        answer(request, |caller, request| self.list(caller, request)).await
    }

    async fn create_role(
        &self,
        request: Request<CreateRoleRequest>,
    ) -> Result<Response<CreateRoleResponse>, Status> {
        answer(request, |caller, request| self.create(caller, request)).await
    }

    async fn delete_role(
        &self,
        request: Request<DeleteRoleRequest>,
    ) -> Result<Response<DeleteRoleResponse>, Status> {
        answer(request, |caller, request| self.delete(caller, request)).await
    }
}

impl Roles {
    async fn list(&self, caller: Caller, request: ListRolesRequest) -> Result<ListRolesResponse> {
        let ListRolesRequest {
            page_size,
            page_token,
        } = request;
        let listing = Listing {
            key: self.store.page_key(),
            account: &caller.account,
            rpc: "ListRoles",
            filters: Vec::new(),
        };
        let mut faults = Violations::new();
        let size = decode::page_size(page_size, &mut faults);
        let after = page::after(&listing, &page_token, &mut faults);
        let size = accepted(size, faults)?;
        let account = self.store.account(&caller.account);
        let page = account.list_roles(after, size).await?;
        let (roles, next_page_token) = page::cut(page, &listing, |role| role.id, encode::role);
        Ok(ListRolesResponse {
            roles,
            next_page_token,
        })
    }

    async fn create(
        &self,
        caller: Caller,
        request: CreateRoleRequest,
    ) -> Result<CreateRoleResponse> {
        let CreateRoleRequest { role } = request;
        let mut faults = Violations::new();
        let mut ignored = Ignored::of("role");
        let path = Path::root("role");
        let name: Option<Name> = required(role, &path, &mut faults).and_then(|role| {
            let v1::Role { id, name } = role;
            ignored.note([("id", id != 0)]);
            line(name, &path.field("name"), &mut faults)
        });
        let name = accepted(name, faults)?;
        let role = self
            .store
            .account(&caller.account)
            .create_role(name)
            .await?;
        Ok(CreateRoleResponse {
            role: Some(encode::role(role)),
            ignored_paths: ignored.into_paths(),
        })
    }

    async fn delete(
        &self,
        caller: Caller,
        request: DeleteRoleRequest,
    ) -> Result<DeleteRoleResponse> {
        let DeleteRoleRequest { id } = request;
        let id = named(id)?;
        self.store.account(&caller.account).delete_role(id).await?;
        Ok(DeleteRoleResponse {
            ignored_paths: Vec::new(),
        })
    }
}

/// The role that a request names.
fn named(id: i64) -> Result<RoleId> {
    let path = Path::root("id");
    let mut faults = Violations::new();
    match id {
        0 => faults.add(&path, Reason::FieldRequired, REQUIRED),
        id if id < 0 => faults.add(&path, Reason::FieldOutOfRange, "must be greater than 0"),
        _ => {}
    }
    accepted(Some(RoleId(id)), faults)
}
