//! What every call of the contract passes before and after its service.
//!
//! *Architecture invariant:* credentials, scope and deadline are judged from
//! the headers, before anything of the body is read; a call is begun when all of
//! its message is there and it is its turn, and not after its deadline.

use std::{
    convert::Infallible,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use http::{
    HeaderMap, Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use tokio::time::Instant;
use tonic::{Status, body::Body};
use tower::Service;
use tracing::{Instrument, error, info_span};

use super::{
    admission::{Budget, Place, Turns},
    body::{Held, Reply, Work},
    call::Call,
    deadline,
    intake::{self, Message},
    normalise::normalise,
    peers::Guest,
    shed::Shed,
    watch::Watch,
};
use crate::{
    auth::{Authenticator, Caller, Rejection, Scope},
    call_context::CallContext,
    grpc::{self, status},
};

/// Services of the protocol itself: open to everybody, not counted as calls.
const EXEMPT: [&str; 3] = [
    "/grpc.health.v1.",
    "/grpc.reflection.v1.",
    "/grpc.reflection.v1alpha.",
];

/// Most bytes of a call's headers, but for its credentials, which have a limit of
/// their own.
const MAX_HEADER_BYTES: usize = 16 * 1024;

const GRPC_ENCODING: &str = "grpc-encoding";

/// What is asked of calls, and what is known of those at hand.
#[derive(Clone)]
pub(super) struct Gate(Arc<Rules>);

struct Rules {
    authenticator: Authenticator,
    request_timeout: Duration,
    max_message_bytes: usize,
    budget: Arc<Budget>,
    turns: Turns,
    shed: Shed,
    watch: Watch,
}

/// What calls may take, in bytes and time.
pub(super) struct Allowance {
    /// The longest that a call may take.
    pub request_timeout: Duration,
    /// The largest message.
    pub max_message_bytes: usize,
    /// All messages at hand.
    pub max_inflight_bytes: usize,
}

impl Gate {
    pub fn new(authenticator: Authenticator, allowance: &Allowance, watch: Watch) -> Self {
        let Allowance {
            request_timeout,
            max_message_bytes,
            max_inflight_bytes,
        } = *allowance;
        Self(Arc::new(Rules {
            authenticator,
            request_timeout,
            max_message_bytes,
            budget: Budget::new(max_inflight_bytes),
            turns: Turns::new(max_inflight_bytes),
            shed: Shed::new(),
            watch,
        }))
    }

    /// A service behind the gate.
    pub fn before<S>(&self, inner: S) -> Gated<S> {
        let rules = Arc::clone(&self.0);
        Gated { rules, inner }
    }

    /// What is seen of calls.
    pub fn watch(&self) -> &Watch {
        &self.0.watch
    }

    /// The bytes at hand.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// The calls that are worked on.
    pub fn turns(&self) -> &Turns {
        &self.0.turns
    }
}

/// A service behind the gate.
#[derive(Clone)]
pub(super) struct Gated<S> {
    rules: Arc<Rules>,
    inner: S,
}

/// What a call is answered.
pub(super) enum Answer {
    /// The answer is there.
    There(Response<Body>),
    /// It takes some work.
    Work(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

impl<S> Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    /// Answers a call, of this peer if that is known. Nothing is done for it before the
    /// work is asked for.
    pub fn answer(&self, request: Request<Body>, guest: Option<&Guest>) -> Answer {
        let path = request.uri().path();
        if EXEMPT.iter().any(|prefix| path.starts_with(prefix)) {
            let inner = self.inner.clone();
            return Answer::Work(Box::pin(ask(inner, request)));
        }
        if let Some(refusal) = not_grpc(&request) {
            return Answer::There(refusal);
        }
        let place = self.rules.turns.place().ok();
        if place.is_none() && self.rules.watch.shed(path) {
            return Answer::There(self.rules.shed.refuse());
        }
        let begun = Instant::now();
        let Self { rules, inner } = self.clone();
        let guest = guest.cloned();
        Answer::Work(Box::pin(async move {
            let at_hand = guest.map(|guest| guest.called(begun + rules.request_timeout));
            let (path, headers) = (request.uri().path(), request.headers());
            let call = Call::begin(&rules.watch, path, headers, begun, at_hand);
            pass(rules, inner, call, request, place).await
        }))
    }
}

/// Has a service answer when it is ready to.
async fn ask<S>(mut service: S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    let Ok(response) = service.call(request).await;
    response
}

async fn pass<S>(
    rules: Arc<Rules>,
    inner: S,
    mut call: Call,
    mut request: Request<Body>,
    mut place: Option<Place>,
) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let deadline = match rules.admit(&mut call, &mut request, &mut place).await {
        Ok(deadline) => deadline,
        Err(status) => return refuse(call, status),
    };
    let span = info_span!("call", request_id = %call.id());
    let work = rules.work(inner, &call, deadline, request, place);
    let work = AssertUnwindSafe(work).catch_unwind().instrument(span);
    match deadline::until(deadline, work).await {
        Some(Ok(Ok((response, held)))) => rules.reply(call, response, held),
        Some(Ok(Err(status))) => {
            let status = normalise(status, &call, rules.max_message_bytes);
            refuse(call, status)
        }
        Some(Err(_)) => {
            let id = call.id().to_string();
            error!(request_id = id, rpc = call.rpc(), "a call panicked");
            refuse(call, status::internal(&id))
        }
        None => refuse(call, status::deadline_exceeded()),
    }
}

impl Rules {
    /// Judges a call by its headers, puts its caller into the extensions and
    /// says until when it may take.
    async fn admit(
        &self,
        call: &mut Call,
        request: &mut Request<Body>,
        place: &mut Option<Place>,
    ) -> Result<Instant, Status> {
        let path = request.uri().path();
        let Some(scope) = grpc::required_scope(path) else {
            return Err(status::unimplemented(path));
        };
        if header_bytes(request.headers()) > MAX_HEADER_BYTES {
            return Err(status::metadata_too_large(MAX_HEADER_BYTES));
        }
        let requested = deadline::requested(request.headers());
        let limit = requested.as_ref().ok().copied().flatten();
        let limit = limit.map_or(self.request_timeout, |requested| {
            requested.min(self.request_timeout)
        });
        let deadline = call.begun() + limit;
        let caller = self.caller(request.headers(), deadline, place).await?;
        call.identify(caller.clone());
        if !caller.may(scope) {
            return Err(status::scope_missing(scope));
        }
        requested.map_err(|deadline::Malformed| {
            status::undecodable(
                "grpc-timeout must be 1 to 8 digits and one of the units H M S m u n",
            )
        })?;
        request.extensions_mut().insert(caller);
        Ok(deadline)
    }

    /// Receives the message, waits for the turn and has the service answer.
    async fn work<S>(
        &self,
        inner: S,
        call: &Call,
        deadline: Instant,
        request: Request<Body>,
        mut place: Option<Place>,
    ) -> Result<(Response<Body>, Held), Status>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let (head, body) = request.into_parts();
        if let Some(encoding) = compression(&head.headers) {
            return Err(status::undecodable(encoding));
        }
        let work = match grpc::required_scope(head.uri.path()) {
            Some(Scope::Read) => Work::Read,
            Some(Scope::Write | Scope::Translate | Scope::Admin) | None => Work::Write,
        };
        let received = call.received();
        let limit = self.max_message_bytes;
        let message = intake::receive(body, &received, &self.budget, limit);
        let message = placed(&mut place, message).await?;
        let Message { body, bytes, share } = message;
        let turn = self.turns.take(place, bytes, deadline).await;
        let turn = Arc::new(turn.map_err(|_| status::overloaded())?);
        let holds = (Arc::clone(&share), Arc::clone(&turn));
        let spans = call.child_spans(self.watch.tracer());
        let (context, _guard) = CallContext::new(deadline, holds, spans);
        let request = Request::from_parts(head, body);
        let response = context.scope(ask(inner, request)).await;
        let held = Held {
            deadline,
            share,
            turn: Some(turn),
            work,
        };
        Ok((response, held))
    }

    async fn caller(
        &self,
        headers: &HeaderMap,
        deadline: Instant,
        place: &mut Option<Place>,
    ) -> Result<Caller, Status> {
        let mut authenticating = pin!(self.authenticator.authenticate(headers));
        let judged = match authenticating.as_mut().now_or_never() {
            Some(judged) => Some(judged),
            // It waits for keys, no longer than the call may take.
            None => placed(place, deadline::until(deadline, authenticating)).await,
        };
        judged
            .ok_or_else(status::deadline_exceeded)?
            .map_err(|rejection| match rejection {
                Rejection::Missing(what) => status::credentials_missing(what),
                Rejection::Invalid(what) => status::credentials_invalid(what),
            })
    }

    /// Hands an answer on. An error stands in the headers; of anything else the
    /// end is not known before the body's.
    fn reply(&self, call: Call, response: Response<Body>, held: Held) -> Response<Body> {
        match Status::from_header_map(response.headers()) {
            Some(status) => {
                let status = normalise(status, &call, self.max_message_bytes);
                refuse(call, status)
            }
            None => response.map(|body| Reply::wrap(body, call, held, self.max_message_bytes)),
        }
    }
}

/// Does what comes before a call's turn. Unless that is done at once, the place in the
/// queue is given up: those who have all that it takes need it.
async fn placed<F: Future>(place: &mut Option<Place>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            *place = None;
        }
        polled
    })
    .await
}

/// What is answered to a request that is not one of gRPC: a browser's, say.
/// Nothing is done for it.
fn not_grpc(request: &Request<Body>) -> Option<Response<Body>> {
    let plain = |code| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = code;
        response
    };
    if request.method() != Method::POST {
        return Some(plain(StatusCode::METHOD_NOT_ALLOWED));
    }
    let spoken = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')));
    (!spoken).then(|| plain(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// What is wrong with a message that comes compressed: a few bytes could become
/// any number.
fn compression(headers: &HeaderMap) -> Option<&'static str> {
    let encoding = headers.get(GRPC_ENCODING)?;
    (encoding != "identity")
        .then_some("the request's compression is not supported: send it uncompressed")
}

/// Bytes of a call's headers without credentials, as HTTP/2 counts them.
fn header_bytes(headers: &HeaderMap) -> usize {
    const EACH: usize = 32;
    let sizes = headers
        .iter()
        .filter(|(name, _)| *name != AUTHORIZATION)
        .map(|(name, value)| name.as_str().len() + value.len() + EACH);
    sizes.sum()
}

fn refuse(mut call: Call, status: Status) -> Response<Body> {
    // Where the request broke off, its caller has gone: the call counts as cancelled.
    if !call.is_broken() {
        call.end(&status);
    }
    status.into_http()
}

#[cfg(test)]
mod tests;
