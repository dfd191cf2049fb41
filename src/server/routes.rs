//! The services behind the middleware.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use futures_util::future::Either;
use http::{Request, Response};
use tonic::{body::Body, service::Routes};
use tower::Service;

use super::middleware::is_health_or_reflection;
use crate::grpc::status;

/// Health and reflection, and the services of the contract. These answer UNAVAILABLE until
/// the database is open.
#[derive(Clone)]
pub struct ServerRoutes {
    health_and_reflection: Routes,
    contract: Arc<OnceLock<Routes>>,
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
        Ready<Result<Response<Body>, Infallible>>,
    >;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Routes are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_health_or_reflection(request.uri().path()) {
            return Either::Left(self.health_and_reflection.call(request));
        }
        match self.contract.get() {
            Some(contract) => Either::Left(contract.clone().call(request)),
            None => Either::Right(ready(Ok(status::store_not_open().into_http()))),
        }
    }
}
