//! Two contenders take turns: A B A B, in one go.

use std::{sync::Arc, time::Duration};

use super::{
    ground::Server,
    load::{Dose, Measured, Requests},
    watch::median,
};

/// A server and what it is asked.
pub struct Contender<'a> {
    pub server: &'a Server,
    pub requests: Arc<Requests>,
}

/// How long a comparison takes.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How often each has its turn.
    pub rounds: usize,
    /// How long a turn is.
    pub turn: Duration,
    /// Over how many connections, where nothing else is said.
    pub connections: usize,
}

impl Patience {
    /// A turn over this many connections. Each begins with calls that do not count,
    /// as what the other left behind has to go.
    pub fn dose(self, connections: usize) -> Dose {
        Dose {
            connections,
            warm_up: self.turn / 5,
            time: self.turn,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    pub a: Vec<Measured>,
    pub b: Vec<Measured>,
    /// Calls a second of a third that only has a rate.
    pub c: Vec<f64>,
}

impl Rounds {
    /// Has them take turns over this many connections, and then a third each time.
    pub async fn take(
        (a, b): (&Contender<'_>, &Contender<'_>),
        patience: Patience,
        connections: usize,
        third: Option<&dyn Fn() -> f64>,
    ) -> Self {
        let dose = patience.dose(connections);
        let mut rounds = Self::default();
        for _ in 0..patience.rounds {
            rounds.a.push(a.server.load(&a.requests, dose).await);
            rounds.b.push(b.server.load(&b.requests, dose).await);
            rounds.c.extend(third.map(|third| third()));
        }
        rounds
    }

    /// Calls of A for one of B, in each round.
    pub fn ratios(&self) -> Vec<f64> {
        let pairs = self.a.iter().zip(&self.b);
        pairs.map(|(a, b)| a.rate() / b.rate()).collect()
    }

    /// The middle one of the ratios.
    pub fn ratio(&self) -> f64 {
        median(self.ratios())
    }

    /// Bytes of an answer of A for one of B.
    pub fn sizes(&self) -> f64 {
        let size = |side: &[Measured]| median(side.iter().map(Measured::size).collect());
        size(&self.a) / size(&self.b)
    }
}
