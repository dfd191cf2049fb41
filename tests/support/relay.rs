//! Stands between a server and its database: it can fall silent, cut connections
//! and lead new ones somewhere else.

// Not every test that shares this file does all of it.
#![allow(dead_code)]

use std::{
    collections::HashSet,
    net::Ipv4Addr,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Carries bytes between a port of its own and another. Dropped, it cuts all
/// connections and takes no more.
pub struct Relay {
    port: u16,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy)]
struct State {
    /// The port that new connections lead to.
    target: u16,
    /// Whether nothing is carried at present.
    held: bool,
    /// Whether a connection is cut instead of carrying the answer to what makes a
    /// write durable.
    loses_commits: bool,
    /// Connections belong to the era in which they were taken.
    era: u64,
    /// Connections of earlier eras are cut.
    cut_before: u64,
    /// On connections of earlier eras nothing is carried any more.
    silent_before: u64,
}

impl Relay {
    /// One that leads to this port.
    pub fn to(target: u16) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        let (state, seen) = watch::channel(State {
            target,
            held: false,
            loses_commits: false,
            era: 0,
            cut_before: 0,
            silent_before: 0,
        });
        // A thread of its own: a test that blocks does not hold it up.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build();
            let served = async { serve(TcpListener::from_std(listener).expect("it"), seen).await };
            runtime.expect("a runtime").block_on(served);
        });
        Self { port, state }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Carries nothing any more, and takes connections without a word.
    pub fn hold(&self) {
        self.state.send_modify(|state| state.held = true);
    }

    /// Carries everything again, that which was held first.
    pub fn go_on(&self) {
        self.state.send_modify(|state| state.held = false);
    }

    /// Cuts the connections there are; new ones are carried.
    pub fn cut(&self) {
        self.state.send_modify(|state| {
            state.era += 1;
            state.cut_before = state.era;
            state.held = false;
        });
    }

    /// Leaves the connections there are open and silent for ever, as a host that is
    /// gone does; new ones are carried.
    pub fn abandon(&self) {
        self.state.send_modify(|state| {
            state.era += 1;
            state.silent_before = state.era;
            state.held = false;
        });
    }

    /// Whether from now on each connection is cut whose COMMIT was answered, or whose
    /// script that is a transaction by itself, before the answer is carried.
    pub fn lose_commits(&self, whether: bool) {
        self.state
            .send_modify(|state| state.loses_commits = whether);
    }

    /// Leads new connections to this port. The others stay as they are.
    pub fn lead_to(&self, target: u16) {
        self.state.send_modify(|state| state.target = target);
    }
}

async fn serve(listener: TcpListener, mut state: watch::Receiver<State>) {
    loop {
        tokio::select! {
            taken = listener.accept() => {
                if let Ok((client, _)) = taken {
                    tokio::spawn(carry(client, state.clone()));
                }
            }
            changed = state.changed() => if changed.is_err() { return },
        }
    }
}

async fn carry(client: TcpStream, mut state: watch::Receiver<State>) {
    let era = state.borrow().era;
    let carrying = state.clone();
    let both_ways = async {
        let target = flows(&mut carrying.clone(), era).await?;
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target))
            .await
            .ok()?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let commits = AtomicBool::new(false);
        let scripts = Mutex::new(Scripts::default());
        let may_pass = |bytes: &[u8]| {
            let mut scripts = scripts.lock().expect("the scripts");
            let commit = bytes.windows(6).any(|word| word == b"COMMIT");
            commits.fetch_or(scripts.run_in(bytes) || commit, Ordering::Relaxed);
            true
        };
        let may_return = |_: &[u8]| {
            let commits = commits.swap(false, Ordering::Relaxed);
            !(commits && carrying.borrow().loses_commits)
        };
        tokio::select! {
            end = pump(from_client, to_server, carrying.clone(), era, may_pass) => end,
            end = pump(from_server, to_client, carrying.clone(), era, may_return) => end,
        }
    };
    tokio::select! {
        _ = both_ways => {}
        _ = state.wait_for(|state| state.cut_before > era) => {}
    }
}

/// The prepared statements of a connection that are scripts.
#[derive(Default)]
struct Scripts(HashSet<Vec<u8>>);

impl Scripts {
    /// Whether one of them is run in these messages to PostgreSQL, from which those are
    /// learned that are prepared.
    fn run_in(&mut self, mut bytes: &[u8]) -> bool {
        let mut run = false;
        while let [kind, a, b, c, d, rest @ ..] = bytes {
            // With itself, and without the kind.
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            let Some((body, next)) = length.checked_sub(4).and_then(|n| rest.split_at_checked(n))
            else {
                break;
            };
            let mut texts = body.split(|byte| *byte == 0);
            let (first, second) = (texts.next(), texts.next());
            match (kind, first, second) {
                // Parse: the name, and what it stands for.
                (b'P', Some(name), Some(sql)) if sql.starts_with(b"WITH changed") => {
                    self.0.insert(name.to_vec());
                }
                // Bind: the portal, and the name.
                (b'B', _, Some(name)) => run |= self.0.contains(name),
                _ => {}
            }
            bytes = next;
        }
        run
    }
}

/// The target of new connections, once bytes of this era are carried; `None` when
/// the relay is gone.
async fn flows(state: &mut watch::Receiver<State>, era: u64) -> Option<u16> {
    let open = |state: &State| !state.held && state.silent_before <= era;
    let state = state.wait_for(open).await.ok()?;
    Some(state.target)
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    era: u64,
    may_go: impl Fn(&[u8]) -> bool,
) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await.ok()?;
        let bytes = buffer.get(..read).filter(|bytes| !bytes.is_empty())?;
        flows(&mut state, era).await?;
        if !may_go(bytes) {
            return None;
        }
        to.write_all(bytes).await.ok()?;
    }
}
