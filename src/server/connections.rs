//! HTTP/2 on the connections: what a peer may do on one, how calls are begun, and how
//! connections end.
//!
//! *Invariant:* a call that is refused at the door costs no task. Its answer is there
//! when its headers are, and is given on the connection's own task; calls that take work
//! have tasks of their own, so that none waits for another.

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
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tonic::{body::Body, service::Routes};
use tracing::debug;

use super::{
    KEEPALIVE,
    gate::{Answer, Gated},
    peers::{Guest, Wire},
};

/// Calls at once on a connection; the message of each is held in memory.
const MAX_CONCURRENT_STREAMS: u32 = 256;
/// Streams that a peer opens and resets before we saw them, and those we reset
/// for a peer's errors, before the connection is closed: floods of either cost
/// work without end otherwise. Callers with short deadlines, who may share a
/// connection with patient ones, may give up all their streams at once.
const MAX_PENDING_RESETS: usize = MAX_CONCURRENT_STREAMS as usize + 44;
const MAX_ERROR_RESETS: usize = 1024;
/// Request headers of a call, in bytes, beyond which the connection is at fault;
/// the gate refuses far smaller ones with a proper answer.
const MAX_HEADERS: u32 = 256 * 1024;
/// What a peer may send ahead on a call and on a connection, in bytes: messages
/// reach 64 MB, and each window costs a round trip.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// How long a peer that was asked whether it is there may take to answer.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a peer may take for the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection is not listened to after calls were refused on it.
const REST: Duration = Duration::from_millis(20);

/// Serves what stands behind a gate on connections, over TLS if there is any, until
/// `drain` is ready. From then on none is accepted, those at hand end with their last
/// call, and this ends with the last of them. Dropped, it cuts them.
pub(super) async fn serve(
    gate: Gated<Routes>,
    tls: Option<TlsAcceptor>,
    incoming: impl Stream<Item = io::Result<Wire>>,
    drain: impl Future<Output = ()>,
) {
    let (stay, leave) = watch::channel(());
    let mut connections = JoinSet::new();
    {
        // Dropped with the port, as soon as nobody is accepted any more.
        let mut incoming = pin!(incoming);
        let mut drain = pin!(drain);
        loop {
            let wire = tokio::select! {
                () = &mut drain => break,
                Some(_) = connections.join_next() => continue,
                wire = incoming.next() => wire,
            };
            match wire {
                Some(Ok(wire)) => {
                    connections.spawn(attend(wire, gate.clone(), tls.clone(), leave.clone()));
                }
                // Told already.
                Some(Err(_)) => {}
                None => break,
            }
        }
    }
    drop(stay);
    while connections.join_next().await.is_some() {}
}

async fn attend(
    wire: Wire,
    gate: Gated<Routes>,
    tls: Option<TlsAcceptor>,
    leave: watch::Receiver<()>,
) {
    let host = Host {
        gate,
        guest: wire.guest(),
    };
    let Some(tls) = tls else {
        return converse(wire, host, leave).await;
    };
    match timeout(HANDSHAKE, tls.accept(wire)).await {
        Ok(Ok(stream)) => converse(stream, host, leave).await,
        Ok(Err(error)) => debug!(%error, "a connection is not one of TLS"),
        Err(_) => debug!("a handshake took too long"),
    }
}

/// Serves one connection to its end.
async fn converse<S>(stream: S, host: Host, mut leave: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let begun = Begun::default();
    let connection = Builder::new(begun.clone())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_header_list_size(MAX_HEADERS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        // gRPC has no use for it.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), host);
    let mut connection = pin!(connection);
    let mut leaves = pin!(async { drop(leave.changed().await) });
    let mut leaving = false;
    let mut rest = Rest::default();
    let ended = poll_fn(|context| {
        if !leaving && leaves.as_mut().poll(context).is_ready() {
            leaving = true;
            connection.as_mut().graceful_shutdown();
        }
        ready!(rest.poll(context));
        let polled = connection.as_mut().poll(context);
        rest.begin_if_due(context);
        // Answers that are given here wake this task, which then sends all at once.
        if begun.proceed() {
            rest.is_due = true;
        }
        polled
    });
    if let Err(error) = ended.await {
        debug!(%error, "a connection broke off");
    }
}

/// The rest of a connection that calls were refused on, once their answers are sent. What
/// is refused costs more by itself than with others, which come in meanwhile.
#[derive(Default)]
struct Rest {
    is_due: bool,
    end: Option<Pin<Box<Sleep>>>,
}

impl Rest {
    /// Ready when there is no rest, or it is over.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(end) = &mut self.end {
            ready!(end.as_mut().poll(context));
            self.end = None;
        }
        Poll::Ready(())
    }

    fn begin_if_due(&mut self, context: &mut Context<'_>) {
        if mem::take(&mut self.is_due) {
            let end = self.end.insert(Box::pin(sleep(REST)));
            // Its end wakes this task.
            let _ = end.as_mut().poll(context);
        }
    }
}

/// What answers the calls of a connection.
struct Host {
    gate: Gated<Routes>,
    guest: Guest,
}

impl Service<Request<Incoming>> for Host {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        let answer = self.gate.answer(request.map(Body::new), Some(&self.guest));
        Answering {
            answer: Some(answer),
            asked: false,
        }
    }
}

/// An answer on its way. One that takes work does nothing when it is first asked for,
/// which [`Begun::proceed`] does.
struct Answering {
    answer: Option<Answer>,
    asked: bool,
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let asked = mem::replace(&mut self.asked, true);
        match self.answer.take() {
            Some(Answer::There(response)) => Poll::Ready(Ok(response)),
            Some(Answer::Work(mut work)) if asked => {
                let polled = work.as_mut().poll(context);
                if polled.is_pending() {
                    self.answer = Some(Answer::Work(work));
                }
                polled.map(Ok)
            }
            work => {
                self.answer = work;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

/// Calls that came in on a connection and are not answered nor given to tasks yet.
#[derive(Clone, Default)]
struct Begun(Arc<Mutex<Vec<Running>>>);

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Begun {
    fn execute(&self, call: F) {
        self.calls().push(Box::pin(call));
    }
}

impl Begun {
    /// Has those calls answered that can be at once, and others worked on. Whether there
    /// were any of the former.
    fn proceed(&self) -> bool {
        let calls = mem::take(&mut *self.calls());
        let mut answered = false;
        for mut call in calls {
            let mut nobody = Context::from_waker(Waker::noop());
            if call.as_mut().poll(&mut nobody).is_pending() {
                tokio::spawn(call);
            } else {
                answered = true;
            }
        }
        answered
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
