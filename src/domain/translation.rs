//! Texts in other languages: one translation for each resource and language.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde::{Deserialize, Serialize};

mod registry;

use super::{
    feedback::Feedback,
    json::Instruction,
    text::{Body, MAX_LABEL_CHARS, Name, Title},
};

pub const MAX_LANGUAGES: usize = 100;

/// A BCP-47 language tag in canonical case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Language(String);

impl Language {
    /// Parses a well-formed tag of either case. As RFC 5646 requires, no variant or extension
    /// appears twice.
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

    /// The next shorter form of the tag, as in de-CH-1996, de-CH, de; `None` for the shortest. A
    /// single letter introduces the next subtag, so both are dropped together.
    pub fn shorter(&self) -> Option<Self> {
        let (mut rest, _) = self.0.rsplit_once('-')?;
        while let Some((above, last)) = rest.rsplit_once('-')
            && last.len() == 1
        {
            rest = above;
        }
        (rest.len() > 1).then(|| Self(rest.to_owned()))
    }

    /// A tag from the database, which stores only canonical tags.
    pub(crate) fn stored(tag: String) -> Self {
        Self(tag)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskTranslation {
    pub name: Option<Name>,
    /// Whether automatic translation must not change it.
    pub locked: bool,
}

/// A step's texts in one language. The JSON form is for the database, which stores some fields elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepTranslation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Title>,
    #[serde(skip)]
    pub body: Option<Body>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    /// The question, if translated; never linked.
    #[serde(rename = "question", skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// Whether automatic translation must not change it.
    #[serde(skip)]
    pub locked: bool,
}

pub type TaskTranslations = BTreeMap<Language, TaskTranslation>;
pub type StepTranslations = BTreeMap<Language, StepTranslation>;

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
