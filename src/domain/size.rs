//! Encoded sizes of tasks and steps. A task or step that is too large to be returned is not
//! stored, and a page ends before rows that do not fit are read.
//!
//! Sizes are upper bounds: texts are counted exactly, and their framing is rounded up. The size of
//! an element, such as a condition or a JSON value, is at least half of the memory that it takes
//! when decoded. So a guide that can be exported can also be imported: it stays within the limit on
//! decoded requests in `server/layers/admit.rs`.

use super::{
    dependency::Group,
    error::{Error, Result, SizedResource},
    external_id::ExternalId,
    feedback::Feedback,
    json::{Instruction, Json, WIRE_OVERHEAD, object_wire_bytes, wire_bytes},
    step::{Step, StepContent},
    task::{LockedTask, Task, TaskContent},
    text::Body,
    translation::{Language, StepTranslation, TaskTranslation},
};

/// Bytes of the fixed fields of a task or step.
const FIXED_BYTES: usize = 400;
/// Bytes that a step's id adds to its task.
pub const STEP_ID_BYTES: i64 = 38;
/// Bytes reserved below the maximum message size, because names from elsewhere may grow: the title
/// of a subtask step, and the name of a managed task.
pub const RESERVED_BYTES: i64 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSize {
    pub listed: i64,
    pub bodies: i64,
}

impl StepSize {
    pub fn for_step(step: &Step) -> Self {
        // Every field is named, so that none is forgotten.
        let StepContent {
            body,
            dependencies,
            external_id,
            instructions,
            looping,
            parts,
            published: _,
            skills,
            tags,
            translations,
        } = &step.content;
        let tags = [parts, skills, tags].into_iter().flatten();
        let tags: usize = tags.map(|tag| tag.as_str().len() + WIRE_OVERHEAD).sum();
        let looping = looping.as_ref().map_or(0, |looping| {
            let values = looping.array.iter().chain(&looping.iterations);
            let values: usize = values.map(|Json(value)| wire_bytes(value)).sum();
            looping.alias.as_str().len() + values + 4 * WIRE_OVERHEAD
        });
        let own = Self {
            listed: stored_count(
                FIXED_BYTES
                    + step.title.len()
                    + dependencies.as_ref().map_or(0, Group::wire_bytes)
                    + external_id_bytes(external_id.as_ref())
                    + external_id_bytes(step.subtask_external_id.as_ref())
                    + feedback_bytes(step.kind.feedback())
                    + instruction_bytes(instructions)
                    + looping
                    + tags
                    + object_wire_bytes(&step.r_data),
            ),
            bodies: body_bytes(body.as_ref()),
        };
        let translations = translations.iter();
        translations.fold(own, |sum, (language, translation)| {
            sum.plus(Self::for_translation(language, translation))
        })
    }

    pub fn for_translation(language: &Language, translation: &StepTranslation) -> Self {
        let title = translation.title.as_ref();
        Self {
            listed: stored_count(
                language.as_str().len()
                    + title.map_or(0, |title| title.as_str().len())
                    + instruction_bytes(&translation.instructions)
                    + feedback_bytes(translation.feedback.as_ref())
                    + 4 * WIRE_OVERHEAD,
            ),
            bodies: body_bytes(translation.body.as_ref()),
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            listed: self.listed + other.listed,
            bodies: self.bodies + other.bodies,
        }
    }

    pub fn minus(self, other: Self) -> Self {
        Self {
            listed: self.listed - other.listed,
            bodies: self.bodies - other.bodies,
        }
    }

    fn total(self) -> i64 {
        self.listed.saturating_add(self.bodies)
    }

    pub fn check(self, max_message_bytes: usize) -> Result<()> {
        check(SizedResource::Step, self.total(), max_message_bytes)
    }
}

/// The encoded size of a task without its list of steps, in bytes.
pub fn task_size(task: &Task) -> i64 {
    let TaskContent {
        dependencies,
        published: _,
        // There are at most seven.
        roles: _,
        external_id,
        translations,
    } = &task.content;
    let translations: i64 = translations
        .iter()
        .map(|(language, translation)| task_translation_size(language, translation))
        .sum();
    let own = FIXED_BYTES
        + task.name.as_str().len()
        + dependencies.as_ref().map_or(0, Group::wire_bytes)
        + external_id_bytes(external_id.as_ref());
    stored_count(own) + translations
}

pub fn external_id_bytes(id: Option<&ExternalId>) -> usize {
    id.map_or(0, |id| id.as_str().len() + WIRE_OVERHEAD)
}

/// The maximum bytes of a task and its steps in an export.
pub fn exported_bytes<'s>(task: &Task, steps: impl IntoIterator<Item = &'s Step>) -> usize {
    let steps = steps
        .into_iter()
        .map(StepSize::for_step)
        .map(StepSize::total);
    let bytes = steps.fold(task_size(task), i64::saturating_add);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

pub fn task_translation_size(language: &Language, translation: &TaskTranslation) -> i64 {
    let name = translation.name.as_ref();
    let name = name.map_or(0, |name| name.as_str().len());
    stored_count(language.as_str().len() + name + WIRE_OVERHEAD)
}

/// Refuses a list of this many steps if the task would then be too large to be returned.
pub fn check_step_list(task: &LockedTask, step_count: i64, max_message_bytes: usize) -> Result<()> {
    let size = task.size + step_count.saturating_mul(STEP_ID_BYTES);
    check(SizedResource::Task, size, max_message_bytes)
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

fn body_bytes(body: Option<&Body>) -> i64 {
    stored_count(body.map_or(0, |body| body.as_str().len()))
}

fn feedback_bytes(feedback: Option<&Feedback>) -> usize {
    const VALUE_BYTES: usize = 64;
    feedback.map_or(0, |feedback| {
        let values = feedback.values.iter();
        let values: usize = values
            .map(|value| value.key.as_str().len() + value.value.as_str().len() + VALUE_BYTES)
            .sum();
        feedback.name.as_str().len() + values + VALUE_BYTES
    })
}

fn instruction_bytes(list: &[Instruction]) -> usize {
    let object = |Instruction(members): &Instruction| WIRE_OVERHEAD + object_wire_bytes(members);
    list.iter().map(object).sum()
}

/// A number of bytes or items as the database stores it.
pub fn stored_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
