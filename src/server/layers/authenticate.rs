//! Who calls, and whether the credentials allow it.

use http::Request;
use tonic::body::Body;

use super::{Next, Outcome, Shared, current_call, protocol, run};
use crate::{
    auth::Rejection,
    grpc::{self, status},
};

/// Refuses unknown rpcs, and calls whose credentials do not have the scope of the rpc.
pub async fn authenticate(
    state: &'static Shared,
    request: Request<Body>,
    next: impl Next,
) -> Outcome {
    let path = request.uri().path();
    let scope = grpc::required_scope(path).ok_or_else(|| status::unimplemented(path))?;
    let max_credential_bytes = state.authenticator.max_credential_bytes();
    protocol::check_headers(request.headers(), max_credential_bytes)?;
    let authenticated = state.authenticator.authenticate(request.headers()).await;
    let authenticated = authenticated.map_err(|rejection| match rejection {
        Rejection::Missing(what) => status::credentials_missing(&what),
        Rejection::Invalid(what) => status::credentials_invalid(&what),
    })?;
    let call = current_call();
    let caller = call.caller.get_or_init(|| authenticated);
    if !caller.scopes.contains(&scope) {
        return Err(status::scope_missing(scope, &caller.scopes));
    }
    run(next, request).await
}
