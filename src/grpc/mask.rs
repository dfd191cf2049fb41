//! Update masks: which fields of a message an update looks at, and what it
//! does to those that are not there.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::FieldMask;

use super::{decode::at_most, ignored::Ignored};
use crate::domain::{
    patch::Edit,
    translation::Language,
    violation::{Path, Reason, Violations},
};

/// Most paths of one mask: every field of every language, and room to spare.
pub const PATHS_MAX: usize = 1_000;
const TRANSLATIONS: &str = "translations";
const MASK: Path<'static> = Path::root("update_mask");

/// The fields of a resource as masks name them.
#[derive(Debug)]
pub struct Shape {
    /// Fields that an update honors.
    pub honored: &'static [&'static str],
    /// Fields that it ignores and lists.
    pub listed: &'static [&'static str],
    /// Fields that it reads for its own ends.
    pub silent: &'static [&'static str],
    /// Fields of a translation.
    pub row: &'static [&'static str],
}

/// The fields of a task.
pub const TASK: Shape = Shape {
    honored: &["dependencies", "name", "published", "roles", TRANSLATIONS],
    listed: &[
        "account_id",
        "created_ts",
        "dependency_shorthand",
        "dirty_record",
        "idx",
        "modified_ts",
        "mvn_indexed",
        "mvn_info",
        "mvn_ts",
        "mvn_version",
        "parent_guid",
        "product_id",
        "steps",
        "type",
    ],
    silent: &["etag", "guid"],
    row: &["locked", "name"],
};

/// The fields of a step.
pub const STEP: Shape = Shape {
    honored: &[
        "body",
        "cost",
        "dependencies",
        "feedback_config",
        "instructions",
        "looping",
        "parts",
        "published",
        "skills",
        "subtask_id",
        "subtask_pid",
        "tags",
        "title",
        TRANSLATIONS,
    ],
    listed: &[
        "account_id",
        "created_ts",
        "dependency_shorthand",
        "dirty_record",
        "link",
        "modified_ts",
        "product_id",
        "r_data",
        "task",
        "type",
    ],
    silent: &["etag", "guid"],
    row: &["body", "feedback_config", "instructions", "locked", "title"],
};

/// Which fields an update looks at.
#[derive(Debug, PartialEq, Eq)]
pub enum Mask {
    /// No mask: the populated ones.
    Populated,
    /// `*`: every honored one.
    All,
    /// The named ones.
    Paths(Paths),
}

/// What a mask names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Paths {
    fields: BTreeSet<&'static str>,
    rows: BTreeMap<Language, RowMask>,
}

/// What a mask names of one language.
#[derive(Debug, PartialEq, Eq)]
pub enum RowMask {
    /// The row.
    Whole,
    /// Single fields of it.
    Fields(RowFields),
}

/// The fields that a mask names of a row.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowFields(BTreeSet<&'static str>);

/// What an update does to translations.
#[derive(Debug)]
pub enum Rows<'a> {
    /// Replaces the sent ones and keeps the others.
    Merge,
    /// Replaces all.
    Replace,
    /// Changes these.
    Only(&'a BTreeMap<Language, RowMask>),
}

impl Mask {
    /// Reads a mask. Notes paths that no update takes, and lists those that
    /// this one ignores.
    pub fn parse(
        mask: Option<FieldMask>,
        shape: &Shape,
        faults: &mut Violations,
        ignored: &mut Ignored,
    ) -> Self {
        let FieldMask { paths } = mask.unwrap_or_default();
        match paths.as_slice() {
            [] => return Self::Populated,
            [path] if path == "*" => return Self::All,
            _ => {}
        }
        let list = MASK.field("paths");
        let mut named = Paths::default();
        if at_most(paths.len(), PATHS_MAX, &list, faults) {
            for (index, path) in paths.iter().enumerate() {
                match shape.read(path) {
                    Ok(name) => named.add(name, ignored),
                    Err((reason, description)) => {
                        faults.add(&list.index(index), reason, description);
                    }
                }
            }
        }
        Self::Paths(named)
    }

    /// Whether a field was named on its own, not by `*`.
    pub fn names(&self, field: &str) -> bool {
        match self {
            Self::Populated | Self::All => false,
            Self::Paths(paths) => paths.fields.contains(field),
        }
    }

    /// What the update does to a field, given what was sent for it. Nothing of
    /// a field that the mask leaves out is looked at.
    pub fn edit<M, T>(
        &self,
        field: &str,
        sent: Option<M>,
        decode: impl FnOnce(M) -> Option<T>,
    ) -> Edit<T> {
        let selected = match self {
            Self::Populated => sent.is_some(),
            Self::All => true,
            Self::Paths(paths) => paths.fields.contains(field),
        };
        edit(selected, sent, decode)
    }

    /// What the update does to translations.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Self::Populated => Rows::Merge,
            Self::All => Rows::Replace,
            Self::Paths(paths) if paths.fields.contains(TRANSLATIONS) => Rows::Replace,
            Self::Paths(paths) => Rows::Only(&paths.rows),
        }
    }
}

impl RowFields {
    /// What the update does to a field of the row.
    pub fn edit<M, T>(
        &self,
        field: &str,
        sent: Option<M>,
        decode: impl FnOnce(M) -> Option<T>,
    ) -> Edit<T> {
        edit(self.names(field), sent, decode)
    }

    /// Whether the mask names a field.
    pub fn names(&self, field: &str) -> bool {
        self.0.contains(field)
    }
}

fn edit<M, T>(selected: bool, sent: Option<M>, decode: impl FnOnce(M) -> Option<T>) -> Edit<T> {
    match (selected, sent) {
        (false, _) => Edit::Keep,
        (true, None) => Edit::Clear,
        (true, Some(sent)) => decode(sent).map_or(Edit::Keep, Edit::Set),
    }
}

impl Paths {
    fn add(&mut self, name: Name, ignored: &mut Ignored) {
        match name {
            Name::Honored(field) => {
                self.fields.insert(field);
            }
            Name::Listed(field) => ignored.add(field),
            Name::Silent => {}
            Name::Row(language) => {
                self.rows.insert(language, RowMask::Whole);
            }
            Name::RowField(language, field) => {
                let row = self.rows.entry(language);
                match row.or_insert_with(|| RowMask::Fields(RowFields::default())) {
                    RowMask::Whole => {}
                    RowMask::Fields(fields) => {
                        fields.0.insert(field);
                    }
                }
            }
        }
    }
}

/// What one path names.
enum Name {
    Honored(&'static str),
    Listed(&'static str),
    Silent,
    Row(Language),
    RowField(Language, &'static str),
}

/// Why a path is refused.
type Refusal = (Reason, &'static str);

const UNKNOWN: Refusal = (
    Reason::MaskPathUnknown,
    "is not a path that this mask may name",
);
const MALFORMED: Refusal = (
    Reason::FieldInvalid,
    "does not name a well-formed language tag",
);

impl Shape {
    fn read(&self, path: &str) -> Result<Name, Refusal> {
        let find = |fields: &[&'static str], name: &str| {
            fields.iter().copied().find(|field| *field == name)
        };
        if let Some(field) = find(self.honored, path) {
            return Ok(Name::Honored(field));
        }
        if let Some(field) = find(self.listed, path) {
            return Ok(Name::Listed(field));
        }
        if find(self.silent, path).is_some() {
            return Ok(Name::Silent);
        }
        if path == "*" {
            return Err((Reason::FieldInvalid, "`*` must stand alone"));
        }
        let below = path
            .strip_prefix(TRANSLATIONS)
            .and_then(|rest| rest.strip_prefix('.'))
            .ok_or(UNKNOWN)?;
        let (key, field) = split_key(below)?;
        let language = Language::parse(key).ok_or(MALFORMED)?;
        match field {
            None => Ok(Name::Row(language)),
            Some(field) => {
                let field = find(self.row, field).ok_or(UNKNOWN)?;
                Ok(Name::RowField(language, field))
            }
        }
    }
}

/// The key of a map and the field below it. The key ends at the first dot, or
/// stands in backticks.
fn split_key(path: &str) -> Result<(&str, Option<&str>), Refusal> {
    let Some(quoted) = path.strip_prefix('`') else {
        return Ok(match path.split_once('.') {
            Some((key, field)) => (key, Some(field)),
            None => (path, None),
        });
    };
    let (key, rest) = quoted.split_once('`').ok_or(MALFORMED)?;
    if rest.is_empty() {
        return Ok((key, None));
    }
    let field = rest.strip_prefix('.').ok_or(UNKNOWN)?;
    Ok((key, Some(field)))
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
