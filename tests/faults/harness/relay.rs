//! A relay before a server: it takes its time, and its connections can be cut.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    task::JoinSet,
};

const BUFFER: usize = 64 * 1024;

/// Listens on a port of its own until it is dropped.
pub struct Relay {
    address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Relay {
    /// Passes on what comes from either side, each time after this delay.
    pub fn before(server: SocketAddr, delay: Duration) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let accepted = Arc::clone(&connections);
        let mut accepting = JoinSet::new();
        let accept = async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                let mut connections = accepted.lock().expect("connections");
                connections.spawn(async move { drop(pass(client, server, delay).await) });
                while connections.try_join_next().is_some() {}
            }
        };
        accepting.spawn_on(accept, runtime().handle());
        Self {
            address,
            connections,
            _accepting: accepting,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts what is connected.
    pub fn cut(&self) {
        self.connections.lock().expect("connections").abort_all();
    }
}

/// It goes on while a test blocks its own.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build();
        runtime.expect("a runtime")
    })
}

async fn pass(client: TcpStream, server: SocketAddr, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        ended = copy(from_client, to_server, delay) => ended,
        ended = copy(from_server, to_client, delay) => ended,
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}
