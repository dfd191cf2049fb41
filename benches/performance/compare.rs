//! Compares two contenders, which take turns: A B B A. So writes to disk that are left over from
//! one turn slow down both equally.

use std::{sync::Arc, time::Duration};

use super::{
    load::{LoadSpec, Measured, Requests},
    testbed::Server,
};

/// A server and its requests.
pub struct Contender<'a> {
    pub server: &'a Server,
    pub requests: Arc<Requests>,
}

/// The duration of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Turns of each contender.
    pub rounds: usize,
    /// The duration of a turn.
    pub turn: Duration,
    /// The number of connections by default.
    pub connections: usize,
}

impl Timing {
    /// A turn over `connections`. It begins with a warm-up, in which effects of the other
    /// contender end.
    pub fn spec(self, connections: usize) -> LoadSpec {
        LoadSpec {
            connections,
            warm_up: self.turn / 5,
            time: self.turn,
        }
    }
}

/// The results of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    pub a: Vec<Measured>,
    pub b: Vec<Measured>,
    /// Transactions a second of pgbench.
    pub pgbench_rates: Vec<f64>,
}

impl Rounds {
    /// Runs the turns over `connections`, each pair followed by `pgbench`.
    pub async fn run(
        (a, b): (&Contender<'_>, &Contender<'_>),
        timing: Timing,
        connections: usize,
        pgbench: Option<&dyn Fn() -> f64>,
    ) -> Self {
        let spec = timing.spec(connections);
        let mut rounds = Self::default();
        for round in 0..timing.rounds {
            if round % 2 == 0 {
                rounds.a.push(a.server.load(&a.requests, spec).await);
                rounds.b.push(b.server.load(&b.requests, spec).await);
            } else {
                rounds.b.push(b.server.load(&b.requests, spec).await);
                rounds.a.push(a.server.load(&a.requests, spec).await);
            }
            rounds.pgbench_rates.extend(pgbench.map(|run| run()));
        }
        rounds
    }

    /// Calls a second of A divided by those of B, in each round.
    pub fn ratios(&self) -> Vec<f64> {
        let pairs = self.a.iter().zip(&self.b);
        pairs.map(|(a, b)| a.rate() / b.rate()).collect()
    }

    /// The median of the ratios.
    pub fn ratio(&self) -> f64 {
        median(self.ratios())
    }

    /// The size of a response of A divided by that of B.
    pub fn size_ratio(&self) -> f64 {
        let size = |side: &[Measured]| median(side.iter().map(Measured::size).collect());
        size(&self.a) / size(&self.b)
    }
}

/// The median; NaN of no numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => (numbers[middle - 1] + numbers[middle]) / 2.0,
        _ => numbers[middle],
    }
}
