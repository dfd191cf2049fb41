//! The services of the contract, which are there once the database is open.

use std::{convert::Infallible, time::Duration};

use http::{Request, Response};
use tokio::{sync::SetOnce, time::timeout};
use tonic::{Status, body::Body, codegen::Service, service::Routes};

use super::layers::LayerState;
use crate::grpc::status;

/// How long a call waits for the database to be opened before it answers UNAVAILABLE.
const OPENING_TIMEOUT: Duration = Duration::from_secs(5);

/// Set once.
pub type ContractRoutes = SetOnce<Routes>;

/// Waits until the database is open. A call that waits here is not in work.
pub async fn wait_until_open(state: &LayerState) -> Result<(), Status> {
    let opened = timeout(OPENING_TIMEOUT, state.contract.wait()).await;
    opened.map(drop).map_err(|_| status::store_not_open())
}

/// Calls a service of the contract.
pub async fn contract(
    state: &'static LayerState,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    // It is set: the call has been admitted.
    let mut routes = state.contract.wait().await.clone();
    routes.call(request).await
}
