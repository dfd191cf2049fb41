//! Update masks: which fields an update changes, and to what.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use prost_types::FieldMask;

use super::{
    compare::FieldPath,
    fields::{DEPENDENCIES, FieldUse, ResourceFields, SHORTHAND, TRANSLATIONS},
    ignored::Ignored,
    wire,
};
use crate::domain::{
    import::AbsentFields,
    misspelling::closest,
    translation::Language,
    violation::{Reason, Violations},
};

/// The lock of a translation.
const LOCKED: &str = "locked";

/// Most paths of one mask: every field in every language, with room to spare.
pub const MAX_MASK_PATHS: usize = 1_000;

#[derive(Debug)]
pub struct Mask {
    fields: &'static ResourceFields,
    paths: Paths,
    /// Whether a shorthand that was sent replaces the conditions, as in a document.
    honors_shorthand: bool,
    /// Whether a change to a part of a translation locks it, as a person made it.
    locks_edited: bool,
}

#[derive(Debug)]
enum Paths {
    /// No mask: the fields that were sent, and those that are reset if they were not.
    Populated {
        reset: BTreeSet<&'static str>,
    },
    /// `*`: every honored field.
    All,
    Named(NamedPaths),
}

#[derive(Debug, Default)]
struct NamedPaths {
    fields: BTreeSet<&'static str>,
    translations: BTreeMap<Language, LanguageMask>,
}

/// Which fields of one translation an update changes.
#[derive(Debug)]
enum LanguageMask {
    /// The translation is replaced by what was sent.
    Whole,
    Fields(BTreeSet<&'static str>),
}

impl Mask {
    /// Reads a mask. Notes paths that it may not name, and lists those that are
    /// ignored.
    pub fn parse(
        mask: Option<FieldMask>,
        fields: &'static ResourceFields,
        violations: &mut Violations,
        ignored: &mut Ignored,
    ) -> Self {
        let FieldMask { paths } = mask.unwrap_or_default();
        let paths = match paths.as_slice() {
            [] => Paths::Populated {
                reset: BTreeSet::new(),
            },
            [path] if path == "*" => Paths::All,
            paths => {
                let mut mask = violations.at("update_mask");
                let mut list = mask.field("paths");
                let mut named = NamedPaths::default();
                if list.at_most(paths.len(), MAX_MASK_PATHS) {
                    for (index, path) in paths.iter().enumerate() {
                        if let Err((reason, description)) = named.add(path, fields, ignored) {
                            list.index(index).refuse(reason, description);
                        }
                    }
                }
                Paths::Named(named)
            }
        };
        Self {
            fields,
            paths,
            honors_shorthand: false,
            locks_edited: true,
        }
    }

    /// The mask of a task or step of a document. `reset`: the fields that get their defaults, even if
    /// `absent` keeps the others.
    pub fn for_document(
        absent: AbsentFields,
        reset: BTreeSet<&'static str>,
        fields: &'static ResourceFields,
    ) -> Self {
        Self {
            fields,
            paths: match absent {
                AbsentFields::Keep => Paths::Populated { reset },
                AbsentFields::Reset => Paths::All,
            },
            honors_shorthand: true,
            locks_edited: false,
        }
    }

    /// The mask of these fields.
    pub fn for_fields(fields: &'static ResourceFields, paths: &[FieldPath]) -> Self {
        let mut named = NamedPaths::default();
        for FieldPath { language, name } in paths {
            match language.as_deref().map(Language::parse) {
                None => {
                    named.fields.insert(name);
                }
                Some(None) => {}
                Some(Some(language)) => named.add_text(language, name),
            }
        }
        Self {
            fields,
            paths: Paths::Named(named),
            honors_shorthand: false,
            locks_edited: false,
        }
    }

    /// Whether a path names the field; `*` does not.
    pub fn names(&self, field: &str) -> bool {
        matches!(&self.paths, Paths::Named(paths) if paths.fields.contains(field))
    }

    /// Whether the update changes a field.
    pub fn selects(&self, field: &str, is_sent: impl FnOnce() -> bool) -> bool {
        match &self.paths {
            Paths::Populated { reset } => is_sent() || reset.contains(field),
            Paths::All => true,
            Paths::Named(paths) => paths.fields.contains(field),
        }
    }

    /// An encoded message with the selected fields of another one. Those that `not_honored` names
    /// are not selected. `None` if the bytes are no messages.
    ///
    /// Fields are copied as they are encoded: decoded dynamically, JSON takes many times as much
    /// memory.
    pub fn apply(&self, stored: &[u8], sent: &[u8], not_honored: &[&str]) -> Option<Vec<u8>> {
        let translations = self.fields.translations;
        let selection = self.selection(sent, not_honored)?;
        let mut merged = merge(stored, sent, |number| {
            let is_sent = selection.takes_sent(number);
            // Drop the stored shorthand: it duplicates `dependencies`.
            let is_dropped =
                number == translations || (!is_sent && self.fields.is_shorthand(number));
            (!is_dropped).then_some(is_sent)
        })?;
        let [stored, sent] = [stored, sent].map(|message| {
            let fields = wire::fields(message)?.into_iter();
            let entries = fields.filter(|field| field.number == translations);
            let entries = entries.map(|it| MapEntry::read(it.content));
            entries.collect::<Option<Vec<_>>>()
        });
        for entry in self.translations(stored?, sent?)? {
            wire::append(translations, &entry.encode(), &mut merged);
        }
        Some(merged)
    }

    /// Whether each selected field was sent exactly as it is stored. [`Self::apply`] then changes
    /// nothing.
    pub fn keeps_all(&self, stored: &[u8], sent: &[u8], not_honored: &[&str]) -> bool {
        let selected = |message| {
            let selection = self.selection(sent, not_honored)?;
            let fields = wire::fields(message)?.into_iter();
            let selected = fields.filter(|field| selection.takes_sent(field.number));
            Some(selected.map(|field| field.whole).collect::<Vec<_>>())
        };
        selected(stored).is_some_and(|stored| selected(sent) == Some(stored))
    }

    fn selection<'a>(&'a self, sent: &[u8], not_honored: &'a [&'a str]) -> Option<Selection<'a>> {
        let sent_numbers = wire::fields(sent)?.into_iter().map(|field| field.number);
        let sent_numbers: Vec<u32> = sent_numbers.collect();
        let has_shorthand = sent_numbers.iter().any(|it| self.fields.is_shorthand(*it));
        Some(Selection {
            mask: self,
            not_honored,
            has_shorthand: self.honors_shorthand && has_shorthand,
            sent_numbers,
        })
    }

    /// The translations after the update. Those that were sent keep their keys, so that violations
    /// name them.
    fn translations<'a>(
        &self,
        stored: Vec<MapEntry<'a>>,
        sent: Vec<MapEntry<'a>>,
    ) -> Option<Vec<MapEntry<'a>>> {
        let masks = match &self.paths {
            Paths::All => return Some(sent),
            Paths::Populated { reset: fields } | Paths::Named(NamedPaths { fields, .. })
                if fields.contains(TRANSLATIONS) =>
            {
                return Some(sent);
            }
            Paths::Populated { .. } => None,
            Paths::Named(paths) => Some(&paths.translations),
        };
        let stored = stored.into_iter();
        let mut stored: BTreeMap<Option<Language>, MapEntry<'a>> = stored
            .map(|entry| (Language::parse(entry.key), entry))
            .collect();
        let mut seen = BTreeSet::new();
        let languages = sent.iter().map(|entry| Language::parse(entry.key));
        // The decoder refuses them, so it must meet them.
        let repeated: BTreeSet<Option<Language>> = languages
            .filter(|language| !seen.insert(language.clone()))
            .collect();
        let mut merged = Vec::new();
        for mut entry in sent {
            let language = Language::parse(entry.key);
            match masks.map(|masks| masks.get(language.as_ref()?)) {
                Some(None) => continue,
                None | Some(Some(LanguageMask::Whole)) => {
                    stored.remove(&language);
                }
                Some(Some(LanguageMask::Fields(names))) => {
                    let former = stored.remove(&language);
                    let is_new = former.is_none() && !names.contains(LOCKED);
                    let former = former.map(|former| former.texts).unwrap_or_default();
                    entry.texts = self.texts(&former, &entry.texts, names)?.into();
                    if is_new && entry.texts.is_empty() && !repeated.contains(&language) {
                        continue;
                    }
                }
            }
            merged.push(entry);
        }
        for (language, mut entry) in stored {
            match masks.and_then(|masks| masks.get(language.as_ref()?)) {
                Some(LanguageMask::Whole) => continue,
                Some(LanguageMask::Fields(names)) => {
                    entry.texts = self.texts(&entry.texts, &[], names)?.into();
                }
                None => {}
            }
            merged.push(entry);
        }
        Some(merged)
    }

    /// The fields of an encoded translation, and these of another one.
    fn texts(&self, stored: &[u8], sent: &[u8], names: &BTreeSet<&str>) -> Option<Vec<u8>> {
        merge(stored, sent, |number| {
            let name = self.fields.translation.get(&number)?;
            let is_sent = names.contains(name.as_str());
            // Without a lock, the decoder locks it.
            let is_relocked = self.locks_edited && name == LOCKED && !is_sent;
            (!is_relocked).then_some(is_sent)
        })
    }
}

/// Which fields of a message replace stored ones.
struct Selection<'a> {
    mask: &'a Mask,
    not_honored: &'a [&'a str],
    sent_numbers: Vec<u32>,
    /// Whether a shorthand replaces the conditions.
    has_shorthand: bool,
}

impl Selection<'_> {
    fn takes_sent(&self, number: u32) -> bool {
        match self.mask.fields.get(number) {
            Some((SHORTHAND | DEPENDENCIES, _)) if self.has_shorthand => true,
            Some((name, FieldUse::Honored)) if !self.not_honored.contains(&name) => {
                let is_sent = || self.sent_numbers.contains(&number);
                self.mask.selects(name, is_sent)
            }
            _ => false,
        }
    }
}

/// Two encoded messages as one. `selects` says whether a field is taken from the one that was
/// sent, or `None` if it is left out.
fn merge(stored: &[u8], sent: &[u8], selects: impl Fn(u32) -> Option<bool>) -> Option<Vec<u8>> {
    let mut merged = Vec::new();
    for (message, is_sent) in [(stored, false), (sent, true)] {
        let fields = wire::fields(message)?.into_iter();
        for field in fields.filter(|field| selects(field.number) == Some(is_sent)) {
            merged.extend_from_slice(field.whole);
        }
    }
    Some(merged)
}

/// A translation as it is encoded, with its language.
pub struct MapEntry<'a> {
    pub key: &'a str,
    pub texts: Cow<'a, [u8]>,
}

impl<'a> MapEntry<'a> {
    const KEY: u32 = 1;
    const VALUE: u32 = 2;

    /// The language and the translation.
    pub fn split(entry: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
        let fields = wire::fields(entry)?;
        let content = |number| {
            let field = fields.iter().find(|field| field.number == number);
            field.map_or(&[][..], |field| field.content)
        };
        let key = str::from_utf8(content(Self::KEY)).ok()?;
        Some((key, content(Self::VALUE)))
    }

    fn read(entry: &'a [u8]) -> Option<Self> {
        let (key, texts) = Self::split(entry)?;
        let texts = texts.into();
        Some(Self { key, texts })
    }

    fn encode(&self) -> Vec<u8> {
        let mut entry = Vec::new();
        wire::append(Self::KEY, self.key.as_bytes(), &mut entry);
        wire::append(Self::VALUE, &self.texts, &mut entry);
        entry
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
    /// The violation of a path that names no field; it lists those that an update changes.
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

    /// The path that was probably meant.
    fn meant(&self, path: &str) -> Option<String> {
        if let Some((map, _)) = path.split_once('.')
            && closest(map, [TRANSLATIONS]).is_some()
        {
            return Some(format!("`{TRANSLATIONS}.LANGUAGE` is meant"));
        }
        let field = closest(&snake_case(path), self.names())?;
        Some(match self.find(field)? {
            (_, _, FieldUse::Honored) => format!("`{field}` is meant"),
            _ => format!("`{field}` is meant, which an update ignores"),
        })
    }

    /// The violation of a path that names no field of a translation.
    fn unknown_of_translation(&self, field: &str) -> PathViolation {
        let mut fields: Vec<&str> = self.translation.values().map(String::as_str).collect();
        fields.sort_unstable();
        let meant = closest(&snake_case(field), fields.iter().copied());
        let meant = meant.map(|meant| format!("`{meant}` is meant"));
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

impl NamedPaths {
    fn add(
        &mut self,
        path: &str,
        fields: &'static ResourceFields,
        ignored: &mut Ignored,
    ) -> Result<(), PathViolation> {
        match fields.find(path) {
            Some((_, name, FieldUse::Honored)) => {
                self.fields.insert(name);
            }
            Some((_, name, FieldUse::System | FieldUse::Creation)) => ignored.add([name]),
            Some((_, _, FieldUse::Identity)) => {}
            None if path == "*" => {
                return Err((Reason::FieldInvalid, "`*` must stand alone".into()));
            }
            None => self.add_translated(path, fields)?,
        }
        Ok(())
    }

    fn add_translated(
        &mut self,
        path: &str,
        fields: &'static ResourceFields,
    ) -> Result<(), PathViolation> {
        let below = path.strip_prefix(TRANSLATIONS);
        let below = below.and_then(|rest| rest.strip_prefix('.'));
        let below = below.ok_or_else(|| fields.unknown(path))?;
        let (key, field) = split_key(below, fields)?;
        let language = Language::parse(key).ok_or(MALFORMED_LANGUAGE_KEY)?;
        let Some(field) = field else {
            self.translations.insert(language, LanguageMask::Whole);
            return Ok(());
        };
        let mut names = fields.translation.values();
        let name = names.find(|name| *name == field);
        let name = name.ok_or_else(|| fields.unknown_of_translation(field))?;
        self.add_text(language, name);
        Ok(())
    }

    fn add_text(&mut self, language: Language, name: &'static str) {
        let mask = self.translations.entry(language);
        match mask.or_insert_with(|| LanguageMask::Fields(BTreeSet::new())) {
            LanguageMask::Whole => {}
            LanguageMask::Fields(fields) => {
                fields.insert(name);
            }
        }
    }
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
        .ok_or_else(|| fields.unknown_of_translation(rest))?;
    Ok((key, Some(field)))
}

#[cfg(test)]
mod tests;
