//! The middleware that every call of the contract passes; [`CallService::call`]
//! lists it in order.
//!
//! *Invariant:* credentials, scope and deadline are checked when the headers arrive,
//! before a byte of the body is read. A service is called when the whole message has arrived
//! and a work permit is free, and never after the deadline.

mod admission;
mod call_metrics;
mod call_record;
mod credentials;
mod deadline;
mod health_and_reflection;
mod load_shedding;
mod normalise;
mod protocol;
mod request_body;
mod response_body;

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use http::{Request, Response, request::Parts};
use prometheus_client::registry::Registry;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::block_in_place,
    time::{Instant, timeout_at},
};
use tonic::codegen::Service;
use tonic::{Status, body::Body};
use tracing::{Instrument, error, info_span};

pub use self::health_and_reflection::{MAX_PROBE_BYTES, is_health_or_reflection};
use self::{
    admission::{MemoryBudget, QueueSlot, RejectedCalls, WorkKind, WorkQueue, processors},
    call_metrics::CallMetrics,
    call_record::CallRecord,
    deadline::Deadline,
    health_and_reflection::CallBounds,
    load_shedding::LoadShedder,
    normalise::normalise,
    request_body::ReceivedMessage,
    response_body::{ResponseBody, ResponseResources},
};
use super::connections::ConnectionState;
use crate::{
    auth::{Authenticator, KeysRead, Scope},
    call_context::{CallContext, CallMemory, CallWait, CallWaitSlot},
    domain::ids::AccountId,
    grpc::status,
    proto::decoded_size::DecodedSizes,
    telemetry::Tracer,
};

/// The decoded elements of a request may take this many times the size of the largest message.
/// A task or step that can be stored takes at most twice its stored size when it is decoded.
const MAX_DECODED_RATIO: usize = 3;
/// Up to this size, a message is decoded in about a millisecond, which other calls of the same
/// thread can wait.
const MAX_QUICKLY_DECODED_BYTES: usize = 1024 * 1024;
/// The largest request of a call that can wait, in bytes. It is kept to be asked again.
const MAX_WAITING_BYTES: usize = 4 * 1024;
/// How long before the caller's deadline a call that waits is answered.
const ANSWER_TIME: Duration = Duration::from_millis(250);
/// What the paths of calls that analyse guides begin with.
const ANALYSIS_PATH: &str = "/expertise.v1.AnalysisService/";

/// The state that the middleware of all calls shares.
pub struct Middleware {
    authenticator: Authenticator,
    limits: CallLimits,
    memory: Arc<MemoryBudget>,
    sizes: DecodedSizes,
    queue: WorkQueue,
    rejected: RejectedCalls,
    /// How many large messages may be decoded at once: one for each processor.
    decoders: Semaphore,
    shedder: LoadShedder,
    metrics: CallMetrics,
    tracer: Option<Tracer>,
}

/// The limits of calls, in bytes and time.
#[derive(Clone, Copy)]
pub struct CallLimits {
    /// The longest that a call may take.
    pub request_timeout: Duration,
    /// The largest message.
    pub max_message_bytes: usize,
    /// All messages that are held at once.
    pub max_inflight_bytes: usize,
}

/// A call whose message has arrived, as the service is asked. One that waits is asked again.
#[derive(Clone)]
struct Asked {
    head: Parts,
    account: AccountId,
    message: ReceivedMessage,
    /// The size of the largest copy of the message.
    bytes: usize,
    deadline: Deadline,
    scope: Scope,
    /// `None` if it must be answered now.
    wait: Option<CallWaitSlot>,
}

/// How busy the server is at a moment.
pub struct CurrentLoad {
    /// Bytes of messages that are held.
    pub inflight_bytes: usize,
    /// Calls that have a work permit.
    pub calls_in_work: usize,
    /// Calls that wait for one.
    pub calls_waiting: usize,
}

impl Middleware {
    pub fn new(authenticator: Authenticator, limits: CallLimits, tracer: Option<Tracer>) -> Self {
        let rejected = RejectedCalls::default();
        Self {
            authenticator,
            limits,
            memory: MemoryBudget::new(limits.max_inflight_bytes, &rejected),
            sizes: DecodedSizes::of_contract(),
            queue: WorkQueue::new(limits.max_inflight_bytes, &rejected),
            rejected,
            decoders: Semaphore::new(processors()),
            shedder: LoadShedder::new(),
            metrics: CallMetrics::new(),
            tracer,
        }
    }

    /// Registers the metrics that are updated by calls.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        self.memory.register(registry);
        registry.register(
            "rejected_calls",
            "Calls that were refused with OVERLOADED, by the limit that was reached",
            self.rejected.clone(),
        );
    }

    /// Registers the metrics of calls that have the same names in every gRPC server.
    pub fn register_grpc(&self, registry: &mut Registry) {
        self.metrics.register_grpc(registry);
    }

    /// When the keys that verify tokens were read, if tokens are verified.
    pub fn keys_read(&self) -> Option<KeysRead> {
        self.authenticator.keys_read()
    }

    pub fn current_load(&self) -> CurrentLoad {
        CurrentLoad {
            inflight_bytes: self.memory.used(),
            calls_in_work: self.queue.working(),
            calls_waiting: self.queue.waiting(),
        }
    }
}

/// A service behind the middleware.
#[derive(Clone)]
pub struct CallService<S> {
    middleware: Arc<Middleware>,
    inner: S,
}

/// The response to a call.
pub enum CallResponse {
    /// It is ready, and took next to no work.
    Ready(Response<Body>),
    /// It takes work, which begins when the future is first polled.
    Pending(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

impl<S> CallService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    pub fn new(middleware: Arc<Middleware>, inner: S) -> Self {
        Self { middleware, inner }
    }

    /// Passes a call through the middleware, in this order:
    ///
    /// 1. other protocols than gRPC are refused
    /// 2. health and reflection go to their service, within bounds of headers, messages and time
    /// 3. load is shed while the queue is full
    /// 4. the call is recorded: a log line, metrics and a span, however it ends
    /// 5. an unknown rpc and too large headers are refused
    /// 6. the caller is authenticated and authorised
    /// 7. the deadline is enforced, and panics are caught, from here on
    /// 8. the message is received, within the memory budget
    /// 9. the memory for its elements is bounded
    /// 10. a work permit is waited for
    /// 11. the service runs in the call's context
    /// 12. a call with nothing to answer waits, if it wants to, and is asked again from 10 on
    /// 13. errors get details of the contract, in headers and in trailers
    /// 14. the response is counted, and holds memory until the peer has taken it
    pub fn call(
        &self,
        request: Request<Body>,
        connection: Option<&Arc<ConnectionState>>,
    ) -> CallResponse {
        let Self { middleware, inner } = self;
        let path = request.uri().path();
        if let Some(response) = protocol::refuse_other_protocols(&request) {
            return CallResponse::Ready(response);
        }
        if is_health_or_reflection(path) {
            return match CallBounds::new(middleware, &request) {
                Ok(bounds) => {
                    let call = health_and_reflection::call(inner.clone(), request, bounds);
                    CallResponse::Pending(Box::pin(call))
                }
                Err(status) => CallResponse::Ready(status.into_http()),
            };
        }
        let slot = middleware.queue.slot().ok();
        if slot.is_none()
            && let Some(response) = middleware.shed(path)
        {
            return CallResponse::Ready(response);
        }
        let started = Instant::now();
        let (middleware, inner) = (Arc::clone(middleware), inner.clone());
        let connection = connection.cloned();
        CallResponse::Pending(Box::pin(async move {
            let mut call = middleware.record(&request, started, connection);
            let result = middleware.handle(&mut call, inner, request, slot).await;
            middleware.respond(call, result)
        }))
    }
}

impl Middleware {
    /// Refuses a call for which the queue has no slot. An unknown rpc is refused later, as
    /// such.
    fn shed(&self, path: &str) -> Option<Response<Body>> {
        let is_known = self.metrics.count_shed(path);
        is_known.then(|| {
            self.queue.count_refused_when_full();
            self.shedder.refuse()
        })
    }

    fn record(
        &self,
        request: &Request<Body>,
        started: Instant,
        connection: Option<Arc<ConnectionState>>,
    ) -> CallRecord {
        let pending = connection.map(|it| it.begin_call(started + self.limits.request_timeout));
        let metrics = self.metrics.begin(request.uri().path());
        CallRecord::new(request, started, pending, metrics, self.tracer.as_ref())
    }

    /// Stages 5 to 12.
    async fn handle<S>(
        &self,
        call: &mut CallRecord,
        inner: S,
        mut request: Request<Body>,
        mut slot: Option<QueueSlot>,
    ) -> Result<(Response<Body>, ResponseResources), Status>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
    {
        let headers = request.headers();
        let scope = protocol::required_scope(request.uri().path())?;
        protocol::limit_headers(headers, self.authenticator.max_credential_bytes())?;
        // A malformed timeout is refused only once the credentials are accepted.
        let requested_timeout = deadline::requested(headers);
        let limit = self.limits.request_timeout;
        let timeout = *requested_timeout.as_ref().unwrap_or(&None);
        let of_caller = timeout.map(|timeout| call.started() + timeout);
        let deadline = Deadline::new(call.started(), of_caller, limit);
        let caller =
            credentials::authenticate(&self.authenticator, headers, deadline, scope, &mut slot)
                .await?;
        call.set_caller(caller.clone());
        let account = caller.account.clone();
        credentials::authorize(&caller, scope)?;
        requested_timeout?;
        protocol::refuse_compression(headers)?;
        protocol::drop_read_headers(request.headers_mut());
        request.extensions_mut().insert(caller);

        let (head, body) = request.into_parts();
        let receiving = self.receive(call, &account, head.uri.path(), body, &mut slot);
        let (message, bytes) = in_time(call, deadline, scope, receiving).await?;
        let mut next = Some(Asked {
            head,
            account,
            message,
            bytes,
            deadline,
            scope,
            wait: (bytes <= MAX_WAITING_BYTES).then(CallWaitSlot::default),
        });
        while let Some(asked) = next.take() {
            let (deadline, wait) = (asked.deadline, asked.wait.clone());
            // Only a call that may wait is kept, to be asked again.
            next = wait.as_ref().map(|_| asked.clone());
            let serving = self.serve(call, inner.clone(), asked, slot.take());
            let response = in_time(call, deadline, scope, serving).await?;
            let wait = wait.and_then(|slot| slot.take());
            let (Some(again), Some(wait)) = (&mut next, wait) else {
                return Ok(response);
            };
            // Nothing is held while it waits: no permit, no connection, no lock.
            drop(response);
            let may_wait = wait_for_answer(call, wait, of_caller, limit).await;
            again.deadline = Deadline::new(Instant::now(), of_caller, limit);
            again.wait = may_wait.then(CallWaitSlot::default);
        }
        Err(status::internal(&call.id().to_string()))
    }

    /// Stages 8 and 9: the message, and what it counts for.
    async fn receive(
        &self,
        call: &CallRecord,
        account: &AccountId,
        rpc: &str,
        body: Body,
        slot: &mut Option<QueueSlot>,
    ) -> Result<(ReceivedMessage, usize), Status> {
        let limit = self.limits.max_message_bytes;
        let received = call.received();
        let receiving = request_body::receive(body, received, &self.memory, account, limit);
        let message = QueueSlot::release_while_pending(slot, receiving).await?;
        let bytes = self.work_bytes(rpc, &message)?;
        Ok((message, bytes))
    }

    /// Stages 10 and 11.
    async fn serve<S>(
        &self,
        call: &CallRecord,
        inner: S,
        asked: Asked,
        slot: Option<QueueSlot>,
    ) -> Result<(Response<Body>, ResponseResources), Status>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let Asked {
            head,
            account,
            message: ReceivedMessage { body, memory, .. },
            bytes,
            deadline,
            scope,
            wait,
        } = asked;
        let kind = match head.uri.path().starts_with(ANALYSIS_PATH) {
            true => WorkKind::Analysis,
            false => WorkKind::Other,
        };
        let permit = self.queue.acquire(slot, &account, kind, bytes, deadline.at);
        let permit = permit.await;
        let permit = Arc::new(permit.map_err(|_| status::overloaded())?);
        let held = (Arc::clone(&memory), Arc::clone(&permit));
        let call_memory: Arc<dyn CallMemory> = Arc::clone(&memory) as _;
        let spans = call.child_spans(self.tracer.as_ref());
        let (context, _cancel_on_drop) =
            CallContext::new(call.id(), deadline.at, call_memory, held, spans);
        let request = Request::from_parts(head, Body::new(body));
        let service = context.with_wait(wait).scope(call_service(inner, request));
        let response = match bytes {
            ..=MAX_QUICKLY_DECODED_BYTES => service.await,
            _ => decode_in_turn(&self.decoders, service).await,
        };
        let resources = ResponseResources {
            deadline,
            memory,
            permit: Some(permit),
            scope,
        };
        Ok((response, resources))
    }

    /// The size of the largest copy of a message: as it arrived, or its elements when they
    /// are decoded.
    fn work_bytes(&self, rpc: &str, message: &ReceivedMessage) -> Result<usize, Status> {
        let limit = MAX_DECODED_RATIO * self.limits.max_message_bytes;
        let decoded = self.sizes.of_request(rpc, message.body.message(), limit);
        if decoded > limit {
            return Err(status::elements_too_large(limit));
        }
        Ok(decoded.max(message.bytes))
    }

    /// Stages 13 and 14. An error is in the headers. Any other response has a body, and its
    /// trailers end the call.
    fn respond(
        &self,
        mut call: CallRecord,
        result: Result<(Response<Body>, ResponseResources), Status>,
    ) -> Response<Body> {
        let max_message_bytes = self.limits.max_message_bytes;
        let status = match result {
            Err(status) => status,
            Ok((response, resources)) => match Status::from_header_map(response.headers()) {
                Some(status) => status,
                None => {
                    return response
                        .map(|body| ResponseBody::wrap(body, call, resources, max_message_bytes));
                }
            },
        };
        let status = normalise(status, &call, max_message_bytes);
        // A request breaks off when the caller disconnects. Its call ends as cancelled, when
        // the record is dropped.
        if !call.is_broken() {
            call.end(&status);
        }
        status.into_http()
    }
}

/// Runs a call with a large message. Its first poll decodes the message, which takes
/// milliseconds: the other tasks of its worker thread go to another thread meanwhile. At most
/// so many calls as there are `turns` do this at once.
async fn decode_in_turn<F: Future>(turns: &Semaphore, call: F) -> F::Output {
    let mut call = pin!(call);
    // The semaphore is never closed.
    let mut turn = turns.acquire().await.ok();
    let has_threads = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    poll_fn(|context| match turn.take() {
        Some(_turn) if has_threads => block_in_place(|| call.as_mut().poll(context)),
        _ => call.as_mut().poll(context),
    })
    .await
}

/// Does a part of a call's work until its deadline. Panics are caught.
async fn in_time<T>(
    call: &CallRecord,
    deadline: Deadline,
    scope: Scope,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let span = info_span!("call", request_id = %call.id());
    let work = catch_panics(call, work.instrument(span));
    let result = deadline::enforce(deadline.at, work).await;
    result.unwrap_or_else(|| Err(status::deadline_exceeded(scope, deadline.source)))
}

/// Waits until there may be something to answer. Returns whether the call may wait again.
async fn wait_for_answer(
    call: &mut CallRecord,
    wait: CallWait,
    of_caller: Option<Instant>,
    limit: Duration,
) -> bool {
    let CallWait { ready, at_most } = wait;
    let began = Instant::now();
    let longest = call.started() + at_most;
    let until = of_caller.map_or(longest, |at| longest.min(at - ANSWER_TIME.min(at - began)));
    if let Some(pending) = call.pending() {
        pending.postpone(until + limit);
    }
    let is_over = timeout_at(until, ready).await.is_err();
    call.count_wait(began.elapsed());
    !is_over
}

/// Calls a service once it is ready.
async fn call_service<S>(mut service: S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    let Ok(response) = service.call(request).await;
    response
}

/// Turns a panic into INTERNAL with the id of the call.
async fn catch_panics<T>(
    call: &CallRecord,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let result = AssertUnwindSafe(work).catch_unwind().await;
    result.unwrap_or_else(|_| {
        let id = call.id().to_string();
        error!(request_id = id, rpc = call.rpc(), "a call panicked");
        Err(status::internal(&id))
    })
}

#[cfg(test)]
mod tests;
