//! HTTP/2 on the connections: what a peer may do on one, how calls start, and how
//! connections end.
//!
//! *Invariant:* a call that is refused at once costs no task. Its response is given on
//! the task of the connection; calls that take work have tasks of their own, so that
//! none waits for another.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io, mem,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use http::{Request, Response};
use hyper::{body::Incoming, rt::Executor, server::conn::http2::Builder, service::Service};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf},
    sync::watch,
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};
use tonic::body::Body;
use tracing::debug;

use super::{
    KEEPALIVE_INTERVAL,
    connections::{ConnectionState, TrackedStream},
    handshake_log::{self, HandshakeLog},
    middleware::{CallResponse, CallService},
    routes::ServerRoutes,
    tls::ServerTls,
};

/// Calls at once on a connection; the message of each is held in memory.
const MAX_CONCURRENT_STREAMS: u32 = 256;
/// Streams that a peer may open and reset before they are seen; with more, its connection is
/// closed. Callers with short deadlines may give up all their streams at once, so it is more
/// than [`MAX_CONCURRENT_STREAMS`].
const MAX_PENDING_RESETS: usize = 300;
/// Streams that may be reset for a peer's errors; with more, its connection is closed.
const MAX_ERROR_RESETS: usize = 1024;
/// The largest headers of a request. Far smaller ones are refused with a proper error
/// by the middleware; beyond this the connection is at fault.
const MAX_HEADER_BYTES: u32 = 256 * 1024;
/// What a peer may send ahead on a stream and on a connection: messages reach 64 MB,
/// and each window costs a round trip.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// How long a peer may take to answer a PING.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a peer may take for the TLS handshake.
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is not read after calls were refused on it.
const REFUSAL_PAUSE: Duration = Duration::from_millis(20);

/// Serves calls on connections, over TLS if there is one, until `drain` is
/// ready. From then on no connection is accepted, and this ends when the open ones have
/// finished their calls. Dropping the future cuts them.
pub async fn serve(
    service: CallService<ServerRoutes>,
    tls: Option<ServerTls>,
    incoming: impl Stream<Item = io::Result<TrackedStream>>,
    drain: impl Future<Output = ()>,
) {
    let (drain_connections, draining) = watch::channel(());
    let tls = tls.map(|tls| (tls, Arc::new(HandshakeLog::default())));
    let mut connections = JoinSet::new();
    {
        // Dropped at the end of the block, so that the port is closed first.
        let mut incoming = pin!(incoming);
        let mut drain = pin!(drain);
        loop {
            let accepted = tokio::select! {
                () = &mut drain => break,
                Some(_) = connections.join_next() => continue,
                accepted = incoming.next() => accepted,
            };
            match accepted {
                Some(Ok(stream)) => {
                    let (service, tls) = (service.clone(), tls.clone());
                    connections.spawn(serve_stream(stream, service, tls, draining.clone()));
                }
                // Logged where it was accepted.
                Some(Err(_)) => {}
                None => break,
            }
        }
    }
    drop(drain_connections);
    while connections.join_next().await.is_some() {}
}

async fn serve_stream(
    stream: TrackedStream,
    service: CallService<ServerRoutes>,
    tls: Option<(ServerTls, Arc<HandshakeLog>)>,
    draining: watch::Receiver<()>,
) {
    let service = ConnectionService {
        service,
        connection: stream.state(),
    };
    let Some((tls, log)) = tls else {
        return serve_connection(stream, service, draining).await;
    };
    let handshake = tls.acceptor().accept(stream);
    let cause = match timeout(TLS_HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => return serve_connection(stream, service, draining).await,
        Ok(Err(error)) => handshake_log::cause(&error),
        Err(_) => "the client did not complete it in time",
    };
    // Probes of the port send nothing.
    if service.connection.has_received() {
        log.record_failure(service.connection.peer(), cause);
    } else {
        debug!(cause, "a connection ended before a TLS handshake");
    }
}

/// Serves a connection to its end. Its events, in order: hyper reads requests, and gives the
/// future of each response to [`NewCalls`]. [`NewCalls::start`] polls each of them once: a refusal
/// is ready at once, and the other futures are spawned. After refusals, the next poll of the
/// connection sends all of them, and then it is not read for [`REFUSAL_PAUSE`], as refusing many
/// calls together costs less than one by one.
async fn serve_connection<S>(
    stream: S,
    service: ConnectionService,
    mut draining: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let new_calls = NewCalls::default();
    let stream = DeferredFlush(Arc::new(Mutex::new(BufWriter::new(stream))));
    let connection = Builder::new(new_calls.clone())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        // gRPC does not use it.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream.clone()), service);
    let mut connection = pin!(connection);
    // Ready when the sender is dropped.
    let mut drain = pin!(async { drop(draining.changed().await) });
    let mut is_draining = false;
    let mut has_refused = false;
    let mut pause: Option<Pin<Box<Sleep>>> = None;
    let ended = poll_fn(|context| {
        if !is_draining && drain.as_mut().poll(context).is_ready() {
            is_draining = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Some(end) = &mut pause {
            ready!(end.as_mut().poll(context));
            pause = None;
        }
        let polled = connection.as_mut().poll(context);
        // If it fails, so does the next write.
        let _ = Pin::new(&mut *stream.lock()).poll_flush(context);
        if has_refused {
            let end = pause.insert(Box::pin(sleep(REFUSAL_PAUSE)));
            // Registers the wake-up.
            let _ = end.as_mut().poll(context);
        }
        // Refusals wake this task, which then sends all of them.
        has_refused = new_calls.start();
        polled
    });
    if let Err(error) = ended.await {
        debug!(%error, "a connection broke off");
    }
}

/// A stream that [`serve_connection`] flushes after each poll of its connection. The h2 crate flushes the
/// message of a response and its trailers separately, which would take two system calls.
struct DeferredFlush<S>(Arc<Mutex<BufWriter<S>>>);

impl<S> DeferredFlush<S> {
    fn lock(&self) -> MutexGuard<'_, BufWriter<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for DeferredFlush<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for DeferredFlush<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for DeferredFlush<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(context)
    }
}

/// The service of one connection.
struct ConnectionService {
    service: CallService<ServerRoutes>,
    connection: Arc<ConnectionState>,
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, request: Request<Incoming>) -> ResponseFuture {
        let request = request.map(Body::new);
        let response = self.service.call(request, Some(&self.connection));
        ResponseFuture {
            response: Some(response),
            polled: false,
        }
    }
}

/// A response to come. The first poll, by [`NewCalls::start`], starts no work, so that
/// work never runs on the task of the connection.
struct ResponseFuture {
    response: Option<CallResponse>,
    polled: bool,
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = mem::replace(&mut self.polled, true);
        match self.response.take() {
            Some(CallResponse::Ready(response)) => Poll::Ready(Ok(response)),
            Some(CallResponse::Pending(mut work)) if polled => {
                let response = work.as_mut().poll(context);
                if response.is_pending() {
                    self.response = Some(CallResponse::Pending(work));
                }
                response.map(Ok)
            }
            response => {
                self.response = response;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

/// An executor that keeps the calls that arrive on a connection until they are started.
#[derive(Clone, Default)]
struct NewCalls(Arc<Mutex<Vec<CallFuture>>>);

type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for NewCalls {
    fn execute(&self, call: F) {
        self.lock().push(Box::pin(call));
    }
}

impl NewCalls {
    /// Finishes calls whose response is ready, which are refusals, and spawns the others. True if
    /// any was finished.
    fn start(&self) -> bool {
        let calls = mem::take(&mut *self.lock());
        let mut any_finished = false;
        for mut call in calls {
            let mut no_waker = Context::from_waker(Waker::noop());
            if call.as_mut().poll(&mut no_waker).is_pending() {
                tokio::spawn(call);
            } else {
                any_finished = true;
            }
        }
        any_finished
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CallFuture>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
