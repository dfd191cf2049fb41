//! A server of a test's own in this process.

use std::{fmt, net::SocketAddr};

use expertise::{config::Config, server::Server};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

use super::{
    client::{Client, connect},
    deadline::{in_time, until},
    exposition::Exposition,
};

/// A server, until it is stopped or dropped.
pub struct TestServer {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), String>>,
}

/// Settings for a database in memory.
pub fn in_memory() -> Config {
    Config::for_tests("sqlite::memory:")
}

/// Settings with metrics on a free port.
pub fn with_metrics(database_url: &str) -> Config {
    Config {
        metrics_listen: Some(([127, 0, 0, 1], 0).into()),
        ..Config::for_tests(database_url)
    }
}

impl TestServer {
    pub async fn start(config: Config) -> Self {
        Self::try_start(config).await.expect("the server starts")
    }

    /// The server, or the one line that says why it does not start.
    pub async fn try_start(config: Config) -> Result<Self, String> {
        let server = Server::bind(config).await;
        let server = server.map_err(|error| error.to_string())?;
        let (address, metrics) = (server.local_addr(), server.metrics_addr());
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, mut starting) = oneshot::channel();
        let mut serving = tokio::spawn(async move {
            let started = || {
                let _ = started.send(());
            };
            let served = server.serve(started, async { drop(stopped.await) }).await;
            served.map_err(|error| error.to_string())
        });
        tokio::select! {
            biased;
            Ok(()) = &mut starting => {}
            ended = &mut serving => ended.expect("no panic")?,
        }
        Ok(Self {
            address,
            metrics,
            stop,
            serving,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client of the account `demo`.
    pub fn client(&self) -> Client {
        Client::at(self.address).with_account("demo")
    }

    /// A client without credentials.
    pub fn anonymous_client(&self) -> Client {
        Client::over(connect(self.address), self.address)
    }

    /// Where metrics are.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics.expect("a server with metrics")
    }

    pub async fn metrics(&self) -> Exposition {
        let (code, text) = http_get(self.metrics_address(), "/metrics").await;
        assert_eq!(code, 200, "{text}");
        Exposition::parse(&text)
    }

    /// Waits until the metrics fulfil the condition.
    pub async fn wait_for_metrics(
        &self,
        what: &str,
        condition: impl Fn(&Exposition) -> bool,
    ) -> Exposition {
        until(what, async || Some(self.metrics().await).filter(&condition)).await
    }

    /// Tells it to shut down, without waiting.
    pub fn begin_shutdown(self) -> JoinHandle<Result<(), String>> {
        drop(self.stop);
        self.serving
    }

    /// Shuts it down.
    pub async fn shut_down(self) {
        let ended = in_time("shutdown", self.begin_shutdown()).await;
        ended.expect("it ends without a panic").expect("it served");
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestServer").field(&self.address).finish()
    }
}

/// The code and the body of an answer over plain HTTP.
pub async fn http_get(address: SocketAddr, path: &str) -> (u16, String) {
    http_exchange(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n"),
    )
    .await
}

/// The code and the body of the answer to these bytes.
pub async fn http_exchange(address: SocketAddr, request: &str) -> (u16, String) {
    let (head, body) = http_answer(address, request).await;
    let code = head.split(' ').nth(1).expect("a code");
    (code.parse().expect("a code"), body)
}

/// The head and the body of the answer to these bytes.
pub async fn http_answer(address: SocketAddr, request: &str) -> (String, String) {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = in_time("an answer", answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}
