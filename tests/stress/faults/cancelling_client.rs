//! A client that cancels calls at random moments.

use std::time::{Duration, Instant};

use tonic::Status;

use crate::{
    kit::{client::Client, relay::Relay, rng::Rng},
    service::Service,
};

/// How long a call is assumed to take until one is measured.
const FIRST_ESTIMATE: Duration = Duration::from_millis(20);
/// The resolution of tokio's timers.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// A connection of its own, on which most calls are canceled.
pub struct CancellingClient {
    pub rng: Rng,
    relay: Relay,
    client: Client,
    typical_duration: Duration,
}

/// How a call is cancelled.
enum Cancellation {
    /// Its stream is reset.
    Reset,
    /// Its connection is cut.
    Cut,
    /// Its deadline passes.
    Deadline,
}

impl CancellingClient {
    pub fn new(rng: &mut Rng, service: &Service) -> Self {
        let relay = Relay::to(service.address().port());
        Self {
            rng: rng.fork(),
            client: Client::at(relay.address()),
            relay,
            typical_duration: FIRST_ESTIMATE,
        }
    }

    /// This client with an account.
    pub fn with_account(&self, account: &str) -> Client {
        self.client.with_account(account)
    }

    /// Makes a call, and cancels two of three; its result, when there is one.
    pub async fn call<T>(
        &mut self,
        account: &str,
        call: impl AsyncFnOnce(Client) -> Result<T, Status>,
    ) -> Option<Result<T, Status>> {
        let client = self.with_account(account);
        if !self.rng.one_in(3) {
            return self.cancel(client, call).await;
        }
        let started = Instant::now();
        let sent = call(client).await;
        self.typical_duration = (self.typical_duration * 3 + started.elapsed()) / 4;
        Some(sent)
    }

    /// Cancels an export, which reads in a transaction.
    pub async fn cancel_an_export(&mut self, account: &str, task: &str) {
        let client = self.with_account(account);
        let export = async |client: Client| client.export(task).await;
        drop(self.cancel(client, export).await);
    }

    /// Makes a call and cancels it at a random moment; its result, when there is one.
    async fn cancel<T>(
        &mut self,
        client: Client,
        call: impl AsyncFnOnce(Client) -> Result<T, Status>,
    ) -> Option<Result<T, Status>> {
        let moment = self.random_moment();
        let how = match self.rng.below(4) {
            0 => Cancellation::Cut,
            1 => Cancellation::Deadline,
            _ => Cancellation::Reset,
        };
        let client = match how {
            Cancellation::Deadline => {
                let timeout = format!("{}u", moment.as_micros());
                client.with_metadata("grpc-timeout", &timeout)
            }
            Cancellation::Reset | Cancellation::Cut => client,
        };
        let mut call = Box::pin(call(client));
        if !matches!(how, Cancellation::Deadline) {
            tokio::select! {
                biased;
                result = &mut call => return Some(result),
                () = sleep_exactly(moment) => {}
            }
        }
        match how {
            Cancellation::Reset => None,
            Cancellation::Cut => {
                self.relay.cut();
                let result = call.await;
                self.client = self.client.over_new_connection();
                Some(result)
            }
            Cancellation::Deadline => Some(call.await),
        }
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
