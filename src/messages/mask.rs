//! Update masks: which fields an update changes, and to what.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use prost_types::FieldMask;

use super::{
    decode::{Field, field::sent_list},
    ignored::Ignored,
};
use crate::domain::{
    misspelling::closest,
    patch::Edit,
    translation::Language,
    violation::{Reason, Violations},
};

/// Most paths of one mask: every field in every language, with room to spare.
pub const MAX_MASK_PATHS: usize = 1_000;
/// The map of translations; a path may add a language and a field.
pub const TRANSLATIONS: &str = "translations";

/// The fields of a resource, as masks name them.
#[derive(Debug)]
pub struct MaskFields {
    /// Fields that an update changes.
    pub honored: &'static [&'static str],
    /// Fields that an update ignores, and lists in `ignored_paths`.
    pub ignored: &'static [&'static str],
    /// Fields that say which resource is updated, in which version.
    pub identifying: &'static [&'static str],
    /// Fields of a translation that an update changes.
    pub translation: &'static [&'static str],
}

/// Which fields an update changes.
#[derive(Debug, PartialEq, Eq)]
pub enum Mask {
    /// No mask: the fields that were sent.
    Populated,
    /// As `Populated`, but `dependency_shorthand` counts, too.
    Document,
    /// As `All`, but `dependency_shorthand` counts, too, and what has a default is not required.
    WholeDocument,
    /// `*`: every honored field.
    All,
    Paths(MaskPaths),
}

/// The paths of a mask.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MaskPaths {
    fields: BTreeSet<&'static str>,
    translations: BTreeMap<Language, LanguageMask>,
}

/// Which fields of one translation an update changes.
#[derive(Debug, PartialEq, Eq)]
pub enum LanguageMask {
    /// The translation is replaced by what was sent.
    Whole,
    Fields(BTreeSet<&'static str>),
}

/// What an update does to translations.
#[derive(Debug)]
pub enum TranslationsMask<'a> {
    /// Replaces those of the sent languages and keeps the others.
    Merge,
    /// Replaces all of them.
    Replace,
    /// Changes those of these languages.
    Only(&'a BTreeMap<Language, LanguageMask>),
}

/// A mask that selects fields of a message.
pub trait FieldSelection {
    /// Whether the field is changed; `sent` says whether the message has it.
    fn selects(&self, field: &str, sent: bool) -> bool;

    /// The edit of a field of the message at `at`. It is decoded only when it is
    /// selected.
    fn edit<M, T>(
        &self,
        at: &mut Field<'_>,
        field: &str,
        sent: Option<M>,
        decode: impl FnOnce(M, Field<'_>) -> Option<T>,
    ) -> Edit<T> {
        match (self.selects(field, sent.is_some()), sent) {
            (false, _) => Edit::Keep,
            (true, None) => Edit::Clear,
            (true, Some(sent)) => decode(sent, at.field(field)).map_or(Edit::Refused, Edit::Set),
        }
    }

    /// The list after the edit, if the field is selected.
    fn list<M, T>(
        &self,
        at: &mut Field<'_>,
        field: &str,
        sent: Vec<M>,
        decode: impl FnOnce(Vec<M>, Field<'_>) -> Vec<T>,
    ) -> Option<Vec<T>> {
        let decode = |list, at: Field<'_>| Some(decode(list, at));
        match self.edit(at, field, sent_list(sent), decode) {
            Edit::Keep | Edit::Refused => None,
            Edit::Clear => Some(Vec::new()),
            Edit::Set(list) => Some(list),
        }
    }
}

impl FieldSelection for Mask {
    fn selects(&self, field: &str, sent: bool) -> bool {
        match self {
            Self::Populated | Self::Document => sent,
            Self::All | Self::WholeDocument => true,
            Self::Paths(paths) => paths.fields.contains(field),
        }
    }
}

impl Mask {
    /// Reads a mask. Notes paths that it may not name, and lists those that are
    /// ignored.
    pub fn parse(
        mask: Option<FieldMask>,
        fields: &MaskFields,
        violations: &mut Violations,
        ignored: &mut Ignored,
    ) -> Self {
        let FieldMask { paths } = mask.unwrap_or_default();
        match paths.as_slice() {
            [] => return Self::Populated,
            [path] if path == "*" => return Self::All,
            _ => {}
        }
        let mut mask = Field::root("update_mask", violations);
        let mut list = mask.field("paths");
        let mut named = MaskPaths::default();
        if list.at_most(paths.len(), MAX_MASK_PATHS) {
            for (index, path) in paths.iter().enumerate() {
                if let Err((reason, description)) = named.add(path, fields, ignored) {
                    list.index(index).refuse(reason, description);
                }
            }
        }
        Self::Paths(named)
    }

    /// Whether a path names the field; `*` does not.
    pub fn names(&self, field: &str) -> bool {
        match self {
            Self::Populated | Self::Document | Self::All | Self::WholeDocument => false,
            Self::Paths(paths) => paths.fields.contains(field),
        }
    }

    /// What the update does to translations.
    pub fn translations(&self) -> TranslationsMask<'_> {
        match self {
            Self::Populated | Self::Document => TranslationsMask::Merge,
            Self::All | Self::WholeDocument => TranslationsMask::Replace,
            Self::Paths(paths) if paths.fields.contains(TRANSLATIONS) => TranslationsMask::Replace,
            Self::Paths(paths) => TranslationsMask::Only(&paths.translations),
        }
    }
}

impl FieldSelection for LanguageMask {
    fn selects(&self, field: &str, sent: bool) -> bool {
        match self {
            Self::Whole => sent,
            Self::Fields(fields) => fields.contains(field),
        }
    }
}

impl LanguageMask {
    /// The `locked` that the update sets, if it sets one: what was sent, else true.
    pub fn locked(&self, sent: Option<bool>) -> Option<bool> {
        let selected = self.selects("locked", sent.is_some());
        selected.then(|| sent.unwrap_or(true))
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

impl MaskFields {
    /// The violation of a path that names no field; it lists those that an update changes.
    fn unknown(&self, path: &str) -> PathViolation {
        if path.contains(',') {
            let description = "holds a comma: send one path per element of the list";
            return (Reason::MaskPathUnknown, description.into());
        }
        let description = format!(
            "{} It may be {}, {TRANSLATIONS}.LANGUAGE or {TRANSLATIONS}.LANGUAGE.FIELD",
            not_a_path(self.meant(without_message(path)).as_deref()),
            self.honored.join(", ")
        );
        (Reason::MaskPathUnknown, description.into())
    }

    /// The path that was probably meant.
    fn meant(&self, path: &str) -> Option<String> {
        if let Some((map, _)) = path.split_once('.')
            && closest(map, [TRANSLATIONS]).is_some()
        {
            return Some(format!("`{TRANSLATIONS}.LANGUAGE` is meant"));
        }
        let fields = [self.honored, self.ignored, self.identifying].concat();
        let field = closest(&snake_case(path), fields)?;
        Some(match self.honored.contains(&field) {
            true => format!("`{field}` is meant"),
            false => format!("`{field}` is meant, which an update ignores"),
        })
    }

    /// The violation of a path that names no field of a translation.
    fn unknown_of_translation(&self, field: &str) -> PathViolation {
        let meant = closest(&snake_case(field), self.translation.iter().copied());
        let meant = meant.map(|meant| format!("`{meant}` is meant"));
        let description = format!(
            "{} Of a translation it may be {}",
            not_a_path(meant.as_deref()),
            self.translation.join(", ")
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

/// The name as the contract spells it: `productId` is `product_id`.
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

/// Says that no field has this name, and which one was probably meant. Errors never repeat
/// what was sent.
fn not_a_path(meant: Option<&str>) -> String {
    let meant = meant.map(|meant| format!("; perhaps {meant}"));
    format!(
        "is not a path that this mask may name{}.",
        meant.unwrap_or_default()
    )
}

impl MaskPaths {
    fn add(
        &mut self,
        path: &str,
        fields: &MaskFields,
        ignored: &mut Ignored,
    ) -> Result<(), PathViolation> {
        let find = |fields: &[&'static str], name: &str| {
            fields.iter().copied().find(|field| *field == name)
        };
        if let Some(field) = find(fields.honored, path) {
            self.fields.insert(field);
        } else if let Some(field) = find(fields.ignored, path) {
            ignored.add([field]);
        } else if path == "*" {
            return Err((Reason::FieldInvalid, "`*` must stand alone".into()));
        } else if find(fields.identifying, path).is_none() {
            let below = path.strip_prefix(TRANSLATIONS);
            let below = below.and_then(|rest| rest.strip_prefix('.'));
            let below = below.ok_or_else(|| fields.unknown(path))?;
            let (key, field) = split_key(below, fields)?;
            let language = Language::parse(key).ok_or(MALFORMED_LANGUAGE_KEY)?;
            match field {
                None => {
                    self.translations.insert(language, LanguageMask::Whole);
                }
                Some(field) => {
                    let field = find(fields.translation, field)
                        .ok_or_else(|| fields.unknown_of_translation(field))?;
                    self.add_translated(language, field);
                }
            }
        }
        Ok(())
    }

    fn add_translated(&mut self, language: Language, field: &'static str) {
        let mask = self.translations.entry(language);
        match mask.or_insert_with(|| LanguageMask::Fields(BTreeSet::new())) {
            LanguageMask::Whole => {}
            LanguageMask::Fields(fields) => {
                fields.insert(field);
            }
        }
    }
}

/// The key of a map and the field below it. The key ends at the first dot, or is in
/// backticks.
fn split_key<'a>(
    path: &'a str,
    fields: &MaskFields,
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
        .ok_or_else(|| fields.unknown_of_translation(rest))?;
    Ok((key, Some(field)))
}

#[cfg(test)]
mod tests;
