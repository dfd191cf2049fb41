//! Who calls, and whether the credentials allow it.

use http::request::Parts;
use tonic::Status;

use super::{Shared, protocol};
use crate::{
    auth::{Rejection, Scope},
    call_context::CallContext,
    grpc::status,
};

/// Refuses unknown rpcs, which have no scope, and calls whose credentials do not have the scope of the rpc.
pub async fn authenticate(
    state: &Shared,
    call: &CallContext,
    scope: Option<Scope>,
    head: &Parts,
) -> Result<(), Status> {
    let scope = scope.ok_or_else(|| status::unimplemented(head.uri.path()))?;
    let max_credential_bytes = state.authenticator.max_credential_bytes();
    protocol::check_headers(&head.headers, max_credential_bytes)?;
    let authenticated = state.authenticator.authenticate(&head.headers).await;
    let authenticated = authenticated.map_err(|rejection| match rejection {
        Rejection::Missing(what) => status::credentials_missing(&what),
        Rejection::Invalid(what) => status::credentials_invalid(&what),
    })?;
    let caller = call.caller.get_or_init(|| authenticated);
    match caller.scopes.contains(&scope) {
        true => Ok(()),
        false => Err(status::scope_missing(scope, &caller.scopes)),
    }
}
