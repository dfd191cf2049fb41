//! Update masks: which fields an update changes, and to which values.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use prost::Message;
use prost_types::FieldMask;

use super::{
    encoded_resource::{EncodedResource, FieldKey, TRANSLATION},
    fields::{DEPENDENCIES, FieldUse, ResourceFields, SHORTHAND, TRANSLATIONS},
    wire,
};
use crate::domain::{
    import::AbsentFields,
    misspelling::closest,
    translation::{Language, MAX_LANGUAGES},
    violation::{Reason, Violations},
};

/// The maximum number of paths in a mask. It exceeds all fields in all languages.
pub const MAX_MASK_PATHS: usize = 1_000;

#[derive(Debug)]
pub struct Mask {
    pub fields: &'static ResourceFields,
    /// Whether a sent shorthand replaces the conditions.
    takes_shorthand: bool,
    /// The numbers of the fields that are replaced even if they are not sent.
    named: BTreeSet<u32>,
    /// The same for translations. [`TRANSLATION`] stands for all fields.
    translated: BTreeMap<Language, BTreeSet<u32>>,
    others: OtherFields,
}

/// What happens to honored fields and translations that the mask does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherFields {
    Kept,
    ReplacedIfSent,
    Replaced,
}

impl Mask {
    /// Decodes a mask. Notes invalid paths as violations, and lists ignored paths.
    pub fn parse(
        mask: Option<FieldMask>,
        fields: &'static ResourceFields,
        violations: &mut Violations,
        ignored: &mut BTreeSet<&'static str>,
    ) -> Self {
        let FieldMask { paths } = mask.unwrap_or_default();
        let mut parsed = Self {
            fields,
            takes_shorthand: false,
            named: BTreeSet::new(),
            translated: BTreeMap::new(),
            others: match paths.as_slice() {
                [] => OtherFields::ReplacedIfSent,
                [path] if path == "*" => OtherFields::Replaced,
                _ => OtherFields::Kept,
            },
        };
        let mut mask = violations.at("update_mask");
        let mut list = mask.field("paths");
        if parsed.others == OtherFields::Kept && list.at_most(paths.len(), MAX_MASK_PATHS) {
            for (index, path) in paths.iter().enumerate() {
                if let Err((reason, description)) = parsed.name(path, ignored) {
                    list.index(index).refuse(reason, description);
                }
            }
        }
        parsed
    }

    /// Adds the field that a path names.
    fn name(
        &mut self,
        path: &str,
        ignored: &mut BTreeSet<&'static str>,
    ) -> Result<(), PathViolation> {
        match self.fields.find(path) {
            Some((number, _, FieldUse::Honored)) => {
                self.named.insert(number);
            }
            Some((_, name, FieldUse::System | FieldUse::Creation)) => {
                ignored.insert(name);
            }
            Some((_, _, FieldUse::Identity)) => {}
            None if path == "*" => {
                return Err((Reason::FieldInvalid, "`*` must stand alone".into()));
            }
            None => {
                let (language, number) = self.fields.translated(path)?;
                self.translated.entry(language).or_default().insert(number);
            }
        }
        Ok(())
    }

    /// The mask of a task or step of a document. `reset` has the numbers of the fields that get
    /// their defaults even if `absent` keeps the others.
    pub fn for_document(
        absent: AbsentFields,
        reset: BTreeSet<u32>,
        fields: &'static ResourceFields,
    ) -> Self {
        Self {
            fields,
            takes_shorthand: true,
            named: reset,
            translated: BTreeMap::new(),
            others: match absent {
                AbsentFields::Keep => OtherFields::ReplacedIfSent,
                AbsentFields::Reset => OtherFields::Replaced,
            },
        }
    }

    /// Whether a path names the field; `*` does not.
    pub fn names(&self, field: &str) -> bool {
        let found = self.fields.find(field);
        found.is_some_and(|(number, ..)| self.named.contains(&number))
    }

    /// Whether the update changes a field.
    pub fn selects(&self, field: &str, is_sent: impl FnOnce() -> bool) -> bool {
        let found = self.fields.find(field);
        found.is_some_and(|(number, ..)| self.selects_number(number, is_sent))
    }

    fn selects_number(&self, number: u32, is_sent: impl FnOnce() -> bool) -> bool {
        self.named.contains(&number)
            || match self.others {
                OtherFields::Kept => false,
                OtherFields::ReplacedIfSent => is_sent(),
                OtherFields::Replaced => true,
            }
    }

    /// Whether each selected field was sent exactly as it is stored, so [`Self::merge`] changes
    /// nothing. Only for the mask of a document.
    pub fn keeps_all(&self, stored: &[u8], sent: &[u8], not_honored: &[&str]) -> bool {
        let (Some(stored), Some(sent)) = (wire::fields(stored), wire::fields(sent)) else {
            return false;
        };
        let has = |number| sent.iter().any(|field| field.number == number);
        let shorthand = self.fields.find(SHORTHAND);
        let has_shorthand = shorthand.is_some_and(|(number, ..)| has(number));
        self.fields.own().all(|(number, name, field_use)| {
            let is_selected = match name {
                SHORTHAND => has_shorthand,
                // The shorthand and the dependencies are equivalent.
                DEPENDENCIES if has_shorthand => has(number),
                _ => {
                    field_use == FieldUse::Honored
                        && !not_honored.contains(&name)
                        && self.selects_number(number, || has(number))
                }
            };
            let [stored, sent] = [&stored, &sent].map(|message| {
                let values = message.iter().filter(|field| field.number == number);
                values.map(|field| field.whole)
            });
            !is_selected || stored.eq(sent)
        })
    }

    /// The sent fields that an update does not apply: fields that no update changes or that are in
    /// `not_honored`, if the sent value differs from the stored one, and fields in `not_honored`
    /// that the mask names.
    pub fn not_applied(
        &self,
        stored: &[u8],
        sent: &[u8],
        not_honored: &[&'static str],
    ) -> Vec<&'static str> {
        let is_listed = |field: &str, field_use| {
            not_honored.contains(&field)
                || matches!(field_use, FieldUse::Creation | FieldUse::System)
        };
        let mut fields = self.fields.differing(sent, is_listed, stored);
        fields.extend(not_honored.iter().filter(|field| self.names(field)));
        fields
    }

    /// The stored task or step with the selected fields of the sent one, except for fields in
    /// `not_honored`. `None` if the bytes are not a message.
    ///
    /// Also returns the number of languages for
    /// [`check_languages`](crate::domain::task::check_languages). If there are too many, the result
    /// only has the languages that were sent. If those are too many, the number is 0, because the
    /// decoder reports it.
    pub fn merge<M: Message + Default>(
        &self,
        stored: &[u8],
        sent: &[u8],
        not_honored: &[&str],
    ) -> Option<(M, usize)> {
        let mut merged = EncodedResource::read(self.fields, stored)?;
        let sent = EncodedResource::read(self.fields, sent)?;
        let has_shorthand =
            self.takes_shorthand && sent.0.keys().any(|key| self.fields.is_shorthand(*key));
        let mut times_sent = BTreeMap::new();
        for tag in sent.languages() {
            let language = Language::parse(tag);
            // Violations spell a language as it was sent.
            if let Some(language) = language.as_ref().map(Language::as_str)
                && language != tag
            {
                merged.rename(language, tag);
            }
            *times_sent.entry(language).or_insert(0) += 1;
        }
        // The fields that the mask names in each translation, by its tag.
        let tags = merged.languages().into_iter().chain(sent.languages());
        let tags = tags.filter(|_| !self.translated.is_empty());
        let named =
            tags.filter_map(|tag| Some((tag, self.translated.get(&Language::parse(tag)?)?)));
        let named: BTreeMap<&str, &BTreeSet<u32>> = named.collect();
        let lock = self.fields.lock;
        let is_selected = |key: &FieldKey<'_>| match *key {
            (None, number) => match self.fields.get(number) {
                Some((SHORTHAND | DEPENDENCIES, _)) if has_shorthand => true,
                Some((name, FieldUse::Honored)) if !not_honored.contains(&name) => {
                    self.selects_number(number, || sent.0.contains_key(key))
                }
                _ => false,
            },
            (Some(tag), number) => {
                let is_sent = || sent.0.contains_key(&(Some(tag), TRANSLATION));
                let named = named.get(tag).copied();
                self.selects_number(self.fields.translations, is_sent)
                    || named.is_some_and(|it| it.contains(&TRANSLATION) || it.contains(&number))
            }
        };
        // The decoder computes fields that are removed here: the shorthand, and the lock of a
        // translation that was edited without sending `locked`.
        merged.0.retain(|key, _| {
            let is_computed = match *key {
                (None, _) => self.fields.is_shorthand(*key),
                (Some(tag), number) => number == lock && named.contains_key(tag),
            };
            !is_computed && !is_selected(key)
        });
        for tag in sent.languages() {
            // Both are kept, because the decoder refuses a language that was sent twice.
            let is_twice = || times_sent.get(&Language::parse(tag)) > Some(&1);
            if let Some(named) = named.get(tag)
                && (named.contains(&lock) || is_twice())
            {
                merged.0.entry((Some(tag), TRANSLATION)).or_default();
            }
        }
        let taken = sent.0.iter().filter(|(key, _)| is_selected(key));
        merged
            .0
            .extend(taken.map(|(key, values)| (*key, values.clone())));
        let mut languages = merged.languages().len();
        if languages > MAX_LANGUAGES {
            let is_taken = |key: &FieldKey<'_>| sent.0.contains_key(key) && is_selected(key);
            merged.0.retain(|key, _| key.0.is_none() || is_taken(key));
            if merged.languages().len() > MAX_LANGUAGES {
                languages = 0;
            }
        }
        let message = M::decode(&merged.encode(self.fields)[..]).ok()?;
        Some((message, languages))
    }
}

/// Why a path is refused.
type PathViolation = (Reason, Cow<'static, str>);

const MALFORMED_LANGUAGE_KEY: PathViolation = (
    Reason::FieldInvalid,
    Cow::Borrowed(
        "does not name a well-formed language tag, such as `pt-BR`. In a JSON mask write it in \
         lower case, or leave the mask out and send the whole language",
    ),
);

impl ResourceFields {
    /// The language and the field that a path into the translations names. The field [`TRANSLATION`] is
    /// the whole translation.
    fn translated(&self, path: &str) -> Result<(Language, u32), PathViolation> {
        let below = path.strip_prefix(TRANSLATIONS);
        let below = below.and_then(|rest| rest.strip_prefix('.'));
        let (key, field) = split_key(below.ok_or_else(|| self.unknown(path))?, self)?;
        let language = Language::parse(key).ok_or(MALFORMED_LANGUAGE_KEY)?;
        let Some(field) = field else {
            return Ok((language, TRANSLATION));
        };
        let mut fields = self.translation.iter();
        let found = fields.find(|(_, name)| *name == field);
        let (number, _) = found.ok_or_else(|| self.unknown_translation_field(field))?;
        Ok((language, *number))
    }

    /// The violation for a path that names no field. It lists the fields that an update changes.
    fn unknown(&self, path: &str) -> PathViolation {
        if path.contains(',') {
            let description = "holds a comma: send one path per element of the list";
            return (Reason::MaskPathUnknown, description.into());
        }
        let description = format!(
            "{} It may be {}, {TRANSLATIONS}.LANGUAGE or {TRANSLATIONS}.LANGUAGE.FIELD",
            not_a_path(self.meant(without_message(path)).as_deref()),
            self.honored().join(", ")
        );
        (Reason::MaskPathUnknown, description.into())
    }

    /// The question whether another path was meant.
    fn meant(&self, path: &str) -> Option<String> {
        if let Some((map, _)) = path.split_once('.')
            && closest(map, [TRANSLATIONS]).is_some()
        {
            return Some(format!("did you mean `{TRANSLATIONS}.LANGUAGE`?"));
        }
        let field = closest(&snake_case(path), self.names())?;
        Some(match self.find(field)? {
            (_, _, FieldUse::Honored) => format!("did you mean `{field}`?"),
            _ => format!("did you mean `{field}`? An update ignores it."),
        })
    }

    /// The violation for a path that names no field of a translation.
    fn unknown_translation_field(&self, field: &str) -> PathViolation {
        let mut fields: Vec<&str> = self.translation.values().map(String::as_str).collect();
        fields.sort_unstable();
        let meant = closest(&snake_case(field), fields.iter().copied());
        let meant = meant.map(|meant| format!("did you mean `{meant}`?"));
        let description = format!(
            "{} Of a translation it may be {}",
            not_a_path(meant.as_deref()),
            fields.join(", ")
        );
        (Reason::MaskPathUnknown, description.into())
    }
}

/// The path without a leading `step.` or `task.`, which `ignored_paths` have.
fn without_message(path: &str) -> &str {
    match path.split_once('.') {
        Some(("step" | "task", field)) => field,
        Some(_) | None => path,
    }
}

/// The name as the API spells it: `productId` becomes `product_id`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Says that no field has this name, and which name was probably meant. Errors never repeat what
/// was sent.
fn not_a_path(meant: Option<&str>) -> String {
    let meant = meant.map_or_else(|| ".".to_owned(), |meant| format!("; {meant}"));
    format!("is not a path that this mask may name{meant}")
}

/// The key of a map and the field below it. The key ends at the first dot, or is in
/// backticks.
fn split_key<'a>(
    path: &'a str,
    fields: &ResourceFields,
) -> Result<(&'a str, Option<&'a str>), PathViolation> {
    let Some(quoted) = path.strip_prefix('`') else {
        return Ok(match path.split_once('.') {
            Some((key, field)) => (key, Some(field)),
            None => (path, None),
        });
    };
    let (key, rest) = quoted.split_once('`').ok_or(MALFORMED_LANGUAGE_KEY)?;
    if rest.is_empty() {
        return Ok((key, None));
    }
    let field = rest
        .strip_prefix('.')
        .ok_or_else(|| fields.unknown_translation_field(rest))?;
    Ok((key, Some(field)))
}

#[cfg(test)]
mod tests;
