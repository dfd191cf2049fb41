//! A TCP relay before a server or a database: it can delay, hold, cut and redirect
//! connections.

use std::{
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs},
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::runtime::runtime;

/// The message CommandComplete of PostgreSQL after a COMMIT: its kind, its length, and the command.
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

/// Forwards bytes between its own port and another. Dropping it cuts its connections.
pub struct Relay {
    address: SocketAddr,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy)]
struct State {
    /// Where new connections lead.
    target: SocketAddr,
    /// How long each read of bytes is delayed.
    delay: Duration,
    /// Nothing is forwarded at present.
    held: bool,
    /// A connection is cut instead of forwarding the answer to a commit.
    loses_commits: bool,
    /// A connection belongs to the epoch in which it was accepted.
    epoch: u64,
    /// Connections of earlier epochs are cut.
    cut_before: u64,
    /// Connections of earlier epochs no longer forward anything.
    silent_before: u64,
}

impl Relay {
    /// Leads to this port.
    pub fn to(target: u16) -> Self {
        Self::with_delay(target, Duration::ZERO)
    }

    /// Leads to the server of a PostgreSQL database.
    pub fn to_database(url: &str) -> Self {
        let url: http::Uri = url.parse().expect("the URL of a database");
        let host = url.host().expect("a host").trim_matches(['[', ']']);
        let server = (host, url.port_u16().unwrap_or(5432)).to_socket_addrs();
        let server = server.expect("a host").next().expect("an address");
        Self::start(server, Duration::ZERO)
    }

    /// Leads to this port, with this delay in either direction.
    pub fn with_delay(target: u16, delay: Duration) -> Self {
        Self::start((Ipv4Addr::LOCALHOST, target).into(), delay)
    }

    fn start(target: SocketAddr, delay: Duration) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("its address");
        let (state, receiver) = watch::channel(State {
            target,
            delay,
            held: false,
            loses_commits: false,
            epoch: 0,
            cut_before: 0,
            silent_before: 0,
        });
        // It runs in its own thread, so a blocking test does not stop it.
        thread::spawn(move || {
            runtime().block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                serve(listener, receiver).await;
            });
        });
        Self { address, state }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a PostgreSQL database that leads through this relay instead of to
    /// the port in it.
    pub fn url(&self, direct: &str) -> String {
        let direct: http::Uri = direct.parse().expect("the URL of a database");
        let server = direct.authority().expect("a server").as_str();
        let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
        let relay = self.address.to_string();
        direct.to_string().replacen(server, &relay, 1)
    }

    /// Delays bytes by this time from now on, in either direction.
    pub fn delay(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Forwards nothing from now on; connections are still accepted.
    pub fn hold(&self) {
        self.state.send_modify(|state| state.held = true);
    }

    /// Resumes forwarding, beginning with the held bytes.
    pub fn resume(&self) {
        self.state.send_modify(|state| state.held = false);
    }

    /// Cuts the present connections; new ones are forwarded.
    pub fn cut(&self) {
        self.state.send_modify(|state| {
            state.epoch += 1;
            state.cut_before = state.epoch;
            state.held = false;
        });
    }

    /// Keeps current connections open and silent, like a lost host. New connections are forwarded.
    pub fn abandon(&self) {
        self.state.send_modify(|state| {
            state.epoch += 1;
            state.silent_before = state.epoch;
            state.held = false;
        });
    }

    /// From now on cuts a PostgreSQL connection instead of forwarding the answer to a COMMIT.
    pub fn start_losing_commits(&self) {
        self.state.send_modify(|state| state.loses_commits = true);
    }

    /// Forwards the answers to commits again.
    pub fn stop_losing_commits(&self) {
        self.state.send_modify(|state| state.loses_commits = false);
    }

    /// Leads new connections to this port. The others stay as they are.
    pub fn lead_to(&self, target: u16) {
        self.state
            .send_modify(|state| state.target.set_port(target));
    }
}

async fn serve(listener: TcpListener, mut state: watch::Receiver<State>) {
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    tokio::spawn(forward(client, state.clone()));
                }
            }
            changed = state.changed() => if changed.is_err() { return },
        }
    }
}

async fn forward(client: TcpStream, mut state: watch::Receiver<State>) {
    let epoch = state.borrow().epoch;
    let states = state.clone();
    let both_ways = async {
        let State { target, .. } = wait_while_held(&mut states.clone(), epoch).await?;
        let server = TcpStream::connect(target).await.ok()?;
        client.set_nodelay(true).ok()?;
        server.set_nodelay(true).ok()?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let commit_is_lost =
            |bytes: &[u8]| states.borrow().loses_commits && contains(bytes, COMMITTED);
        tokio::select! {
            end = pump(from_client, to_server, states.clone(), epoch, |_| true) => end,
            end = pump(from_server, to_client, states.clone(), epoch, |bytes| !commit_is_lost(bytes)) => end,
        }
    };
    tokio::select! {
        _ = both_ways => {}
        _ = state.wait_for(|state| state.cut_before > epoch) => {}
    }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Waits until bytes of this epoch may be forwarded; the state then. `None` when the relay is
/// gone.
async fn wait_while_held(states: &mut watch::Receiver<State>, epoch: u64) -> Option<State> {
    let open = |state: &State| !state.held && state.silent_before <= epoch;
    states.wait_for(open).await.ok().map(|state| *state)
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut states: watch::Receiver<State>,
    epoch: u64,
    may_pass: impl Fn(&[u8]) -> bool,
) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await.ok()?;
        let bytes = buffer.get(..read).filter(|bytes| !bytes.is_empty())?;
        let State { delay, .. } = wait_while_held(&mut states, epoch).await?;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if !may_pass(bytes) {
            return None;
        }
        to.write_all(bytes).await.ok()?;
    }
}
