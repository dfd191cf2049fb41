//! The masks of a document.

use std::collections::BTreeSet;

use prost_types::FieldMask;

use super::{
    fields::{FieldUse, SHORTHAND, STEP, TASK},
    mask::{MAX_MASK_PATHS, Mask},
};
use crate::domain::{
    import::AbsentFields,
    violation::{Reason, Violations},
};

/// The masks of the tasks and steps of a document.
#[derive(Debug)]
pub struct DocumentMasks {
    pub task: Mask,
    pub step: Mask,
}

impl DocumentMasks {
    /// The masks of documents without `reset_fields`.
    pub fn new(absent: AbsentFields) -> Self {
        Self::resetting(absent, BTreeSet::new(), BTreeSet::new())
    }

    /// Decodes `reset_fields` of a request, whose paths look like `task.roles` and
    /// `steps.dependencies`.
    pub fn read(
        absent: AbsentFields,
        reset: Option<FieldMask>,
        violations: &mut Violations,
    ) -> Self {
        let FieldMask { paths } = reset.unwrap_or_default();
        let mut field = violations.at("reset_fields");
        if absent == AbsentFields::Reset && !paths.is_empty() {
            let description = "must be empty with ABSENT_FIELDS_RESET, which resets all fields";
            field.refuse(Reason::FieldInvalid, description);
            return Self::new(absent);
        }
        let mut list = field.field("paths");
        let (mut task, mut step) = (BTreeSet::new(), BTreeSet::new());
        if list.at_most(paths.len(), MAX_MASK_PATHS) {
            for (index, path) in paths.iter().enumerate() {
                let (resource, fields, reset, name) = match path.split_once('.') {
                    Some((resource @ "task", name)) => (resource, &TASK, &mut task, name),
                    Some((resource @ "steps", name)) => (resource, &STEP, &mut step, name),
                    _ => {
                        let description = "must be `task.` or `steps.` and the name of a field";
                        list.index(index)
                            .refuse(Reason::MaskPathUnknown, description);
                        continue;
                    }
                };
                match fields.find(name) {
                    Some((number, _, FieldUse::Honored)) => {
                        reset.insert(number);
                    }
                    Some((_, name, _)) => {
                        let description = match name {
                            SHORTHAND => "cannot be reset: reset `dependencies` instead",
                            _ => "is not changed by an import, so it cannot be reset",
                        };
                        list.index(index).refuse(Reason::FieldInvalid, description);
                    }
                    None => {
                        let description = format!(
                            "is not a field: use `{resource}.` and one of {}",
                            fields.honored().join(", ")
                        );
                        list.index(index)
                            .refuse(Reason::MaskPathUnknown, description);
                    }
                }
            }
        }
        Self::resetting(absent, task, step)
    }

    fn resetting(absent: AbsentFields, task: BTreeSet<u32>, step: BTreeSet<u32>) -> Self {
        Self {
            task: Mask::for_document(absent, task, &TASK),
            step: Mask::for_document(absent, step, &STEP),
        }
    }
}
