//! Who calls, and whether the credentials allow it.

use std::pin::pin;

use futures_util::FutureExt;
use http::HeaderMap;
use tonic::Status;

use super::{
    admission::QueueSlot,
    deadline::{self, Deadline},
};
use crate::{
    auth::{Authenticator, Caller, Rejection, Scope},
    grpc::status,
};

/// Finds the caller of an rpc that needs this scope. Waiting for keys ends at the deadline
/// and gives up the slot.
pub async fn authenticate(
    authenticator: &Authenticator,
    headers: &HeaderMap,
    deadline: Deadline,
    scope: Scope,
    slot: &mut Option<QueueSlot>,
) -> Result<Caller, Status> {
    let mut authentication = pin!(authenticator.authenticate(headers));
    let result = match authentication.as_mut().now_or_never() {
        Some(result) => Some(result),
        None => {
            let waiting = deadline::enforce(deadline.at, authentication);
            QueueSlot::release_while_pending(slot, waiting).await
        }
    };
    match result {
        Some(Ok(caller)) => Ok(caller),
        Some(Err(Rejection::Missing(what))) => Err(status::credentials_missing(&what)),
        Some(Err(Rejection::Invalid(what))) => Err(status::credentials_invalid(&what)),
        None => Err(status::deadline_exceeded(scope, deadline.source)),
    }
}

pub fn authorize(caller: &Caller, scope: Scope) -> Result<(), Status> {
    match caller.may(scope) {
        true => Ok(()),
        false => Err(status::scope_missing(scope, &caller.scopes)),
    }
}
