//! Compares two contenders, which take turns: A B B A. So writes to disk that are left over from
//! one turn slow down both equally.

use std::{sync::Arc, time::Duration};

use super::{
    load::{LoadSpec, Measured, Requests},
    table::Line,
    testbed::{Kind, Server},
};

/// A server and its requests.
pub type Contender<'a> = (&'a Server, Arc<Requests>);

/// The duration of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Turns of each contender.
    pub rounds: usize,
    /// The duration of a turn.
    pub turn: Duration,
    /// The number of connections of each.
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
}

impl Rounds {
    /// Runs the turns.
    pub async fn run([a, b]: &[Contender<'_>; 2], timing: Timing) -> Self {
        let spec = timing.spec(timing.connections);
        let mut rounds = Self::default();
        for round in 0..timing.rounds {
            if round % 2 == 0 {
                rounds.a.push(a.0.load(&a.1, spec).await);
                rounds.b.push(b.0.load(&b.1, spec).await);
            } else {
                rounds.b.push(b.0.load(&b.1, spec).await);
                rounds.a.push(a.0.load(&a.1, spec).await);
            }
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

/// Compares two servers for a line of a table.
pub async fn compare(
    what: impl Into<String>,
    kind: Kind,
    target: f64,
    contenders: [Contender<'_>; 2],
    timing: Timing,
) -> Line {
    let rounds = Rounds::run(&contenders, timing).await;
    Line::new(what, kind, target, rounds)
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
