//! A client that cancels calls at random moments.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tonic::Status;

use crate::kit::{client::Client, relay::Relay, rng::Rng};

/// How long a call is assumed to take until one is measured.
const FIRST_ESTIMATE: Duration = Duration::from_millis(20);
/// The resolution of tokio's timers.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// Its own connection, on which most calls are canceled.
pub struct CancellingClient {
    rng: Rng,
    relay: Relay,
    client: Client,
    typical_duration: Duration,
}

impl CancellingClient {
    pub fn new(rng: &mut Rng, server: SocketAddr) -> Self {
        let relay = Relay::to(server.port());
        Self {
            rng: rng.fork(),
            client: Client::at(relay.address()),
            relay,
            typical_duration: FIRST_ESTIMATE,
        }
    }

    /// Makes a call, and cancels two of three; its result, when there is one.
    pub async fn call<T>(
        &mut self,
        account: &str,
        call: impl AsyncFnOnce(Client) -> Result<T, Status>,
    ) -> Option<Result<T, Status>> {
        if !self.rng.one_in(3) {
            return self.cancel(account, call).await;
        }
        let started = Instant::now();
        let sent = call(self.client.with_account(account)).await;
        self.typical_duration = (self.typical_duration * 3 + started.elapsed()) / 4;
        Some(sent)
    }

    /// Makes a call and cancels it at a random moment: its deadline passes, its connection is cut,
    /// or its stream is reset. Its result, when there is one.
    pub async fn cancel<T>(
        &mut self,
        account: &str,
        call: impl AsyncFnOnce(Client) -> Result<T, Status>,
    ) -> Option<Result<T, Status>> {
        let moment = self.random_moment();
        let client = self.client.with_account(account);
        if self.rng.one_in(4) {
            let timeout = format!("{}u", moment.as_micros());
            return Some(call(client.with_metadata("grpc-timeout", &timeout)).await);
        }
        let mut call = Box::pin(call(client));
        tokio::select! {
            biased;
            result = &mut call => return Some(result),
            () = sleep_exactly(moment) => {}
        }
        if !self.rng.one_in(3) {
            return None;
        }
        self.relay.cut();
        let result = call.await;
        self.client = self.client.over_new_connection();
        Some(result)
    }

    /// A moment during a call or shortly after it. It is often near the beginning or the end
    /// of the call, where transactions begin and end.
    fn random_moment(&mut self) -> Duration {
        let typical = self.typical_duration.as_micros() as usize;
        let (earliest, latest) = match self.rng.below(3) {
            0 => (0, typical / 3),
            1 => (0, typical * 4 / 3),
            _ => (typical * 2 / 3, typical * 4 / 3),
        };
        let micros = earliest + self.rng.below((latest - earliest).max(1));
        Duration::from_micros(micros as u64)
    }
}

/// Sleeps more exactly than timers do.
async fn sleep_exactly(duration: Duration) {
    let end = Instant::now() + duration;
    let by_timer = duration.checked_sub(TIMER_RESOLUTION);
    if let Some(by_timer) = by_timer.filter(|by_timer| *by_timer >= TIMER_RESOLUTION) {
        tokio::time::sleep(by_timer).await;
    }
    while Instant::now() < end {
        tokio::task::yield_now().await;
    }
}
