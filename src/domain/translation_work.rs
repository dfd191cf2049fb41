//! Automatic translation: the work to do, and its results.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    feedback::Feedback,
    ids::{StepId, TaskId},
    json::Instruction,
    sha256::Sha256,
    step::{Step, StepContent},
    text::Body,
    translation::{Language, StepTranslation, TaskTranslation},
};

pub const MAX_ITEMS_WRITTEN: usize = 100;

/// A cryptographic digest of source texts: different texts have different digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDigest(pub [u8; 16]);

impl SourceDigest {
    fn from_parts<'a>(parts: impl IntoIterator<Item = Option<&'a [u8]>>) -> Self {
        let mut hash = Sha256::default();
        for part in parts {
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            hash.update(length.to_be_bytes());
            hash.update(part.unwrap_or_default());
        }
        Self(hash.finish())
    }

    pub fn for_task(name: &str) -> Self {
        Self::from_parts([Some(b"task".as_slice()), Some(name.as_bytes())])
    }

    /// The digest of a step's texts, from its title and [`SourceDigest::for_content`]. The title of
    /// a subtask step can change without its content being read.
    pub fn for_step(title: &str, content: SourceDigest) -> Self {
        Self::from_parts([
            Some(b"step".as_slice()),
            Some(title.as_bytes()),
            Some(&content.0),
        ])
    }

    pub fn for_step_content(step: &Step) -> Self {
        Self::for_content(&step.content, step.kind.feedback())
    }

    /// The digest of a step's texts without its title.
    pub fn for_content(content: &StepContent, feedback: Option<&Feedback>) -> Self {
        let body = content.body.as_ref().map(|body| body.as_str().as_bytes());
        let instructions: Vec<Vec<u8>> = content
            .instructions
            .iter()
            .map(|Instruction(members)| serde_json::to_vec(members).unwrap_or_default())
            .collect();
        let question = feedback.into_iter().flat_map(|feedback| {
            let values = feedback.values.iter();
            let texts = values.flat_map(|value| [value.key.as_str(), value.value.as_str()]);
            std::iter::once(feedback.name.as_str()).chain(texts)
        });
        let parts = [body, None]
            .into_iter()
            .chain(instructions.iter().map(|json| Some(json.as_slice())))
            .chain([None])
            .chain(question.map(|text| Some(text.as_bytes())));
        Self::from_parts(parts)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceId {
    Task(TaskId),
    Step(StepId),
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => write!(f, "task {id}"),
            Self::Step(id) => write!(f, "step {id}"),
        }
    }
}

/// With the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationState {
    Missing = 1,
    /// Its source has changed since it was translated, and the translation is not locked.
    Outdated = 2,
}

#[derive(Clone, Debug)]
pub enum SourceTexts {
    Task {
        name: String,
    },
    Step {
        title: String,
        body: Option<Body>,
        instructions: Vec<Instruction>,
        feedback: Option<Feedback>,
    },
}

#[derive(Clone, Debug)]
pub struct TranslationWork {
    pub resource: ResourceId,
    pub language: Language,
    pub state: TranslationState,
    pub source: SourceTexts,
    pub digest: SourceDigest,
}

#[derive(Clone, Debug)]
pub struct TranslationWorkFilter {
    /// The languages, sorted, without duplicates; at least one.
    pub languages: Vec<Language>,
    pub task: Option<TaskId>,
}

/// The position in a list of work, which has tasks by id, then steps by id, and for each
/// its languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationWorkCursor {
    pub steps: bool,
    pub guid: Uuid,
    /// The number of languages that were already listed for it.
    pub languages: usize,
}

impl TranslationWorkCursor {
    pub const START: Self = Self {
        steps: false,
        guid: Uuid::nil(),
        languages: 0,
    };
}

#[derive(Clone, Debug)]
pub struct TranslationWorkPage {
    pub items: Vec<(TranslationWork, TranslationWorkCursor)>,
    /// Where the next page starts; `None` at the end. A page before the end may be short or empty,
    /// because a call examines a limited number of resources.
    pub next: Option<TranslationWorkCursor>,
}

#[derive(Clone, Debug)]
pub struct AutomaticTranslation {
    pub guid: Uuid,
    pub language: Language,
    /// The texts of a task's translation.
    pub task: TaskTranslation,
    /// The texts of a step's translation.
    pub step: StepTranslation,
    /// The digest of the source texts; `None` if the caller sent something else.
    pub digest: Option<SourceDigest>,
}

impl AutomaticTranslation {
    pub fn has_task_text(&self) -> bool {
        self.task.name.is_some()
    }

    pub fn has_step_text(&self) -> bool {
        self.step != StepTranslation::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationOutcome {
    Written(ResourceId),
    /// Not written, because the stored translation is locked.
    Locked,
    /// Not written, because the source has changed.
    Stale,
    NotFound,
}
