//! A client that cancels calls at random moments.

use std::time::{Duration, Instant};

use expertise::proto::v1::Task;
use tonic::Status;

use crate::{
    expected::{SentWrite, WriteError, Writer, retry_while_unavailable},
    kit::{client::Client, relay::Relay, rng::Rng},
    service::Service,
};

/// How long a call is assumed to take until one is measured.
const FIRST_ESTIMATE: Duration = Duration::from_millis(20);
/// The resolution of tokio's timers.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// Writers and their connection.
pub struct CancellingClient {
    pub writers: Vec<Writer>,
    /// How many writes it cancelled.
    pub cancelled: u64,
    /// How many of its writes were refused.
    pub refused: u64,
    rng: Rng,
    relay: Relay,
    client: Client,
    shared_task: String,
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
    pub fn new(writers: usize, rng: &mut Rng, shared_task: &Task, service: &Service) -> Self {
        let relay = Relay::to(service.address().port());
        let shared = service.client_of_shared_account();
        Self {
            writers: (0..writers).map(|_| Writer::new(rng)).collect(),
            rng: rng.fork(),
            cancelled: 0,
            refused: 0,
            client: Client::at(relay.address()).with_account(shared.account()),
            relay,
            shared_task: shared_task.guid.clone(),
            typical_duration: FIRST_ESTIMATE,
        }
    }

    /// Makes so many calls and cancels most of them. Stops earlier when each writer has an
    /// unanswered write.
    pub async fn call_and_cancel(mut self, calls: u64) -> Self {
        for _ in 0..calls {
            if self.rng.one_in(4) {
                self.cancel_an_export().await;
            }
            let Some((writer, write)) = self.next_write().await else {
                break;
            };
            let client = self.writers[writer].client(&self.client);
            let sent = match self.rng.one_in(3) {
                true => {
                    let started = Instant::now();
                    let sent = write.call.send(&client).await;
                    self.typical_duration = (self.typical_duration * 3 + started.elapsed()) / 4;
                    Some(sent)
                }
                false => {
                    let call = async |client: Client| write.call.send(&client).await;
                    self.cancel(client, call).await
                }
            };
            self.note(writer, write, sent);
        }
        self
    }

    /// Makes so many calls and waits for each.
    pub async fn call(mut self, direct: Client, calls: u64) -> Self {
        self.client = direct;
        for _ in 0..calls {
            if let Some((writer, write)) = self.next_write().await {
                let client = self.writers[writer].client(&self.client);
                let sent = write.call.send(&client).await;
                self.note(writer, write, Some(sent));
            }
        }
        self
    }

    /// A writer without an unanswered write, and its next write.
    async fn next_write(&mut self) -> Option<(usize, SentWrite)> {
        let free = self.writers.iter().enumerate();
        let free = free.filter(|(_, writer)| writer.unanswered.is_none());
        let free: Vec<usize> = free.map(|(index, _)| index).collect();
        let index = *self.rng.try_pick(&free)?;
        let writer = &mut self.writers[index];
        let client = writer.client(&self.client);
        loop {
            let write = retry_while_unavailable!(writer.next_write(&client).await);
            if let Some(write) = write {
                return Some((index, write));
            }
        }
    }

    fn note(&mut self, writer: usize, write: SentWrite, sent: Option<Result<String, Status>>) {
        let writer = &mut self.writers[writer];
        let Some(sent) = sent else {
            self.cancelled += 1;
            writer.unanswered = Some(write);
            return;
        };
        match writer.note(write, sent) {
            Ok(()) => {}
            Err(WriteError::Unknown) => self.cancelled += 1,
            Err(_) => self.refused += 1,
        }
    }

    /// Cancels an export, which reads in a transaction.
    async fn cancel_an_export(&mut self) {
        let guid = self.shared_task.clone();
        let export = async |client: Client| client.export(&guid).await;
        drop(self.cancel(self.client.clone(), export).await);
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
