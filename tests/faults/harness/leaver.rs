//! Callers that go away in the middle of a call.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use expertise::proto::v1::ExportTaskRequest;
use tonic::Status;

use super::{
    caller::Caller,
    dice::Dice,
    intent::{Answer, Intent},
    patience::patiently,
    relay::Relay,
    writer::{Decided, Verdict, Writer, verdict},
};

/// What a call takes before it is known.
const TYPICAL: Duration = Duration::from_millis(20);
/// How long a tick of the timers is.
const TICK: Duration = Duration::from_millis(1);

/// A writer and its connection.
pub struct Leaver {
    pub writer: Writer,
    /// How many calls it left.
    pub left: u64,
    /// How many of its writes were refused.
    pub refused: u64,
    /// How many of its calls were repeated.
    pub repeated: u64,
    dice: Dice,
    relay: Relay,
    caller: Caller,
    typical: Duration,
}

/// What somebody does at the moment that they go away.
enum Leave {
    /// Resets the stream of the call.
    Reset,
    /// Cuts the connection.
    Cut,
    /// Nothing: the call carries its deadline.
    Deadline,
}

impl Leaver {
    /// One that calls this server.
    pub fn new(mut writer: Writer, server: SocketAddr) -> Self {
        let relay = Relay::before(server, Duration::ZERO);
        Self {
            dice: writer.dice.hand_on(),
            writer,
            left: 0,
            refused: 0,
            repeated: 0,
            caller: Caller::at(relay.address()),
            relay,
            typical: TYPICAL,
        }
    }

    /// Makes calls and leaves most of them, so many at most, while there is a
    /// shelf that no call was left on.
    pub async fn go(mut self, calls: u64) -> Self {
        for _ in 0..calls {
            if self.dice.once_in(4) {
                self.leave_a_read().await;
            }
            let Some((shelf, intent)) = self.writer.choose(&self.caller).await else {
                break;
            };
            let sent = match self.dice.once_in(3) {
                true => {
                    let begun = Instant::now();
                    let sent = intent.send(&self.caller).await;
                    self.typical = (self.typical * 3 + begun.elapsed()) / 4;
                    Some(sent)
                }
                false => self.leave(async |caller| intent.send(&caller).await).await,
            };
            self.note(shelf, intent, sent).await;
        }
        self
    }

    /// Makes so many calls and waits for each.
    pub async fn stay(mut self, caller: Caller, calls: u64) -> Self {
        self.caller = caller;
        for _ in 0..calls {
            if let Some((shelf, intent)) = self.writer.choose(&self.caller).await {
                let sent = intent.send(&self.caller).await;
                self.note(shelf, intent, Some(sent)).await;
            }
        }
        self
    }

    /// Repeats some of its calls, in peace.
    pub async fn repeat(mut self, caller: Caller, decided: Vec<Decided>) -> Self {
        self.repeated += self.writer.repeat(&caller, decided).await;
        self
    }

    async fn note(&mut self, shelf: usize, intent: Intent, sent: Option<Result<Answer, Status>>) {
        let Some(sent) = sent else {
            self.left += 1;
            self.writer.shelves[shelf].open = Some(intent);
            return;
        };
        let noted = self.writer.note(&self.caller, shelf, intent, sent).await;
        match noted.map_err(|status| verdict(&status)) {
            Ok(()) => {}
            Err(Verdict::Refused) => self.refused += 1,
            Err(Verdict::Unknown) if self.writer.shelves[shelf].open.is_some() => self.left += 1,
            // It was answered, but what it made could not be read yet.
            Err(Verdict::Unknown) => {
                patiently!(self.writer.look(&self.caller, shelf).await);
            }
            Err(other) => panic!("{other:?}: nobody else writes here"),
        }
    }

    /// An export, which reads in a transaction.
    async fn leave_a_read(&mut self) {
        let guid = self.writer.shared.guid.clone();
        let export = async |caller: Caller| {
            let request = ExportTaskRequest { guid };
            caller.tasks().export_task(request).await
        };
        drop(self.leave(export).await);
    }

    /// Makes a call and goes away at some moment of it; the answer, when it was
    /// there before.
    async fn leave<T>(
        &mut self,
        call: impl AsyncFnOnce(Caller) -> Result<T, Status>,
    ) -> Option<Result<T, Status>> {
        let moment = self.moment();
        let how = match self.dice.below(4) {
            0 => Leave::Cut,
            1 => Leave::Deadline,
            _ => Leave::Reset,
        };
        let caller = match how {
            Leave::Deadline => self.caller.within(moment),
            Leave::Reset | Leave::Cut => self.caller.clone(),
        };
        let mut call = Box::pin(call(caller));
        if !matches!(how, Leave::Deadline) {
            tokio::select! {
                biased;
                answer = &mut call => return Some(answer),
                () = pause(moment) => {}
            }
        }
        match how {
            Leave::Reset => None,
            Leave::Cut => {
                self.relay.cut();
                let answer = call.await;
                self.caller = Caller::at(self.relay.address());
                Some(answer)
            }
            Leave::Deadline => Some(call.await),
        }
    }

    /// Sometime in a call and a bit more, and more often near its ends, where
    /// transactions begin and end.
    fn moment(&mut self) -> Duration {
        let typical = self.typical.as_micros() as u64;
        let (earliest, latest) = match self.dice.below(3) {
            0 => (0, typical / 3),
            1 => (0, typical * 4 / 3),
            _ => (typical * 2 / 3, typical * 4 / 3),
        };
        Duration::from_micros(earliest + self.dice.below((latest - earliest).max(1)))
    }
}

/// Sleeps more exactly than timers do.
async fn pause(length: Duration) {
    let end = Instant::now() + length;
    if let Some(long) = length.checked_sub(TICK).filter(|long| *long >= TICK) {
        tokio::time::sleep(long).await;
    }
    while Instant::now() < end {
        tokio::task::yield_now().await;
    }
}
