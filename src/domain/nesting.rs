//! Limits of nesting: of documents, and of JSON values in the documents of managed tasks.
//! A write that would make an export too deep to be read or imported is refused.

use std::collections::BTreeMap;

use super::{
    error::Result,
    ids::TaskId,
    json::{Instruction, Json, object_wire_depth, wire_depth},
    step::StepContent,
    translation::StepTranslation,
    violation::{Path, Reason, Violation, Violations},
};

/// Deepest nesting of documents, the outermost counted.
pub const MAX_NESTED_DOCUMENTS: usize = 8;
/// Deepest nesting of messages in a request or response: the limit of common clients.
pub const MAX_NESTED_MESSAGES: usize = 100;

/// The greatest depth of a task that may have a certain value of a request.
///
/// The depth of a task is 1, or one more than that of the task that manages it. Only imports
/// and restores create managed tasks. The depth of an existing task grows only when a restore
/// manages a task again that is as it was when it was managed, and so within the limits.
#[derive(Clone, Debug)]
pub struct DepthLimit {
    /// The greatest depth of a task that can have the value.
    pub max_depth: usize,
    pub violation: Violation,
}

impl DepthLimit {
    /// The limit of a task that is to manage new tasks.
    pub fn for_managing_task(at: &Path<'_>) -> Self {
        let description = format!("would nest documents more than {MAX_NESTED_DOCUMENTS} deep");
        Self {
            max_depth: MAX_NESTED_DOCUMENTS - 1,
            violation: Violation::new(at, Reason::NestingTooDeep, description),
        }
    }

    /// The limit that the outermost task of a guide has by this limit of a task which is this many
    /// levels below it.
    pub fn below(self, levels: usize) -> Self {
        Self {
            max_depth: self.max_depth.saturating_sub(levels),
            ..self
        }
    }

    /// The limit of a value that nests this many messages below its step; `None` if every
    /// task may have it.
    fn of_value(messages: usize, at: &Path<'_>) -> Option<Self> {
        // A step of an outermost document is nested in two messages, itself counted. Each
        // document adds four: step, question, answer, document.
        let max_depth = (MAX_NESTED_MESSAGES + 2).saturating_sub(messages) / 4;
        if max_depth >= MAX_NESTED_DOCUMENTS {
            return None;
        }
        let description = format!(
            "nests too deep for this task: in an export messages nest at most {MAX_NESTED_MESSAGES} \
             deep, so only tasks down to depth {max_depth} may have the value"
        );
        Some(Self {
            max_depth,
            violation: Violation::new(at, Reason::NestingTooDeep, description),
        })
    }
}

pub fn limits_of_step(content: &StepContent, at: &Path<'_>) -> Vec<DepthLimit> {
    let instructions = at.field("instructions");
    let mut limits = limits_of_instructions(&content.instructions, 0, &instructions);
    if let Some(looping) = &content.looping {
        let at = at.field("looping");
        let values = [
            ("array", &looping.array),
            ("iterations", &looping.iterations),
        ];
        for (field, value) in values {
            if let Some(Json(value)) = value {
                // The looping and the value itself.
                let messages = 2 + wire_depth(value);
                limits.extend(DepthLimit::of_value(messages, &at.field(field)));
            }
        }
    }
    let translations = at.field("translations");
    for (language, translation) in &content.translations {
        let at = translations.key(language.as_str());
        limits.extend(limits_of_translation(translation, &at));
    }
    limits
}

/// The limits of the JSON values of a step's translation.
pub fn limits_of_translation(translation: &StepTranslation, at: &Path<'_>) -> Vec<DepthLimit> {
    // The entry of the map and the translation.
    limits_of_instructions(&translation.instructions, 2, &at.field("instructions"))
}

/// The limits of instructions that stand within this many messages below their step.
fn limits_of_instructions(list: &[Instruction], within: usize, at: &Path<'_>) -> Vec<DepthLimit> {
    let limit = |(index, Instruction(members)): (usize, &Instruction)| {
        let messages = within + 1 + object_wire_depth(members);
        DepthLimit::of_value(messages, &at.index(index))
    };
    list.iter().enumerate().filter_map(limit).collect()
}

/// Fails if a task is deeper than a limit of its values. A task without a depth does not
/// exist; it is skipped, as the write fails for that reason.
pub fn check_depths(
    limits: &[(TaskId, DepthLimit)],
    depths: &BTreeMap<TaskId, usize>,
) -> Result<()> {
    let mut violations = Violations::new();
    for (task, limit) in limits {
        if depths
            .get(task)
            .is_some_and(|depth| *depth > limit.max_depth)
        {
            violations.push(limit.violation.clone());
        }
    }
    Ok(violations.into_result()?)
}
