//! Translations of a task or step, one for each language. A translation that a caller creates or
//! replaces is locked by default.

use std::collections::{BTreeMap, BTreeSet};

use super::{Field, feedback, field, json};
use crate::{
    domain::{
        translation::{Language, MAX_LANGUAGES, StepTranslation, TaskTranslation},
        violation::Reason,
    },
    proto::v1,
};

pub trait TranslationMessage {
    type Translation;

    /// Decodes the translation. Refused fields are left out.
    fn decode(self, at: &mut Field<'_>) -> Self::Translation;
}

impl TranslationMessage for v1::TaskTranslation {
    type Translation = TaskTranslation;

    fn decode(self, at: &mut Field<'_>) -> TaskTranslation {
        TaskTranslation {
            name: at.field("name").optional(self.name, field::translated_text),
            locked: self.locked.unwrap_or(true),
        }
    }
}

impl TranslationMessage for v1::StepTranslation {
    type Translation = StepTranslation;

    fn decode(self, at: &mut Field<'_>) -> StepTranslation {
        StepTranslation {
            title: at
                .field("title")
                .optional(self.title, field::translated_text),
            body: at.field("body").optional(self.body, field::body),
            instructions: json::instructions(self.instructions, at.field("instructions")),
            feedback: feedback::translated(self.feedback_config, at.field("feedback_config")),
            locked: self.locked.unwrap_or(true),
        }
    }
}

pub fn all<T: TranslationMessage>(
    sent: BTreeMap<String, T>,
    mut at: Field<'_>,
) -> BTreeMap<Language, T::Translation> {
    let mut decoded = BTreeMap::new();
    if !at.at_most(sent.len(), MAX_LANGUAGES) {
        return decoded;
    }
    let mut seen = BTreeSet::new();
    for (key, translation) in sent {
        let mut at = at.key(&key);
        let language = Language::parse(&key);
        match &language {
            None => at.refuse(Reason::FieldInvalid, field::MALFORMED_LANGUAGE),
            Some(language) if !seen.insert(language.clone()) => {
                // `de` and `DE` are the same.
                let description = format!("the language {language} is sent twice");
                at.refuse(Reason::FieldInvalid, description);
            }
            Some(_) => {}
        }
        let translation = translation.decode(&mut at);
        if let Some(language) = language {
            decoded.insert(language, translation);
        }
    }
    decoded
}
