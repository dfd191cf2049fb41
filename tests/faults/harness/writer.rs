//! Those who write while the faults happen, and what each of them was told.

use std::sync::atomic::{AtomicBool, Ordering};

use expertise::proto::v1::Task;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    agree::Fate,
    caller::Caller,
    choose,
    dice::Dice,
    intent::{Answer, Intent},
    patience::patiently,
    seen::{self, Seen, SeenShelf},
    shelf::{Shelf, is_open, managing},
};

/// Creates and imports that were answered, of which some are repeated later.
const REMEMBERED: usize = 8;

/// Sends one write after the other. It alone works on its shelves, so that it
/// knows what must be there; that one of them is in a task of everybody makes
/// writers meet.
pub struct Writer {
    name: String,
    pub dice: Dice,
    pub shelves: Vec<Shelf>,
    /// The task that all share.
    pub shared: Task,
    /// How many writes were acknowledged.
    pub acknowledged: u64,
    /// What was answered to creates and imports, with the id of what they made.
    answered: Vec<(Intent, String)>,
}

/// What an error says of its write.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was not done.
    Refused,
    /// It was not done, as the version is another already.
    Overtaken,
    /// What it is about is not there.
    Missing,
    /// It may have been done.
    Unknown,
}

/// Sorts an error.
///
/// # Panics
/// When it is one that no fault excuses.
pub fn verdict(status: &Status) -> Verdict {
    let info = status.get_details_error_info();
    match info.as_ref().map(|info| info.reason.as_str()) {
        Some("WRITE_CONFLICT" | "OVERLOADED") => Verdict::Refused,
        Some("ETAG_MISMATCH") => Verdict::Overtaken,
        Some("TASK_NOT_FOUND" | "STEP_NOT_FOUND" | "ROLE_NOT_FOUND") => Verdict::Missing,
        // The database went away, perhaps in the middle of a COMMIT, or the time
        // was over.
        Some("STORE_UNAVAILABLE" | "DEADLINE_EXCEEDED") => Verdict::Unknown,
        // The connection broke.
        None if status.code() != Code::Ok => Verdict::Unknown,
        _ => panic!("no fault excuses this: {status:?}"),
    }
}

impl Writer {
    /// One with as many shelves, and one more in the task that all share.
    pub fn new(number: usize, shelves: usize, shared: &Task, dice: Dice) -> Self {
        let mut writer = Self {
            name: format!("w{number}"),
            dice,
            shelves: Vec::new(),
            shared: shared.clone(),
            acknowledged: 0,
            answered: Vec::new(),
        };
        for _ in 0..shelves {
            writer.add_shelf();
        }
        writer.add_shared_shelf();
        writer
    }

    /// Adds an empty shelf.
    fn add_shelf(&mut self) {
        let word = format!("{}-{}", self.name, self.shelves.len());
        self.shelves.push(Shelf::new(word));
    }

    /// Adds one in the task that all share.
    fn add_shared_shelf(&mut self) {
        let word = format!("{}-{}", self.name, self.shelves.len());
        self.shelves.push(Shelf::on(word, &self.shared));
    }

    /// Writes until told to stop, or until a write is not answered.
    pub async fn write(&mut self, caller: &Caller, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let shelf = self.dice.below(self.shelves.len() as u64) as usize;
            let next = choose::next(&mut self.shelves[shelf], &mut self.dice, caller).await;
            let sent = match next {
                Ok(intent) => self.send(caller, shelf, intent).await,
                Err(status) => Err(status),
            };
            match sent.map_err(|status| verdict(&status)) {
                Ok(()) | Err(Verdict::Refused) => {}
                Err(Verdict::Unknown) => return,
                Err(other) => panic!("{other:?}: nobody else writes here"),
            }
        }
    }

    /// Sends a write and notes what became of it.
    pub async fn send(
        &mut self,
        caller: &Caller,
        shelf: usize,
        intent: Intent,
    ) -> Result<(), Status> {
        let sent = intent.send(caller).await;
        self.note(caller, shelf, intent, sent).await
    }

    /// Notes how a write that was sent ended.
    pub async fn note(
        &mut self,
        caller: &Caller,
        shelf: usize,
        intent: Intent,
        sent: Result<Answer, Status>,
    ) -> Result<(), Status> {
        match sent {
            Ok(answer) => {
                self.acknowledge(shelf, intent, answer);
                self.look(caller, shelf).await
            }
            Err(status) => {
                if verdict(&status) == Verdict::Unknown {
                    self.shelves[shelf].open = Some(intent);
                }
                Err(status)
            }
        }
    }

    /// A write to one of the shelves that no write is open on.
    pub async fn choose(&mut self, caller: &Caller) -> Option<(usize, Intent)> {
        let shelves = self.shelves.iter().enumerate();
        let free = shelves.filter(|(_, shelf)| shelf.open.is_none());
        let free: Vec<usize> = free.map(|(index, _)| index).collect();
        let shelf = *self.dice.pick(&free)?;
        let (place, dice) = (&mut self.shelves[shelf], &mut self.dice);
        let intent = patiently!(choose::next(place, dice, caller).await);
        Some((shelf, intent))
    }

    /// Notes that the write was answered.
    fn acknowledge(&mut self, shelf: usize, intent: Intent, answer: Answer) {
        let id = self.shelves[shelf].apply(&intent);
        let made = match &answer {
            Answer::Task(task) => task.guid.clone(),
            Answer::Step(step) => step.guid.clone(),
            Answer::Role(_) | Answer::Empty => String::new(),
        };
        self.shelves[shelf].learn(&id, answer);
        self.acknowledged += 1;
        if intent.has_request_id() {
            if self.answered.len() == REMEMBERED {
                self.answered.remove(0);
            }
            self.answered.push((intent, made));
        }
    }

    /// Reads a shelf in which there are ids that the writer was not told; it must
    /// find what it wrote.
    pub async fn look(&mut self, caller: &Caller, shelf: usize) -> Result<(), Status> {
        let shelf = &mut self.shelves[shelf];
        let guides = shelf.guides.iter();
        let untold = guides.filter(|guide| is_open(&guide.task.guid)).count();
        if untold == 0 {
            return Ok(());
        }
        let guides = shelf.guides.iter().map(|guide| guide.task.guid.clone());
        let mut ids: Vec<String> = guides.filter(|guid| !is_open(guid)).collect();
        let mut holdings = Vec::new();
        while let Some(guid) = ids.pop() {
            let holding = seen::holding(caller, &guid).await?;
            let managed = holding.1.iter().flat_map(managing);
            ids.extend(managed.map(|(_, value)| value.link.clone()));
            holdings.push(holding);
            // A managed task that was known is met twice.
            holdings.sort_by(|a, b| a.0.guid.cmp(&b.0.guid));
            holdings.dedup_by(|a, b| a.0.guid == b.0.guid);
        }
        let seen = SeenShelf {
            holdings: holdings.iter().collect(),
            shared: Vec::new(),
            roles: shelf.roles.iter().collect(),
        };
        let agreed = shelf.agreed(&seen);
        let why = |why| panic!("shelf {} right after a write: {why}", shelf.word);
        *shelf = agreed.unwrap_or_else(why);
        Ok(())
    }

    /// Repeats some of the writes with a request id: those that were not answered
    /// are done now, unless they are done already; none is done twice.
    pub async fn repeat(&mut self, caller: &Caller, decided: Vec<Decided>) -> u64 {
        let mut repeated = 0;
        for Decided {
            shelf,
            intent,
            fate,
        } in decided
        {
            if !intent.has_request_id() || self.dice.once_in(4) {
                continue;
            }
            let answer = patiently!(intent.send(caller).await);
            match fate {
                Fate::Done(id) => assert_eq!(made_by(&answer), id, "{intent:?}"),
                Fate::NotDone => {
                    self.acknowledge(shelf, intent, answer);
                    patiently!(self.look(caller, shelf).await);
                }
            }
            repeated += 1;
        }
        if let Some((intent, id)) = self.dice.pick(&self.answered) {
            let answer = patiently!(intent.send(caller).await);
            assert_eq!(made_by(&answer), *id, "{intent:?}");
            repeated += 1;
        }
        repeated
    }
}

fn made_by(answer: &Answer) -> String {
    match answer {
        Answer::Task(task) => task.guid.clone(),
        Answer::Step(step) => step.guid.clone(),
        Answer::Role(_) | Answer::Empty => panic!("no request id"),
    }
}

/// A write that was not answered, and what became of it.
pub struct Decided {
    pub shelf: usize,
    pub intent: Intent,
    pub fate: Fate,
}

/// Asserts that everything acknowledged is there, every write that was not
/// answered whole or not at all, and nothing else. What became of the latter,
/// writer by writer.
pub fn audit<'a>(
    writers: impl IntoIterator<Item = &'a mut Writer>,
    shared: &Task,
    seen: &Seen,
) -> Vec<Vec<Decided>> {
    seen.is_consistent();
    let mut found = seen.by_shelf(std::slice::from_ref(&shared.guid));
    let decided = writers.into_iter().map(|writer| {
        let mut decided = Vec::new();
        for (index, shelf) in writer.shelves.iter_mut().enumerate() {
            let here = found.remove(shelf.word.as_str()).unwrap_or_default();
            let intent = shelf.open.clone();
            if let (Some(fate), Some(intent)) = (shelf.settle(&here), intent) {
                decided.push(Decided {
                    shelf: index,
                    intent,
                    fate,
                });
            }
        }
        decided
    });
    let decided = decided.collect();
    assert!(found.is_empty(), "nobody's: {:?}", found.keys());
    decided
}
