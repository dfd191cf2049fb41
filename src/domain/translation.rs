//! Texts in other languages: one row for each resource and language.

use std::{collections::BTreeMap, fmt};

use super::{
    feedback::Feedback,
    json::Instruction,
    patch::Edit,
    text::{Body, LABEL_MAX, Name, Title},
};

/// Most languages of one resource.
pub const LANGUAGES_MAX: usize = 100;

/// A BCP-47 language tag in canonical case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(String);

impl Language {
    /// Parses a well-formed tag of either case.
    pub fn parse(tag: &str) -> Option<Self> {
        if tag.len() > LABEL_MAX {
            return None;
        }
        oxilangtag::LanguageTag::parse_and_normalize(tag)
            .ok()
            .map(|tag| Self(tag.into_inner()))
    }

    /// A tag read from the database, which holds canonical tags only.
    pub(crate) fn stored(tag: String) -> Self {
        Self(tag)
    }

    /// The tag.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A task's texts in one language.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOverlay {
    /// The name, if translated.
    pub name: Option<Name>,
    /// Whether automatic translation must not change it.
    pub locked: bool,
}

/// A step's texts in one language.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOverlay {
    /// The title, if translated.
    pub title: Option<Title>,
    /// The body, if translated.
    pub body: Option<Body>,
    /// The instructions; empty if not translated.
    pub instructions: Vec<Instruction>,
    /// The question, if translated; never linked.
    pub feedback: Option<Feedback>,
    /// Whether automatic translation must not change it.
    pub locked: bool,
}

/// A task's rows by language.
pub type TaskTranslations = BTreeMap<Language, TaskOverlay>;
/// A step's rows by language.
pub type StepTranslations = BTreeMap<Language, StepOverlay>;

/// The texts of a resource in one language, whose fields can be edited one by one.
pub trait Overlay: Sized {
    /// Edits of single fields.
    type Fields;

    /// A locked row without any translated text.
    fn empty() -> Self;

    /// Edits single fields.
    fn edit(&mut self, fields: Self::Fields);

    /// Whether the edits create a row that does not exist yet.
    fn creates_row(fields: &Self::Fields) -> bool;
}

/// Edits of single fields of a task's row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOverlayEdit {
    /// The name.
    pub name: Edit<Name>,
    /// Whether the row is locked; `None` keeps the lock as it is.
    pub locked: Option<bool>,
}

/// Edits of single fields of a step's row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOverlayEdit {
    /// The title.
    pub title: Edit<Title>,
    /// The body.
    pub body: Edit<Body>,
    /// The instructions.
    pub instructions: Option<Vec<Instruction>>,
    /// The question.
    pub feedback: Edit<Feedback>,
    /// Whether the row is locked; `None` keeps the lock as it is.
    pub locked: Option<bool>,
}

impl Overlay for TaskOverlay {
    type Fields = TaskOverlayEdit;

    fn empty() -> Self {
        Self {
            name: None,
            locked: true,
        }
    }

    fn edit(&mut self, fields: TaskOverlayEdit) {
        let TaskOverlayEdit { name, locked } = fields;
        name.apply(&mut self.name);
        self.locked = locked.unwrap_or(self.locked);
    }

    fn creates_row(fields: &TaskOverlayEdit) -> bool {
        let TaskOverlayEdit { name, locked } = fields;
        matches!(name, Edit::Set(_)) || locked.is_some()
    }
}

impl Overlay for StepOverlay {
    type Fields = StepOverlayEdit;

    fn empty() -> Self {
        Self {
            title: None,
            body: None,
            instructions: Vec::new(),
            feedback: None,
            locked: true,
        }
    }

    fn edit(&mut self, fields: StepOverlayEdit) {
        let StepOverlayEdit {
            title,
            body,
            instructions,
            feedback,
            locked,
        } = fields;
        title.apply(&mut self.title);
        body.apply(&mut self.body);
        if let Some(instructions) = instructions {
            self.instructions = instructions;
        }
        feedback.apply(&mut self.feedback);
        self.locked = locked.unwrap_or(self.locked);
    }

    fn creates_row(fields: &StepOverlayEdit) -> bool {
        let StepOverlayEdit {
            title,
            body,
            instructions,
            feedback,
            locked,
        } = fields;
        matches!(title, Edit::Set(_))
            || matches!(body, Edit::Set(_))
            || instructions.as_ref().is_some_and(|list| !list.is_empty())
            || matches!(feedback, Edit::Set(_))
            || locked.is_some()
    }
}

/// What an update does to one row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowEdit<O, F> {
    /// Replaces the row.
    Replace(O),
    /// Deletes the row.
    Delete,
    /// Edits single fields; creates a missing row if an edit has content for it.
    Upsert(F),
    /// Edits single fields of an existing row. Creates none.
    UpdateExisting(F),
}

/// What an update does to the rows of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslationsEdit<O, F> {
    /// Whether rows that are not in `rows` are deleted.
    pub replace: bool,
    /// The rows that change.
    pub rows: BTreeMap<Language, RowEdit<O, F>>,
}

impl<O, F> Default for TranslationsEdit<O, F> {
    fn default() -> Self {
        Self {
            replace: false,
            rows: BTreeMap::new(),
        }
    }
}

impl<O: Overlay> TranslationsEdit<O, O::Fields> {
    /// The rows after the update.
    pub fn apply(self, rows: &mut BTreeMap<Language, O>) {
        if self.replace {
            rows.clear();
        }
        for (language, edit) in self.rows {
            match edit {
                RowEdit::Replace(row) => {
                    rows.insert(language, row);
                }
                RowEdit::Delete => {
                    rows.remove(&language);
                }
                RowEdit::UpdateExisting(fields) => {
                    if let Some(row) = rows.get_mut(&language) {
                        row.edit(fields);
                    }
                }
                RowEdit::Upsert(fields) => match rows.get_mut(&language) {
                    Some(row) => row.edit(fields),
                    None if O::creates_row(&fields) => {
                        let mut row = O::empty();
                        row.edit(fields);
                        rows.insert(language, row);
                    }
                    None => {}
                },
            }
        }
    }
}
