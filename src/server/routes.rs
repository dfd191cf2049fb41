//! The services behind the middleware.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{BoxFuture, Either};
use http::{Request, Response};
use tokio::{sync::SetOnce, time::timeout};
use tonic::codegen::Service;
use tonic::{body::Body, service::Routes};

use super::middleware::is_health_or_reflection;
use crate::grpc::status;

/// How long a call waits for the database to be opened before it answers UNAVAILABLE.
const OPENING_TIMEOUT: Duration = Duration::from_secs(5);

/// Health and reflection, and the services of the contract. Calls of these wait a while for
/// the database to be opened, and then answer UNAVAILABLE.
#[derive(Clone)]
pub struct ServerRoutes {
    health_and_reflection: Routes,
    contract: Arc<SetOnce<Routes>>,
}

impl ServerRoutes {
    pub fn new(health_and_reflection: Routes) -> Self {
        Self {
            health_and_reflection: health_and_reflection.prepare(),
            contract: Arc::default(),
        }
    }

    /// Serves the contract from now on, in every clone. Works once.
    pub fn open(&self, contract: Routes) {
        let _ = self.contract.set(contract.prepare());
    }
}

impl Service<Request<Body>> for ServerRoutes {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<
        <Routes as Service<Request<Body>>>::Future,
        BoxFuture<'static, Result<Response<Body>, Infallible>>,
    >;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Routes are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_health_or_reflection(request.uri().path()) {
            return Either::Left(self.health_and_reflection.call(request));
        }
        if let Some(contract) = self.contract.get() {
            return Either::Left(contract.clone().call(request));
        }
        let contract = Arc::clone(&self.contract);
        Either::Right(Box::pin(async move {
            match timeout(OPENING_TIMEOUT, contract.wait()).await {
                Ok(contract) => contract.clone().call(request).await,
                Err(_) => Ok(status::store_not_open().into_http()),
            }
        }))
    }
}
