//! What the service must hold: the state that the acknowledged writes make.

use std::collections::BTreeMap;

use expertise::proto::v1::*;

use super::intent::Intent;

/// Resources that one writer alone works on. The names of all of them begin with
/// the shelf's own word, so that whatever is found can be told to be its.
///
/// Ids that the service has made and nobody was told yet are placeholders: `?1`
/// and so on.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    /// The word that every name and title begins with.
    pub word: String,
    pub guides: Vec<Guide>,
    pub roles: Vec<Role>,
    /// A write that was sent and not answered: all of it is there, or nothing.
    pub open: Option<Intent>,
    /// The ids that placeholders turned out to be.
    pub known: BTreeMap<String, String>,
    made: u32,
}

/// A task and its steps.
#[derive(Clone, Debug)]
pub struct Guide {
    /// Without what the system sets, and without its steps.
    pub task: Task,
    pub version: Version,
    /// In their order.
    pub steps: Vec<Piece>,
    /// Other shelves have steps in it, and none of them the task itself. The
    /// steps here are those of the shelf, in the order they have among
    /// themselves.
    pub shared: bool,
}

/// A step.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Without what the system sets.
    pub step: Step,
    pub version: Version,
}

/// What is known of a resource's etag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// Nothing yet.
    Unknown,
    /// This one.
    Is(String),
    /// Another than this, as the resource has changed since.
    Was(String),
}

impl Version {
    /// Whether an etag is one that this version allows.
    pub fn allows(&self, etag: &str) -> bool {
        match self {
            Self::Unknown => true,
            Self::Is(known) => known == etag,
            Self::Was(old) => old != etag,
        }
    }

    /// The etag, where it is known.
    pub fn etag(&self) -> Option<&str> {
        match self {
            Self::Is(known) => Some(known),
            Self::Unknown | Self::Was(_) => None,
        }
    }

    fn move_on(&mut self) {
        if let Self::Is(known) = self {
            *self = Self::Was(std::mem::take(known));
        }
    }
}

impl Guide {
    /// Whether a question of another task manages it.
    pub fn is_managed(&self) -> bool {
        self.task.r#type() == TaskType::Linked
    }

    /// The ids of its steps.
    pub fn order(&self) -> Vec<&str> {
        let pieces = self.steps.iter();
        pieces.map(|piece| piece.step.guid.as_str()).collect()
    }
}

/// Whether an id is a placeholder.
pub fn is_open(id: &str) -> bool {
    id.starts_with('?')
}

/// The values of a step's question that manage tasks.
pub fn managing(step: &Step) -> impl Iterator<Item = (usize, &FeedbackValue)> {
    let linked = step.feedback_config.iter();
    let linked = linked.filter(|config| config.linked == Some(true));
    linked.flat_map(|config| config.values.iter().enumerate())
}

impl Shelf {
    /// An empty one.
    pub fn new(word: String) -> Self {
        Self {
            word,
            ..Self::default()
        }
    }

    /// One that works on a task together with others.
    pub fn on(word: String, shared: &Task) -> Self {
        let guide = Guide {
            task: shared.clone(),
            version: Version::Unknown,
            steps: Vec::new(),
            shared: true,
        };
        Self {
            guides: vec![guide],
            ..Self::new(word)
        }
    }

    /// A name that nothing else has.
    pub fn name(&mut self) -> String {
        self.made += 1;
        format!("{} {}", self.word, self.made)
    }

    /// An id to be found out.
    pub fn placeholder(&mut self) -> String {
        self.made += 1;
        format!("?{}", self.made)
    }

    /// The task of this id.
    pub fn guide(&mut self, guid: &str) -> &mut Guide {
        let mut guides = self.guides.iter_mut();
        let found = guides.find(|guide| guide.task.guid == guid);
        found.expect("a task of the shelf")
    }

    /// The step of this id.
    pub fn piece(&mut self, guid: &str) -> &mut Piece {
        let mut pieces = self.guides.iter_mut().flat_map(|guide| &mut guide.steps);
        let found = pieces.find(|piece| piece.step.guid == guid);
        found.expect("a step of the shelf")
    }

    /// Puts the id in place of its placeholder everywhere.
    pub fn bind(&mut self, placeholder: &str, id: &str) {
        if !is_open(placeholder) || is_open(id) {
            return;
        }
        let bind = |slot: &mut String| {
            if slot == placeholder {
                id.clone_into(slot);
            }
        };
        for guide in &mut self.guides {
            bind(&mut guide.task.guid);
            bind(&mut guide.task.parent_guid);
            for Piece { step, .. } in &mut guide.steps {
                bind(&mut step.guid);
                bind(&mut step.task);
                bind(&mut step.subtask_id);
                bind(&mut step.link);
                let values = step.feedback_config.iter_mut();
                for value in values.flat_map(|config| &mut config.values) {
                    bind(&mut value.link);
                }
            }
        }
        self.known.insert(placeholder.to_owned(), id.to_owned());
    }

    /// Lets managed tasks, wiring steps and titles of subtask steps follow what
    /// they follow.
    pub fn follow(&mut self) {
        let mut managed = BTreeMap::new();
        for guide in &self.guides {
            for piece in &guide.steps {
                for (idx, value) in managing(&piece.step) {
                    let found = (guide.task.guid.clone(), idx as i32, value.value.clone());
                    managed.insert(value.link.clone(), found);
                }
            }
        }
        for Guide { task, shared, .. } in &mut self.guides {
            if *shared {
                continue;
            }
            let by = managed.get(&task.guid);
            task.set_type(by.map_or(TaskType::Standard, |_| TaskType::Linked));
            let (parent, idx, name) = by.cloned().unwrap_or_default();
            (task.parent_guid, task.idx) = (parent, idx);
            if by.is_some() {
                task.name = name;
            }
        }
        let names: BTreeMap<String, String> = self
            .guides
            .iter()
            .map(|guide| (guide.task.guid.clone(), guide.task.name.clone()))
            .collect();
        for Piece { step, .. } in self.guides.iter_mut().flat_map(|guide| &mut guide.steps) {
            if !managed.contains_key(&step.link) {
                step.link.clear();
            }
            if let Some(name) = names.get(&step.subtask_id) {
                step.title.clone_from(name);
            }
        }
    }

    /// Moves the versions of all that is no longer as it was before.
    pub fn move_on(&mut self, before: &Self) {
        for guide in &mut self.guides {
            let mut old = before.guides.iter();
            let Some(old) = old.find(|old| old.task.guid == guide.task.guid) else {
                continue;
            };
            if old.task != guide.task || old.order() != guide.order() {
                guide.version.move_on();
            }
            for piece in &mut guide.steps {
                let mut old = old.steps.iter();
                let old = old.find(|old| old.step.guid == piece.step.guid);
                if old.is_some_and(|old| old.step != piece.step) {
                    piece.version.move_on();
                }
            }
        }
    }
}
