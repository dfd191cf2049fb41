//! What an automatic translator has to do, and what it has done.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{
    feedback::Feedback,
    ids::{StepId, TaskId},
    json::Instruction,
    step::StepContent,
    text::{Body, Name, Title},
    translation::{Language, StepOverlay, TaskOverlay},
};

/// Most translations in one write.
pub const WRITES_MAX: usize = 100;

/// Stands for texts: equal for equal texts, and for no others that anybody will
/// find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceDigest(pub [u8; 16]);

impl SourceDigest {
    fn of<'a>(parts: impl IntoIterator<Item = Option<&'a [u8]>>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            hash.update(length.to_be_bytes());
            hash.update(part.unwrap_or_default());
        }
        let full: [u8; 32] = hash.finalize().into();
        let mut short = [0; 16];
        short.copy_from_slice(full.split_at(16).0);
        Self(short)
    }

    /// The texts of a task.
    pub fn of_task(name: &str) -> Self {
        Self::of([Some(b"task".as_slice()), Some(name.as_bytes())])
    }

    /// The texts of a step: its title, and [`SourceDigest::of_content`] of the others.
    /// Apart, as the title of a subtask step changes without the others being
    /// at hand.
    pub fn of_step(title: &str, rest: SourceDigest) -> Self {
        Self::of([
            Some(b"step".as_slice()),
            Some(title.as_bytes()),
            Some(&rest.0),
        ])
    }

    /// The texts of a step but its title.
    pub fn of_content(content: &StepContent, feedback: Option<&Feedback>) -> Self {
        let body = content.body.as_ref().map(|body| body.as_str().as_bytes());
        let instructions: Vec<_> = content
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
        Self::of(parts)
    }
}

/// The task or step that a translation is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceId {
    /// A task.
    Task(TaskId),
    /// A step.
    Step(StepId),
}

/// Why there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationState {
    /// There is no translation.
    Missing,
    /// It is unlocked, and its source has changed since.
    Outdated,
}

/// Texts to translate.
#[derive(Clone, Debug)]
pub enum SourceTexts {
    /// A task's.
    Task {
        /// Its name.
        name: String,
    },
    /// A step's.
    Step {
        /// Its title.
        title: String,
        /// Its body.
        body: Option<Body>,
        /// Its instructions.
        instructions: Vec<Instruction>,
        /// Its question.
        feedback: Option<Feedback>,
    },
}

/// One thing to translate into one language.
#[derive(Clone, Debug)]
pub struct TranslationWork {
    /// What it is of.
    pub target: ResourceId,
    /// The language to translate into.
    pub language: Language,
    /// Why.
    pub state: TranslationState,
    /// The texts.
    pub source: SourceTexts,
    /// Stands for the texts.
    pub digest: SourceDigest,
}

/// Which work is asked for.
#[derive(Clone, Debug)]
pub struct TranslationWorkFilter {
    /// The languages, sorted, each once; at least one.
    pub languages: Vec<Language>,
    /// Only this task and its steps.
    pub task: Option<TaskId>,
}

/// Where a listing of work goes on: tasks by id, then steps by id, each
/// language by language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationWorkCursor {
    /// Whether tasks are done.
    pub steps: bool,
    /// The resource at hand.
    pub guid: Uuid,
    /// How many of the languages are done for it.
    pub languages: usize,
}

impl TranslationWorkCursor {
    /// The beginning.
    pub const START: Self = Self {
        steps: false,
        guid: Uuid::nil(),
        languages: 0,
    };
}

/// Work of one page.
#[derive(Clone, Debug)]
pub struct TranslationWorkPage {
    /// The work, each with where the listing goes on behind it.
    pub items: Vec<(TranslationWork, TranslationWorkCursor)>,
    /// Where the listing goes on; `None` at the end. A page may be short, even
    /// empty, before the end: a call looks at so many resources and no more.
    pub next: Option<TranslationWorkCursor>,
}

/// A translation made by a machine.
#[derive(Clone, Debug)]
pub struct AutomaticTranslation {
    /// The id of a task or step.
    pub guid: Uuid,
    /// The language.
    pub language: Language,
    /// The name, if it is of a task.
    pub name: Option<Name>,
    /// The title, if it is of a step.
    pub title: Option<Title>,
    /// The body, if it is of a step.
    pub body: Option<Body>,
    /// The instructions, if it is of a step.
    pub instructions: Vec<Instruction>,
    /// The question, if it is of a step; never linked.
    pub feedback: Option<Feedback>,
    /// What stood for the source texts; `None` if it was never given out.
    pub digest: Option<SourceDigest>,
}

impl AutomaticTranslation {
    /// The row that it makes of a task.
    pub fn task_overlay(&self) -> TaskOverlay {
        TaskOverlay {
            name: self.name.clone(),
            locked: false,
        }
    }

    /// The row that it makes of a step.
    pub fn step_overlay(&self) -> StepOverlay {
        StepOverlay {
            title: self.title.clone(),
            body: self.body.clone(),
            instructions: self.instructions.clone(),
            feedback: self.feedback.clone(),
            locked: false,
        }
    }
}

/// What became of an automatic translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationOutcome {
    /// Written, and unlocked.
    Written(ResourceId),
    /// A person has locked the language.
    Locked,
    /// The source has changed since.
    Stale,
    /// The account has no such task or step.
    NotFound,
}
