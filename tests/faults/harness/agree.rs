//! Whether what is there is what must be there.

use std::fmt::Debug;

use expertise::proto::v1::*;

use super::{
    intent::Answer,
    seen::SeenShelf,
    shelf::{Guide, Piece, Shelf, Version, is_open},
};

/// What became of a write that was not answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// All of it is there: this is the id of what it made or changed.
    Done(String),
    /// Nothing of it is there.
    NotDone,
}

impl Shelf {
    /// Decides the open write by what is there, and asserts that all else is as
    /// it must be. Afterwards ids and versions are those that are there.
    ///
    /// # Panics
    /// When neither all of the open write nor nothing of it is there, or
    /// anything else is otherwise than it must be.
    pub fn settle(&mut self, seen: &SeenShelf) -> Option<Fate> {
        let without = self.agreed(seen);
        let Some(intent) = self.open.clone() else {
            let why = |why| panic!("shelf {}: {why}", self.word);
            *self = without.unwrap_or_else(why);
            return None;
        };
        let mut with = self.clone();
        let id = with.apply(&intent);
        let (mut settled, fate) = match (without, with.agreed(seen)) {
            (Ok(settled), _) => (settled, Fate::NotDone),
            (Err(_), Ok(settled)) => {
                let id = settled.known.get(&id).cloned().unwrap_or(id);
                (settled, Fate::Done(id))
            }
            (Err(without), Err(with)) => panic!(
                "shelf {}: neither nothing nor all of {intent:?}\n\
                 were it nothing: {without}\nwere it all: {with}",
                self.word
            ),
        };
        settled.open = None;
        *self = settled;
        Some(fate)
    }

    /// Takes in what the answer says of the resource with this id.
    pub fn learn(&mut self, id: &str, answer: Answer) {
        match answer {
            Answer::Task(task) => {
                let order = task.steps.clone();
                self.bind(id, &task.guid);
                let guide = self.guide(&task.guid);
                assert_eq!(order.len(), guide.steps.len(), "steps of {task:?}");
                let pairs: Vec<(String, String)> = guide
                    .steps
                    .iter()
                    .map(|piece| piece.step.guid.clone())
                    .zip(order)
                    .collect();
                for (placeholder, guid) in pairs {
                    self.bind(&placeholder, &guid);
                }
                let guide = self.guide(&task.guid);
                guide.agrees(&task).unwrap_or_else(|why| panic!("{why}"));
                guide.version = Version::Is(task.etag);
            }
            Answer::Step(step) => {
                self.bind(id, &step.guid);
                let piece = self.piece(&step.guid);
                piece.agrees(&step).unwrap_or_else(|why| panic!("{why}"));
                piece.version = Version::Is(step.etag);
            }
            Answer::Role(role) => {
                let known = self.roles.iter_mut().find(|known| known.name == role.name);
                *known.expect("a role of the shelf") = role;
            }
            Answer::Empty => {}
        }
    }

    /// This state with the ids and versions that are there; why not, when
    /// something is otherwise.
    pub fn agreed(&self, seen: &SeenShelf) -> Result<Self, String> {
        let mut agreed = self.clone();
        let own = self.guides.iter().filter(|guide| !guide.shared);
        ensure("how many tasks", &own.count(), &seen.holdings.len())?;
        // Ids first, as tasks refer to each other.
        for guide in &self.guides {
            let found = Found::of(guide, seen)?;
            if let Some(task) = found.task {
                agreed.bind(&guide.task.guid, &task.guid);
            }
            let what = format!("how many steps of {}", guide.task.name);
            ensure(&what, &guide.steps.len(), &found.steps.len())?;
            for (piece, step) in guide.steps.iter().zip(found.steps) {
                agreed.bind(&piece.step.guid, &step.guid);
            }
        }
        for guide in &mut agreed.guides {
            let found = Found::of(guide, seen)?;
            if let Some(task) = found.task {
                guide.agrees(task)?;
                guide.version = Version::Is(task.etag.clone());
            }
            for (piece, step) in guide.steps.iter_mut().zip(found.steps) {
                piece.agrees(step)?;
                piece.version = Version::Is(step.etag.clone());
            }
        }
        agreed.agree_on_roles(seen)?;
        Ok(agreed)
    }

    fn agree_on_roles(&mut self, seen: &SeenShelf) -> Result<(), String> {
        ensure("how many roles", &self.roles.len(), &seen.roles.len())?;
        for role in &mut self.roles {
            let mut roles = seen.roles.iter();
            let found = roles.find(|seen| seen.name == role.name);
            let found = found.ok_or_else(|| format!("{role:?} is missing"))?;
            ensure("a role", &true, &(role.id == 0 || role.id == found.id))?;
            role.id = found.id;
        }
        Ok(())
    }
}

/// What is there of a task.
struct Found<'a> {
    /// `None` for one that shelves share.
    task: Option<&'a Task>,
    steps: Vec<&'a Step>,
}

impl<'a> Found<'a> {
    fn of(guide: &Guide, seen: &SeenShelf<'a>) -> Result<Self, String> {
        if guide.shared {
            return Ok(Self {
                task: None,
                steps: seen.shared.clone(),
            });
        }
        let known = !is_open(&guide.task.guid);
        let is_it = |task: &Task| match known {
            true => task.guid == guide.task.guid,
            false => task.name == guide.task.name,
        };
        let (task, steps) = *seen
            .holdings
            .iter()
            .find(|(task, _)| is_it(task))
            .ok_or_else(|| format!("the task {} is missing", guide.task.name))?;
        Ok(Self {
            task: Some(task),
            steps: steps.iter().collect(),
        })
    }
}

impl Guide {
    fn agrees(&self, task: &Task) -> Result<(), String> {
        let mut expected = self.task.clone();
        expected.r#type = Some(expected.r#type().into());
        let settled = Task {
            steps: Vec::new(),
            etag: String::new(),
            account_id: String::new(),
            dirty_record: false,
            created_ts: None,
            modified_ts: None,
            ..task.clone()
        };
        ensure("a task", &expected, &settled)?;
        ensure_version(&task.guid, &self.version, &task.etag)
    }
}

impl Piece {
    fn agrees(&self, step: &Step) -> Result<(), String> {
        let settled = Step {
            etag: String::new(),
            account_id: String::new(),
            dirty_record: false,
            created_ts: None,
            modified_ts: None,
            ..step.clone()
        };
        ensure("a step", &self.step, &settled)?;
        ensure_version(&step.guid, &self.version, &step.etag)
    }
}

fn ensure<T: PartialEq + Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    match expected == found {
        true => Ok(()),
        false => Err(format!("{what}: expected {expected:?}, found {found:?}")),
    }
}

fn ensure_version(guid: &str, version: &Version, etag: &str) -> Result<(), String> {
    match version.allows(etag) {
        true => Ok(()),
        false => Err(format!("the etag of {guid}: {version:?}, found {etag}")),
    }
}
