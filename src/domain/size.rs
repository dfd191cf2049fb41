//! Encoded sizes of tasks and steps. A task or step that is too large to be returned is not
//! stored, and a page ends before rows that do not fit are read.
//!
//! Sizes are upper bounds: fields whose size depends on the content are counted exactly, and
//! the others by their largest size.

use super::{
    dependency::Group,
    error::{Error, Result, SizedResource},
    feedback::{Feedback, FeedbackValue, TYPE_ENUM},
    json::{Instruction, Json, object_bytes, value_bytes},
    step::{Looping, Step, StepContent},
    task::Task,
    text::Tag,
    translation::{Language, StepOverlay, TaskOverlay},
    wire::{BOOL_FIELD_BYTES, field_bytes},
};

/// The most bytes that a task or step has without its texts, conditions and lists.
const FIXED_BYTES: usize = 400;
/// The most bytes that a translation of a step has in addition to its texts and lists.
const OVERLAY_FRAMING_BYTES: usize = 20;
/// The most bytes by which the size of a step exceeds that of its message, but for
/// [`MAX_OVERLAY_EXCESS_BYTES`] a translation.
pub const MAX_STEP_EXCESS_BYTES: i64 = 280;
/// The most bytes by which the size of a step's translation exceeds that of its message.
pub const MAX_OVERLAY_EXCESS_BYTES: i64 = 16;
/// Bytes of the id of a task in an answer that manages it.
const LINK_BYTES: usize = 36;
/// Bytes that a step's id adds to its task.
pub const STEP_ID_BYTES: i64 = 38;
/// Bytes reserved below the largest message, as names that come from elsewhere may grow:
/// the title of a subtask step, and the name of a managed task.
pub const RESERVED_BYTES: i64 = 4096;

/// The encoded size of a step, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSize {
    /// Everything except bodies.
    pub listed: i64,
    /// Its body and those of its translations.
    pub bodies: i64,
}

impl StepSize {
    /// The size of a step.
    pub fn of(step: &Step) -> Self {
        let Step {
            title,
            kind,
            content,
            r_data,
            // Fixed fields.
            guid: _,
            account: _,
            task: _,
            product: _,
            link: _,
            revision: _,
        } = step;
        let StepContent {
            body,
            dependencies,
            instructions,
            looping,
            parts,
            published: _,
            skills,
            tags,
            translations,
        } = content;
        let own = Self {
            listed: stored_count(
                FIXED_BYTES
                    + title.len()
                    + dependencies.as_ref().map_or(0, Group::wire_bytes)
                    + feedback_bytes(10, kind.feedback())
                    + instruction_bytes(11, instructions)
                    + looping.as_ref().map_or(0, looping_bytes)
                    + tag_bytes(13, parts)
                    + tag_bytes(15, skills)
                    + tag_bytes(16, tags)
                    + object_bytes(23, r_data),
            ),
            bodies: stored_count(body.as_ref().map_or(0, |body| body.as_str().len())),
        };
        let overlays = translations.iter();
        overlays.fold(own, |sum, (language, overlay)| {
            sum.plus(Self::of_overlay(language, overlay))
        })
    }

    /// The size of a step's translation.
    pub fn of_overlay(language: &Language, overlay: &StepOverlay) -> Self {
        let StepOverlay {
            title,
            body,
            instructions,
            feedback,
            locked: _,
        } = overlay;
        Self {
            listed: stored_count(
                OVERLAY_FRAMING_BYTES
                    + field_bytes(1, language.as_str().len())
                    + title
                        .as_ref()
                        .map_or(0, |title| field_bytes(1, title.as_str().len()))
                    + instruction_bytes(3, instructions)
                    + feedback_bytes(4, feedback.as_ref()),
            ),
            bodies: stored_count(body.as_ref().map_or(0, |body| body.as_str().len())),
        }
    }

    /// The sum of two sizes.
    pub fn plus(self, other: Self) -> Self {
        Self {
            listed: self.listed + other.listed,
            bodies: self.bodies + other.bodies,
        }
    }

    /// The difference of two sizes.
    pub fn minus(self, other: Self) -> Self {
        Self {
            listed: self.listed - other.listed,
            bodies: self.bodies - other.bodies,
        }
    }

    /// Refuses a step that is too large to be returned.
    pub fn check(self, max_message_bytes: usize) -> Result<()> {
        let size = self.listed.saturating_add(self.bodies);
        check(SizedResource::Step, size, max_message_bytes)
    }
}

/// The encoded size of a task without its list of steps, in bytes.
pub fn task_size(task: &Task) -> i64 {
    let overlays = task.translations.iter();
    let overlays: i64 = overlays
        .map(|(language, overlay)| task_overlay_size(language, overlay))
        .sum();
    let dependencies = task.dependencies.as_ref().map(Group::wire_bytes);
    stored_count(FIXED_BYTES + task.name.as_str().len() + dependencies.unwrap_or_default())
        + overlays
}

/// The size of a task's translation, in bytes.
pub fn task_overlay_size(language: &Language, overlay: &TaskOverlay) -> i64 {
    let TaskOverlay { name, locked: _ } = overlay;
    let name = name
        .as_ref()
        .map_or(0, |name| field_bytes(1, name.as_str().len()));
    let language = field_bytes(1, language.as_str().len());
    let entry = language + field_bytes(2, name + BOOL_FIELD_BYTES);
    stored_count(field_bytes(8, entry))
}

/// Refuses a task that is too large to be returned with its list of steps.
pub fn check_task(task: &Task, max_message_bytes: usize) -> Result<()> {
    let steps = stored_count(task.steps.len()).saturating_mul(STEP_ID_BYTES);
    let size = task_size(task).saturating_add(steps);
    check(SizedResource::Task, size, max_message_bytes)
}

fn check(resource: SizedResource, size: i64, limit: usize) -> Result<()> {
    if size.saturating_add(RESERVED_BYTES) > stored_count(limit) {
        return Err(Error::TooLarge { resource, limit });
    }
    Ok(())
}

// The first parameter of these is the number of their field.

fn feedback_bytes(number: u32, feedback: Option<&Feedback>) -> usize {
    feedback.map_or(0, |feedback| {
        let Feedback {
            name,
            linked: _,
            values,
        } = feedback;
        let values = values.iter().map(|FeedbackValue { key, value, link }| {
            let link = link.map_or(0, |_| field_bytes(3, LINK_BYTES));
            let value = field_bytes(2, value.as_str().len()) + link;
            field_bytes(4, field_bytes(1, key.as_str().len()) + value)
        });
        let kind = field_bytes(2, TYPE_ENUM.len()) + BOOL_FIELD_BYTES;
        let name = field_bytes(1, name.as_str().len());
        field_bytes(number, name + kind + values.sum::<usize>())
    })
}

fn instruction_bytes(number: u32, list: &[Instruction]) -> usize {
    list.iter()
        .map(|Instruction(members)| field_bytes(number, object_bytes(1, members)))
        .sum()
}

fn looping_bytes(looping: &Looping) -> usize {
    let Looping {
        alias,
        array,
        iterations,
    } = looping;
    let values = array.iter().chain(iterations);
    let values = values.map(|Json(value)| field_bytes(2, value_bytes(value)));
    field_bytes(
        12,
        field_bytes(1, alias.as_str().len()) + values.sum::<usize>(),
    )
}

fn tag_bytes(number: u32, tags: &[Tag]) -> usize {
    let tags = tags.iter();
    tags.map(|tag| field_bytes(number, tag.as_str().len()))
        .sum()
}

/// A number of bytes or items as the database stores it.
pub fn stored_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
