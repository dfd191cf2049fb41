//! Limits how fast an address may open connections. A connection costs more than most
//! calls, and a peer whose connection is closed for a flood would reconnect at once.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    net::IpAddr,
    time::Duration,
};

use tokio::time::Instant;

/// Connections that an address may open at once.
const BURST: u32 = 500;
/// The interval between connections beyond the burst.
const INTERVAL: Duration = Duration::from_millis(20);
/// At this many addresses, those whose bucket is full again are forgotten.
const MAX_ADDRESSES: usize = 4096;
/// The longest that a connection is delayed. One that would wait longer is refused.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// The connection would be delayed by more than [`MAX_DELAY`], or too many others are delayed.
#[derive(Debug, PartialEq, Eq)]
pub struct RateLimited;

/// A token bucket for each address.
pub struct ConnectRateLimiter {
    max_delayed: usize,
    /// When the bucket of an address will be full again.
    full_at: HashMap<IpAddr, Instant>,
    /// When the delays of connections end.
    delayed_until: BinaryHeap<Reverse<Instant>>,
}

impl ConnectRateLimiter {
    /// Delays so many connections at once, whatever their addresses.
    pub fn new(max_delayed: usize) -> Self {
        Self {
            max_delayed,
            full_at: HashMap::new(),
            delayed_until: BinaryHeap::new(),
        }
    }

    /// Reserves the address's next slot; returns the wait until it. A refusal reserves nothing.
    pub fn reserve_slot(&mut self, address: IpAddr, now: Instant) -> Result<Duration, RateLimited> {
        if self.full_at.len() >= MAX_ADDRESSES {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let delayed = self.count_delayed(now);
        let full_at = self.full_at.entry(address).or_insert(now);
        let next = (*full_at).max(now) + INTERVAL;
        let delay = next.saturating_duration_since(now + INTERVAL * BURST);
        if !delay.is_zero() {
            if delay > MAX_DELAY || delayed >= self.max_delayed {
                return Err(RateLimited);
            }
            self.delayed_until.push(Reverse(now + delay));
        }
        *full_at = next;
        Ok(delay)
    }

    fn count_delayed(&mut self, now: Instant) -> usize {
        let delayed = &mut self.delayed_until;
        while delayed.peek().is_some_and(|Reverse(end)| *end <= now) {
            delayed.pop();
        }
        delayed.len()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn limiter() -> ConnectRateLimiter {
        ConnectRateLimiter::new(1024)
    }

    fn delays(limiter: &mut ConnectRateLimiter, connections: u32, now: Instant) -> Vec<Duration> {
        let delay = |_| limiter.reserve_slot(ADDRESS, now).expect("not refused");
        (0..connections).map(delay).collect()
    }

    #[test]
    fn a_burst_is_not_delayed_and_later_connections_come_at_intervals() {
        let (mut limiter, now) = (limiter(), Instant::now());
        let burst = delays(&mut limiter, BURST, now);
        assert!(burst.iter().all(Duration::is_zero));
        assert_eq!(
            delays(&mut limiter, 3, now),
            [INTERVAL, INTERVAL * 2, INTERVAL * 3]
        );
    }

    #[test]
    fn after_a_pause_there_is_a_burst_again() {
        let (mut limiter, now) = (limiter(), Instant::now());
        delays(&mut limiter, BURST, now);
        let later = now + INTERVAL * BURST;
        let again = delays(&mut limiter, BURST, later);
        assert!(again.iter().all(Duration::is_zero));
    }

    #[test]
    fn an_address_does_not_delay_another() {
        let (mut limiter, now) = (limiter(), Instant::now());
        delays(&mut limiter, BURST + 1, now);
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(limiter.reserve_slot(other, now), Ok(Duration::ZERO));
    }

    #[test]
    fn a_connection_with_too_long_a_delay_is_refused() {
        let (mut limiter, now) = (limiter(), Instant::now());
        let all = BURST + u32::try_from(MAX_DELAY.as_millis() / INTERVAL.as_millis()).expect("few");
        delays(&mut limiter, all, now);
        assert_eq!(limiter.reserve_slot(ADDRESS, now), Err(RateLimited));
    }

    #[test]
    fn delayed_connections_of_all_addresses_are_bounded() {
        let (mut limiter, now) = (ConnectRateLimiter::new(2), Instant::now());
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        for flooding in 1..=3 {
            for _ in 0..BURST {
                let delay = limiter.reserve_slot(address(flooding), now);
                assert_eq!(delay, Ok(Duration::ZERO));
            }
        }
        let mut reserve = |last, now| limiter.reserve_slot(address(last), now);
        assert_eq!(reserve(1, now), Ok(INTERVAL));
        assert_eq!(reserve(2, now), Ok(INTERVAL));
        // Beyond the bound it is refused, which costs the address no slot.
        assert_eq!(reserve(3, now), Err(RateLimited));
        // An address within its burst is not concerned.
        assert_eq!(reserve(4, now), Ok(Duration::ZERO));
        let later = now + INTERVAL;
        assert_eq!(reserve(3, later), Ok(Duration::ZERO));
        assert_eq!(reserve(3, later), Ok(INTERVAL));
    }

    #[test]
    fn addresses_with_a_full_burst_are_forgotten() {
        let (mut limiter, now) = (limiter(), Instant::now());
        for number in 0..u32::try_from(MAX_ADDRESSES).expect("few") {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            limiter.reserve_slot(address, now).expect("not refused");
        }
        limiter
            .reserve_slot(ADDRESS, now + INTERVAL)
            .expect("not refused");
        assert_eq!(limiter.full_at.len(), 1);
    }
}
