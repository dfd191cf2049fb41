//! An encoded task or step as a map of fields, for masks, comparisons and merges. Fields stay
//! encoded, because dynamically decoded JSON takes many times as much memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{fields::ResourceFields, wire};

/// The language tag as written, if the field is in a translation, and the number of the field.
pub type FieldKey<'m> = (Option<&'m str>, u32);

/// Replaces the number of a field for the translation itself, which may have no fields.
pub const TRANSLATION: u32 = 0;

/// Each field with its encoded values. A repeated field may have several.
#[derive(Default, PartialEq)]
pub struct EncodedResource<'m>(pub BTreeMap<FieldKey<'m>, Vec<&'m [u8]>>);

impl<'m> EncodedResource<'m> {
    /// `None` if the bytes are not a message.
    pub fn read(resource: &ResourceFields, message: &'m [u8]) -> Option<Self> {
        let mut read = Self::default();
        for field in wire::fields(message)? {
            if field.number != resource.translations {
                read.add((None, field.number), field.whole);
                continue;
            }
            let (language, translation) = map_entry(field.content)?;
            read.0.entry((Some(language), TRANSLATION)).or_default();
            for field in wire::fields(translation)? {
                read.add((Some(language), field.number), field.whole);
            }
        }
        Some(read)
    }

    fn add(&mut self, key: FieldKey<'m>, value: &'m [u8]) {
        self.0.entry(key).or_default().push(value);
    }

    /// The language tags of its translations.
    pub fn languages(&self) -> BTreeSet<&'m str> {
        self.0
            .keys()
            .filter_map(|(language, _)| *language)
            .collect()
    }

    /// Changes the spelling of a translation's tag.
    pub fn rename(&mut self, language: &str, renamed: &'m str) {
        let is_renamed = |(tag, _): &FieldKey<'_>, _: &mut _| *tag == Some(language);
        let fields: Vec<_> = self.0.extract_if(.., is_renamed).collect();
        let fields = fields.into_iter();
        self.0
            .extend(fields.map(|((_, number), values)| ((Some(renamed), number), values)));
    }

    pub fn encode(&self, resource: &ResourceFields) -> Vec<u8> {
        let mut message = Vec::new();
        let fields: Vec<_> = self.0.iter().collect();
        for part in fields.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let values: Vec<&[u8]> = part
                .iter()
                .flat_map(|(_, values)| *values)
                .copied()
                .collect();
            let values = values.concat();
            match part.first() {
                Some(((Some(language), _), _)) => {
                    let mut entry = Vec::new();
                    wire::append(MAP_KEY, language.as_bytes(), &mut entry);
                    wire::append(MAP_VALUE, &values, &mut entry);
                    wire::append(resource.translations, &entry, &mut message);
                }
                // The fields outside of translations come first.
                Some(((None, _), _)) | None => message = values,
            }
        }
        message
    }
}

const MAP_KEY: u32 = 1;
pub const MAP_VALUE: u32 = 2;

/// The key and the value of an entry in a map of messages.
fn map_entry(entry: &[u8]) -> Option<(&str, &[u8])> {
    let fields = wire::fields(entry)?;
    let content = |number| {
        let field = fields.iter().find(|field| field.number == number);
        field.map_or(&[][..], |field| field.content)
    };
    let key = str::from_utf8(content(MAP_KEY)).ok()?;
    Some((key, content(MAP_VALUE)))
}
