//! What every call has in common: its caller, and the conversion of its error.

use tonic::{Request, Response, Status};

use super::status;
use crate::{auth::Caller, domain::Result, store::WriteMode};

/// Runs a call for the caller of its request, and makes a status of its error.
pub async fn respond<M, R>(
    request: Request<M>,
    call: impl AsyncFnOnce(Caller, M) -> Result<R>,
) -> Result<Response<R>, Status> {
    let (_, mut extensions, message) = request.into_parts();
    let caller = extensions
        .remove::<Caller>()
        .ok_or_else(|| status::credentials_missing("the call carries no credentials"))?;
    call(caller, message)
        .await
        .map(Response::new)
        .map_err(status::from_error)
}

/// Whether a write is stored.
pub fn write_mode(validate_only: bool) -> WriteMode {
    if validate_only {
        WriteMode::ValidateOnly
    } else {
        WriteMode::Store
    }
}
