//! Callers who read and write all the while.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use tonic::Code;

use super::{
    client::{Call, Client},
    until::{BOUND, until},
    world::World,
};

/// Calls of each kind in which all that can go wrong does: more than the server has
/// connections to its database.
const A_WHILE: usize = 20;

/// What a call does.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Read,
    Write,
}

/// How many calls have been answered.
#[derive(Debug, Default)]
pub struct Tally {
    over: AtomicBool,
    accepted: [AtomicUsize; 2],
    refused: [AtomicUsize; 2],
}

impl Tally {
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn count(&self, kind: Kind, accepted: bool) {
        let counts = if accepted {
            &self.accepted
        } else {
            &self.refused
        };
        counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }
}

pub struct Load {
    tally: Arc<Tally>,
    clients: JoinSet<Client>,
}

impl Load {
    /// Begins it, with so many callers, each with a connection of its own.
    pub fn on(server: SocketAddr, clients: usize) -> Self {
        let tally = Arc::new(Tally::default());
        let clients = (0..clients).map(|_| Client::new(World::at(server), Arc::clone(&tally)));
        let clients = clients.map(Client::run).collect();
        Self { tally, clients }
    }

    /// Waits until so many more calls of both kinds have gone well.
    pub async fn is_served(&mut self, more: usize) {
        self.reads_are_served(more).await;
        self.writes_are_served(more).await;
    }

    /// Waits until all calls of both kinds have gone well for a while.
    pub async fn is_well(&mut self) {
        let refused = |tally: &Tally| -> usize {
            let refused = tally.refused.iter();
            refused.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let begun = Instant::now();
        loop {
            let seen = refused(&self.tally);
            self.is_served(A_WHILE).await;
            if refused(&self.tally) == seen {
                return;
            }
            assert!(begun.elapsed() < BOUND, "calls are refused again and again");
        }
    }

    pub async fn reads_are_served(&mut self, more: usize) {
        self.more("reads are served", more, |tally| &tally.accepted[0])
            .await;
    }

    pub async fn writes_are_served(&mut self, more: usize) {
        self.more("writes are served", more, |tally| &tally.accepted[1])
            .await;
    }

    pub async fn reads_are_refused(&mut self, more: usize) {
        self.more("reads are refused", more, |tally| &tally.refused[0])
            .await;
    }

    pub async fn writes_are_refused(&mut self, more: usize) {
        self.more("writes are refused", more, |tally| &tally.refused[1])
            .await;
    }

    async fn more(&mut self, what: &str, more: usize, which: fn(&Tally) -> &AtomicUsize) {
        let goal = which(&self.tally).load(Ordering::Relaxed) + more;
        until(what, async || {
            if let Some(Err(panicked)) = self.clients.try_join_next() {
                std::panic::resume_unwind(panicked.into_panic());
            }
            (which(&self.tally).load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await;
    }

    /// Ends it, and asserts that what is there is what the callers were told.
    pub async fn end(self) -> History {
        self.tally.over.store(true, Ordering::Relaxed);
        let mut calls = Vec::new();
        let mut holdings = 0;
        for mut client in self.clients.join_all().await {
            client.audit().await;
            holdings += client.holdings();
            calls.append(&mut client.calls);
        }
        History { calls, holdings }
    }
}

/// How all calls of a load went.
pub struct History {
    calls: Vec<Call>,
    /// How many tasks and steps were compared in the end.
    holdings: usize,
}

impl History {
    /// Tells how the calls went, and asserts that none was refused otherwise than by
    /// one of these codes.
    #[track_caller]
    pub fn tells(&self, name: &str, codes: &[Code]) {
        let mut answers = BTreeMap::new();
        for call in &self.calls {
            assert!(
                call.error.is_none_or(|code| codes.contains(&code)),
                "{call:?}"
            );
            let code = call.error.unwrap_or(Code::Ok);
            *answers.entry(format!("{code:?}")).or_insert(0) += 1;
        }
        let holdings = self.holdings;
        println!("{name}: {answers:?}, {holdings} tasks and steps are as they must be");
    }

    /// The longest that a call took.
    pub fn longest(&self) -> Duration {
        let times = self.calls.iter().map(|call| call.ended - call.begun);
        times.max().unwrap_or_default()
    }

    /// After an outage that began at `gone`: how long after it was `back` the first
    /// call went well.
    pub fn first_success(&self, gone: Instant, back: Instant) -> Duration {
        let well = self.calls.iter().filter(|call| call.error.is_none());
        let well = well.filter(|call| call.begun > gone || call.ended > back);
        let first = well.map(|call| call.ended).min().expect("a success");
        first.saturating_duration_since(back)
    }

    /// How long after the database was `back` the last call began that failed, and
    /// before `end`.
    pub fn last_failure(&self, back: Instant, end: Instant) -> Duration {
        let failed = self.calls.iter().filter(|call| call.error.is_some());
        let began = failed.map(|call| call.begun).filter(|begun| *begun < end);
        let last = began.max().unwrap_or(back);
        last.saturating_duration_since(back)
    }
}
