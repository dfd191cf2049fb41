//! Limits how fast an address may open connections. A connection costs more than most
//! calls, and a peer whose connection is closed for a flood would reconnect at once.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use tokio::time::Instant;

/// Connections that an address may open at once.
const BURST: u32 = 500;
/// The interval between connections beyond the burst.
const INTERVAL: Duration = Duration::from_millis(20);
/// From this many addresses on, those with a full burst are forgotten.
const MAX_ADDRESSES: usize = 4096;
/// The longest that a connection is delayed. One that would wait longer is refused.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// The connection would be delayed by more than [`MAX_DELAY`].
#[derive(Debug, PartialEq, Eq)]
pub struct RateLimited;

/// A token bucket for each address.
#[derive(Default)]
pub struct ConnectRateLimiter {
    /// When the bucket of an address will be full again.
    full_at: HashMap<IpAddr, Instant>,
}

impl ConnectRateLimiter {
    /// Reserves the address's next slot; returns the wait until it.
    pub fn reserve_slot(&mut self, address: IpAddr, now: Instant) -> Result<Duration, RateLimited> {
        if self.full_at.len() >= MAX_ADDRESSES {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let full_at = self.full_at.entry(address).or_insert(now);
        let next = (*full_at).max(now) + INTERVAL;
        let delay = next.saturating_duration_since(now + INTERVAL * BURST);
        if delay > MAX_DELAY {
            return Err(RateLimited);
        }
        *full_at = next;
        Ok(delay)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn delays(limiter: &mut ConnectRateLimiter, connections: u32, now: Instant) -> Vec<Duration> {
        let delay = |_| limiter.reserve_slot(ADDRESS, now).expect("not refused");
        (0..connections).map(delay).collect()
    }

    #[test]
    fn a_burst_is_not_delayed_and_later_connections_come_at_intervals() {
        let (mut limiter, now) = (ConnectRateLimiter::default(), Instant::now());
        let burst = delays(&mut limiter, BURST, now);
        assert!(burst.iter().all(Duration::is_zero));
        assert_eq!(
            delays(&mut limiter, 3, now),
            [INTERVAL, INTERVAL * 2, INTERVAL * 3]
        );
    }

    #[test]
    fn after_a_pause_there_is_a_burst_again() {
        let (mut limiter, now) = (ConnectRateLimiter::default(), Instant::now());
        delays(&mut limiter, BURST, now);
        let later = now + INTERVAL * BURST;
        let again = delays(&mut limiter, BURST, later);
        assert!(again.iter().all(Duration::is_zero));
    }

    #[test]
    fn an_address_does_not_delay_another() {
        let (mut limiter, now) = (ConnectRateLimiter::default(), Instant::now());
        delays(&mut limiter, BURST + 1, now);
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(limiter.reserve_slot(other, now), Ok(Duration::ZERO));
    }

    #[test]
    fn a_connection_with_too_long_a_delay_is_refused() {
        let (mut limiter, now) = (ConnectRateLimiter::default(), Instant::now());
        let all = BURST + u32::try_from(MAX_DELAY.as_millis() / INTERVAL.as_millis()).expect("few");
        delays(&mut limiter, all, now);
        assert_eq!(limiter.reserve_slot(ADDRESS, now), Err(RateLimited));
    }

    #[test]
    fn addresses_with_a_full_burst_are_forgotten() {
        let (mut limiter, now) = (ConnectRateLimiter::default(), Instant::now());
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
