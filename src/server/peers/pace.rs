//! How fast one address may connect anew. A connection costs more than most calls on
//! it, and one that is closed for what it does, such as streams by the thousand that
//! are reset unseen, would come again at once and do the same.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use tokio::time::Instant;

/// Connections that an address may open at once, after it has opened none for a while.
const BURST: u32 = 500;
/// How often it may open one from then on.
const EACH: Duration = Duration::from_millis(20);
/// Addresses that are remembered before those are forgotten that may have a burst again.
const REMEMBERED: usize = 4096;
/// The longest that a connection is made to wait; a later one is dropped.
const LONGEST: Duration = Duration::from_secs(10);

/// The connection is not to be had within [`LONGEST`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// When addresses have used up what they were allowed.
#[derive(Default)]
pub(super) struct Pace {
    /// The moment from which an address may have a whole burst again.
    rested: HashMap<IpAddr, Instant>,
}

impl Pace {
    /// How long a new connection of an address waits until it is let in.
    pub fn wait(&mut self, address: IpAddr, now: Instant) -> Result<Duration, TooMany> {
        if self.rested.len() >= REMEMBERED {
            self.rested.retain(|_, rested| *rested > now);
        }
        let rested = self.rested.entry(address).or_insert(now);
        let next = (*rested).max(now) + EACH;
        let wait = next.saturating_duration_since(now + EACH * BURST);
        if wait > LONGEST {
            return Err(TooMany);
        }
        *rested = next;
        Ok(wait)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SOMEBODY: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn waits(pace: &mut Pace, connections: u32, now: Instant) -> Vec<Duration> {
        let wait = |_| pace.wait(SOMEBODY, now).expect("a place");
        (0..connections).map(wait).collect()
    }

    #[test]
    fn a_burst_waits_for_nothing_and_those_after_it_for_their_turn() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let burst = waits(&mut pace, BURST, now);
        assert!(burst.iter().all(Duration::is_zero));
        assert_eq!(waits(&mut pace, 3, now), [EACH, EACH * 2, EACH * 3]);
    }

    #[test]
    fn who_rests_may_have_a_burst_again() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        waits(&mut pace, BURST, now);
        let later = now + EACH * BURST;
        let again = waits(&mut pace, BURST, later);
        assert!(again.iter().all(Duration::is_zero));
    }

    #[test]
    fn one_address_does_not_wait_for_another() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        waits(&mut pace, BURST + 1, now);
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(pace.wait(other, now), Ok(Duration::ZERO));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let all = BURST + u32::try_from(LONGEST.as_millis() / EACH.as_millis()).expect("few");
        waits(&mut pace, all, now);
        assert_eq!(pace.wait(SOMEBODY, now), Err(TooMany));
    }

    #[test]
    fn addresses_that_have_rested_are_forgotten() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for number in 0..u32::try_from(REMEMBERED).expect("few") {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            pace.wait(address, now).expect("a place");
        }
        pace.wait(SOMEBODY, now + EACH).expect("a place");
        assert_eq!(pace.rested.len(), 1);
    }
}
