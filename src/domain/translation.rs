//! Texts in other languages: one translation for each resource and language.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

mod registry;

use super::{
    feedback::Feedback,
    json::Instruction,
    patch::Edit,
    text::{Body, MAX_LABEL_CHARS, Name, Title},
};

/// Most languages of one resource.
pub const MAX_LANGUAGES: usize = 100;

/// A BCP-47 language tag in canonical case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(String);

impl Language {
    /// Parses a well-formed tag of either case. As RFC 5646 has it, no variant and no
    /// extension appears twice.
    pub fn parse(tag: &str) -> Option<Self> {
        if tag.len() > MAX_LABEL_CHARS {
            return None;
        }
        let tag = oxilangtag::LanguageTag::parse_and_normalize(tag).ok()?;
        let mut variants = HashSet::new();
        let mut extensions = HashSet::new();
        let is_unique = tag
            .variant_subtags()
            .all(|variant| variants.insert(variant))
            && tag
                .extension_subtags()
                .all(|(letter, _)| extensions.insert(letter));
        is_unique.then(|| Self(tag.into_inner()))
    }

    /// The next shorter form of the tag, as in de-CH-1996, de-CH, de; `None` for the
    /// shortest. A single letter introduces what follows it, so both are dropped at once.
    pub fn shorter(&self) -> Option<Self> {
        let (mut rest, _) = self.0.rsplit_once('-')?;
        while let Some((above, last)) = rest.rsplit_once('-')
            && last.len() == 1
        {
            rest = above;
        }
        (rest.len() > 1).then(|| Self(rest.to_owned()))
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
pub struct TaskTranslation {
    /// The name, if translated.
    pub name: Option<Name>,
    /// Whether automatic translation must not change it.
    pub locked: bool,
}

/// A step's texts in one language.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTranslation {
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

/// A task's texts by language.
pub type TaskTranslations = BTreeMap<Language, TaskTranslation>;
/// A step's texts by language.
pub type StepTranslations = BTreeMap<Language, StepTranslation>;

/// The texts of a resource in one language, whose fields can be edited one by one.
pub trait Translation: Sized {
    /// Edits of single fields.
    type Fields;

    /// A locked translation without texts.
    fn empty() -> Self;

    /// Edits single fields.
    fn edit(&mut self, fields: Self::Fields);

    /// Whether the edits create a translation that does not exist yet.
    fn creates_row(fields: &Self::Fields) -> bool;
}

/// Edits of single fields of a task's translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskTranslationEdit {
    /// The name.
    pub name: Edit<Name>,
    /// Whether it is locked; `None` keeps the lock as it is.
    pub locked: Option<bool>,
}

/// Edits of single fields of a step's translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTranslationEdit {
    /// The title.
    pub title: Edit<Title>,
    /// The body.
    pub body: Edit<Body>,
    /// The instructions.
    pub instructions: Option<Vec<Instruction>>,
    /// The question.
    pub feedback: Edit<Feedback>,
    /// Whether it is locked; `None` keeps the lock as it is.
    pub locked: Option<bool>,
}

impl Translation for TaskTranslation {
    type Fields = TaskTranslationEdit;

    fn empty() -> Self {
        Self {
            name: None,
            locked: true,
        }
    }

    fn edit(&mut self, fields: TaskTranslationEdit) {
        let TaskTranslationEdit { name, locked } = fields;
        name.apply(&mut self.name);
        self.locked = locked.unwrap_or(self.locked);
    }

    fn creates_row(fields: &TaskTranslationEdit) -> bool {
        let TaskTranslationEdit { name, locked } = fields;
        matches!(name, Edit::Set(_)) || locked.is_some()
    }
}

impl Translation for StepTranslation {
    type Fields = StepTranslationEdit;

    fn empty() -> Self {
        Self {
            title: None,
            body: None,
            instructions: Vec::new(),
            feedback: None,
            locked: true,
        }
    }

    fn edit(&mut self, fields: StepTranslationEdit) {
        let StepTranslationEdit {
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

    fn creates_row(fields: &StepTranslationEdit) -> bool {
        let StepTranslationEdit {
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

/// What an update does to one translation.
#[derive(Clone, Debug, PartialEq)]
pub enum RowEdit<O, F> {
    /// Replaces the translation.
    Replace(O),
    /// Deletes the translation.
    Delete,
    /// Edits single fields; creates a missing translation if an edit has content for it.
    Upsert(F),
    /// Edits single fields of an existing translation. Creates none.
    UpdateExisting(F),
}

/// What an update does to the translations of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslationsEdit<O, F> {
    /// Whether translations that are not in `by_language` are deleted.
    pub replace: bool,
    /// The translations that change.
    pub by_language: BTreeMap<Language, RowEdit<O, F>>,
}

impl<O, F> Default for TranslationsEdit<O, F> {
    fn default() -> Self {
        Self {
            replace: false,
            by_language: BTreeMap::new(),
        }
    }
}

impl<O: Translation> TranslationsEdit<O, O::Fields> {
    /// Applies the update to the translations of a resource.
    pub fn apply(self, rows: &mut BTreeMap<Language, O>) {
        if self.replace {
            rows.clear();
        }
        for (language, edit) in self.by_language {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_shortened_until_one_language_is_left() {
        for (tag, shorter) in [
            ("de-CH-1996", Some("de-CH")),
            ("de-CH", Some("de")),
            ("de", None),
            ("de-a-foo", Some("de")),
            ("x-foo", None),
        ] {
            let found = Language::stored(tag.to_owned()).shorter();
            assert_eq!(found.as_ref().map(Language::as_str), shorter, "{tag}");
        }
    }
}
