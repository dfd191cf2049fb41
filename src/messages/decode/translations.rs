//! Translations of a task or step, one for each language. A translation that a caller
//! creates or replaces is locked unless it says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use super::{Field, feedback, field, json};
use crate::{
    domain::{
        translation::{
            Language, MAX_LANGUAGES, RowEdit, StepTranslation, StepTranslationEdit,
            TaskTranslation, TaskTranslationEdit, Translation, TranslationsEdit,
        },
        violation::{Reason, Violations},
    },
    messages::mask::{FieldSelection, LanguageMask, TranslationsMask},
    proto::v1,
};

/// A translation as it is sent.
pub trait TranslationMessage: Sized + Default {
    /// The translation as it is stored.
    type Translation: Translation;

    /// The fields that the mask selects; the others are not decoded.
    fn edits(
        self,
        mask: &LanguageMask,
        at: Field<'_>,
    ) -> <Self::Translation as Translation>::Fields;
}

impl TranslationMessage for v1::TaskTranslation {
    type Translation = TaskTranslation;

    fn edits(self, mask: &LanguageMask, mut at: Field<'_>) -> TaskTranslationEdit {
        let Self { name, locked } = self;
        TaskTranslationEdit {
            name: mask.edit(&mut at, "name", name, field::translated_text),
            locked: mask.locked(locked),
        }
    }
}

impl TranslationMessage for v1::StepTranslation {
    type Translation = StepTranslation;

    fn edits(self, mask: &LanguageMask, mut at: Field<'_>) -> StepTranslationEdit {
        let Self {
            title,
            body,
            instructions,
            feedback_config,
            locked,
        } = self;
        let at = &mut at;
        StepTranslationEdit {
            title: mask.edit(at, "title", title, field::translated_text),
            body: mask.edit(at, "body", body, field::body),
            instructions: mask.list(at, "instructions", instructions, json::instructions),
            feedback: {
                let sent = field::sent_list(feedback_config);
                mask.edit(at, "feedback_config", sent, feedback::translated)
            },
            locked: mask.locked(locked),
        }
    }
}

/// The stored form of a translation that was sent as a whole.
fn whole<T: TranslationMessage>(message: T, at: Field<'_>) -> T::Translation {
    let mut translation = T::Translation::empty();
    translation.edit(message.edits(&LanguageMask::Whole, at));
    translation
}

/// All translations of a resource.
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
            Some(language) => refuse_duplicate(language, &mut seen, &mut at),
        }
        let translation = whole(translation, at);
        if let Some(language) = language {
            decoded.insert(language, translation);
        }
    }
    decoded
}

/// Two keys may be the same language: `de` and `DE`.
fn refuse_duplicate(language: &Language, seen: &mut BTreeSet<Language>, at: &mut Field<'_>) {
    if !seen.insert(language.clone()) {
        let description = format!("the language {language} is sent twice");
        at.refuse(Reason::FieldInvalid, description);
    }
}

type Edits<T> = BTreeMap<
    Language,
    RowEdit<
        <T as TranslationMessage>::Translation,
        <<T as TranslationMessage>::Translation as Translation>::Fields,
    >,
>;

/// What an update does to the translations of a resource.
pub fn edits<T: TranslationMessage>(
    sent: BTreeMap<String, T>,
    mask: TranslationsMask<'_>,
    at: Field<'_>,
) -> TranslationsEdit<T::Translation, <T::Translation as Translation>::Fields> {
    let put = |sent, at| {
        let decoded = all::<T>(sent, at).into_iter();
        decoded
            .map(|(key, row)| (key, RowEdit::Replace(row)))
            .collect()
    };
    let (replace, by_language) = match mask {
        TranslationsMask::Merge => (false, put(sent, at)),
        TranslationsMask::Replace => (true, put(sent, at)),
        TranslationsMask::Only(masks) => (false, masked(sent, masks, at)),
    };
    TranslationsEdit {
        replace,
        by_language,
    }
}

/// Edits of the masked languages; the others are not decoded.
fn masked<T: TranslationMessage>(
    sent: BTreeMap<String, T>,
    masks: &BTreeMap<Language, LanguageMask>,
    mut at: Field<'_>,
) -> Edits<T> {
    let mut edits: Edits<T> = masks
        .iter()
        .map(|(language, mask)| (language.clone(), absent::<T>(mask)))
        .collect();
    if masks.is_empty() {
        return edits;
    }
    let mut seen = BTreeSet::new();
    for (key, translation) in sent {
        let Some((language, mask)) =
            Language::parse(&key).and_then(|language| masks.get_key_value(&language))
        else {
            continue;
        };
        let mut at = at.key(&key);
        refuse_duplicate(language, &mut seen, &mut at);
        let edit = match mask {
            LanguageMask::Whole => RowEdit::Replace(whole(translation, at)),
            LanguageMask::Fields(_) => RowEdit::Upsert(translation.edits(mask, at)),
        };
        edits.insert(language.clone(), edit);
    }
    edits
}

/// The edit of a masked language that was not sent.
fn absent<T: TranslationMessage>(
    mask: &LanguageMask,
) -> RowEdit<T::Translation, <T::Translation as Translation>::Fields> {
    match mask {
        LanguageMask::Whole => RowEdit::Delete,
        LanguageMask::Fields(_) => {
            let mut unused = Violations::new();
            let at = Field::root("translations", &mut unused);
            RowEdit::UpdateExisting(T::default().edits(mask, at))
        }
    }
}
