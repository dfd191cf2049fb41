//! A fake issuer that serves a key set over HTTP.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::Uri;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;

/// Serves the status and body that a test sets, and counts requests.
#[derive(Clone)]
pub struct KeyServer {
    scheme: &'static str,
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// `None`: requests get no answer.
    status: Mutex<Option<&'static str>>,
    body: Mutex<String>,
    fetches: AtomicUsize,
    /// Requests wait while there is no permit.
    gate: Semaphore,
}

impl KeyServer {
    pub async fn start(body: &str) -> Self {
        Self::serve(body, None).await
    }

    pub async fn start_with_tls(body: &str, tls: TlsAcceptor) -> Self {
        Self::serve(body, Some(tls)).await
    }

    async fn serve(body: &str, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Self {
            scheme: if tls.is_some() { "https" } else { "http" },
            address: listener.local_addr().expect("an address"),
            state: Arc::new(State {
                status: Mutex::new(Some("200 OK")),
                body: Mutex::new(body.to_owned()),
                fetches: AtomicUsize::new(0),
                gate: Semaphore::new(Semaphore::MAX_PERMITS),
            }),
        };
        let state = Arc::clone(&server.state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, tls) = (Arc::clone(&state), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => state.answer(stream).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => state.answer(stream).await,
                            Err(_) => Ok(()),
                        },
                    }
                });
            }
        });
        server
    }

    pub fn url(&self) -> Uri {
        let port = self.address.port();
        let url = format!("{}://localhost:{port}/keys?v=1", self.scheme);
        url.parse().expect("a URL")
    }

    pub fn set_body(&self, body: &str) {
        *self.state.body.lock().expect("a lock") = body.to_owned();
    }

    pub fn set_status(&self, status: &'static str) {
        *self.state.status.lock().expect("a lock") = Some(status);
    }

    /// Stops answering requests.
    pub fn fall_silent(&self) {
        *self.state.status.lock().expect("a lock") = None;
    }

    /// Delays answers until [`Self::release`].
    pub fn hold(&self) {
        self.state.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Answers the waiting and later requests.
    pub fn release(&self) {
        self.state.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// How often the keys were fetched.
    pub fn fetches(&self) -> usize {
        self.state.fetches.load(Ordering::SeqCst)
    }
}

impl State {
    async fn answer(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        assert!(request.starts_with(b"GET /keys?v=1 HTTP/1.1\r\n"));
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let _passed = self.gate.acquire().await.expect("it is never closed");
        let status = *self.status.lock().expect("a lock");
        let Some(status) = status else {
            return std::future::pending().await;
        };
        let body = self.body.lock().expect("a lock").clone();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    }
}
