//! Texts in other languages, row by row. A row that a caller writes is locked
//! unless it says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use super::{at_most, feedback, json, line, sent_list};
use crate::{
    domain::{
        translation::{
            LANGUAGES_MAX, Language, RowEdit, StepOverlay, StepOverlayEdit, TaskOverlay,
            TaskOverlayEdit, TranslationsEdit,
        },
        violation::{Path, Reason, Violations},
    },
    grpc::mask::{RowFields, RowMask, Rows},
    proto::v1,
};

/// A row of the wire.
pub trait Row: Sized + Default {
    /// What it says as a whole.
    type Overlay;
    /// What single fields of it say.
    type Fields;

    /// Reads a row as a whole.
    fn whole(self, path: &Path<'_>, faults: &mut Violations) -> Option<Self::Overlay>;

    /// Reads the masked fields of a row and nothing else.
    fn masked(self, mask: &RowFields, path: &Path<'_>, faults: &mut Violations) -> Self::Fields;
}

impl Row for v1::TaskTranslation {
    type Overlay = TaskOverlay;
    type Fields = TaskOverlayEdit;

    fn whole(self, path: &Path<'_>, faults: &mut Violations) -> Option<TaskOverlay> {
        let Self { name, locked } = self;
        Some(TaskOverlay {
            name: name.and_then(|name| line(name, &path.field("name"), faults)),
            locked: locked.unwrap_or(true),
        })
    }

    fn masked(self, mask: &RowFields, path: &Path<'_>, faults: &mut Violations) -> TaskOverlayEdit {
        let Self { name, locked } = self;
        TaskOverlayEdit {
            name: mask.edit("name", name, |name| line(name, &path.field("name"), faults)),
            locked: lock(mask, locked),
        }
    }
}

impl Row for v1::StepTranslation {
    type Overlay = StepOverlay;
    type Fields = StepOverlayEdit;

    fn whole(self, path: &Path<'_>, faults: &mut Violations) -> Option<StepOverlay> {
        let Self {
            title,
            body,
            instructions,
            feedback_config,
            locked,
        } = self;
        Some(StepOverlay {
            title: title.and_then(|title| line(title, &path.field("title"), faults)),
            body: body.and_then(|text| super::body(text, &path.field("body"), faults)),
            instructions: json::instructions(instructions, &path.field("instructions"), faults),
            feedback: feedback::translated(feedback_config, &path.field("feedback_config"), faults),
            locked: locked.unwrap_or(true),
        })
    }

    fn masked(self, mask: &RowFields, path: &Path<'_>, faults: &mut Violations) -> StepOverlayEdit {
        let Self {
            title,
            body,
            instructions,
            feedback_config,
            locked,
        } = self;
        StepOverlayEdit {
            title: mask.edit("title", title, |title| {
                line(title, &path.field("title"), faults)
            }),
            body: mask.edit("body", body, |text| {
                super::body(text, &path.field("body"), faults)
            }),
            instructions: mask
                .names("instructions")
                .then(|| json::instructions(instructions, &path.field("instructions"), faults)),
            feedback: mask.edit("feedback_config", sent_list(feedback_config), |list| {
                feedback::translated(list, &path.field("feedback_config"), faults)
            }),
            locked: lock(mask, locked),
        }
    }
}

fn lock(mask: &RowFields, locked: Option<bool>) -> Option<bool> {
    mask.names("locked").then(|| locked.unwrap_or(true))
}

/// All rows of a resource. `path` is that of its translations.
pub fn all<R: Row>(
    rows: BTreeMap<String, R>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> BTreeMap<Language, R::Overlay> {
    let mut decoded = BTreeMap::new();
    if !at_most(rows.len(), LANGUAGES_MAX, path, faults) {
        return decoded;
    }
    let mut seen = BTreeSet::new();
    for (key, row) in rows {
        let path = path.key(&key);
        let language = Language::parse(&key);
        match &language {
            None => {
                let description = "is not a well-formed language tag";
                faults.add(&path, Reason::FieldInvalid, description);
            }
            Some(language) => note_twice(language, &mut seen, &path, faults),
        }
        if let (Some(row), Some(language)) = (row.whole(&path, faults), language) {
            decoded.insert(language, row);
        }
    }
    decoded
}

fn note_twice(
    language: &Language,
    seen: &mut BTreeSet<Language>,
    path: &Path<'_>,
    faults: &mut Violations,
) {
    if !seen.insert(language.clone()) {
        let description = format!("is {language} again; each language may stand once");
        faults.add(path, Reason::FieldInvalid, description);
    }
}

/// What an update does to rows.
pub fn edits<R: Row>(
    rows: BTreeMap<String, R>,
    mask: Rows<'_>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> TranslationsEdit<R::Overlay, R::Fields> {
    let (replace, rows) = match mask {
        Rows::Merge => (false, put(all(rows, path, faults))),
        Rows::Replace => (true, put(all(rows, path, faults))),
        Rows::Only(masks) => (false, masked(rows, masks, path, faults)),
    };
    TranslationsEdit { replace, rows }
}

fn put<O, F>(rows: BTreeMap<Language, O>) -> BTreeMap<Language, RowEdit<O, F>> {
    let rows = rows.into_iter();
    rows.map(|(language, row)| (language, RowEdit::Put(row)))
        .collect()
}

type RowEdits<R> = BTreeMap<Language, RowEdit<<R as Row>::Overlay, <R as Row>::Fields>>;

/// The masked rows. Rows of other languages are not looked at.
fn masked<R: Row>(
    rows: BTreeMap<String, R>,
    masks: &BTreeMap<Language, RowMask>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> RowEdits<R> {
    let mut edits: RowEdits<R> = masks
        .iter()
        .map(|(language, mask)| (language.clone(), absent::<R>(mask)))
        .collect();
    if masks.is_empty() {
        return edits;
    }
    let mut seen = BTreeSet::new();
    for (key, row) in rows {
        let Some((language, mask)) =
            Language::parse(&key).and_then(|language| masks.get_key_value(&language))
        else {
            continue;
        };
        let path = path.key(&key);
        note_twice(language, &mut seen, &path, faults);
        let edit = match mask {
            RowMask::Whole => row.whole(&path, faults).map(RowEdit::Put),
            RowMask::Fields(fields) => Some(RowEdit::Fields(row.masked(fields, &path, faults))),
        };
        if let Some(edit) = edit {
            edits.insert(language.clone(), edit);
        }
    }
    edits
}

/// What a masked row that was not sent becomes.
fn absent<R: Row>(mask: &RowMask) -> RowEdit<R::Overlay, R::Fields> {
    match mask {
        RowMask::Whole => RowEdit::Remove,
        RowMask::Fields(fields) => {
            let nowhere = Path::root("translations");
            let fields = R::default().masked(fields, &nowhere, &mut Violations::new());
            RowEdit::Reset(fields)
        }
    }
}
