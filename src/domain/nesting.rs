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

/// The maximum nesting of documents, including the outermost.
pub const MAX_NESTED_DOCUMENTS: usize = 8;
/// The maximum nesting of messages in a request or response: the limit of common clients.
pub const MAX_NESTED_MESSAGES: usize = 100;

/// The maximum depth of a task that may have a certain value.
///
/// The depth of a task is 1, or one more than the depth of the task that manages it. Only imports
/// and restores create managed tasks. The depth of an existing task grows only if a restore makes
/// it managed again; its contents are then what they were before, and so within the limits.
#[derive(Clone, Debug)]
pub struct DepthLimit {
    /// The maximum depth of a task that can have the value.
    pub max_depth: usize,
    pub violation: Violation,
}

impl DepthLimit {
    /// The limit for a task that will manage new tasks.
    pub fn for_managing_task(at: &Path<'_>) -> Self {
        let description = format!("would nest documents more than {MAX_NESTED_DOCUMENTS} deep");
        Self {
            max_depth: MAX_NESTED_DOCUMENTS - 1,
            violation: Violation::new(at, Reason::NestingTooDeep, description),
        }
    }

    /// The limit for the outermost task of a guide that follows from this limit for a task so many
    /// levels below it.
    pub fn below(self, levels: usize) -> Self {
        Self {
            max_depth: self.max_depth.saturating_sub(levels),
            ..self
        }
    }

    /// The limit for a value that nests this many messages below its step; `None` if every task may
    /// have it.
    fn for_value(messages: usize, at: &Path<'_>) -> Option<Self> {
        // A step of the outermost document is the second level of messages. Each nested document
        // adds four: step, question, answer, document.
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

pub fn step_depth_limits(content: &StepContent, at: &Path<'_>) -> Vec<DepthLimit> {
    let instructions = at.field("instructions");
    let mut limits = instruction_depth_limits(&content.instructions, 0, &instructions);
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
                limits.extend(DepthLimit::for_value(messages, &at.field(field)));
            }
        }
    }
    let translations = at.field("translations");
    for (language, translation) in &content.translations {
        let at = translations.key(language.as_str());
        limits.extend(translation_depth_limits(translation, &at));
    }
    limits
}

/// The limits of the JSON values of a step's translation.
pub fn translation_depth_limits(translation: &StepTranslation, at: &Path<'_>) -> Vec<DepthLimit> {
    // The entry of the map and the translation.
    instruction_depth_limits(&translation.instructions, 2, &at.field("instructions"))
}

/// The limits of instructions that are nested in this many messages below their step.
fn instruction_depth_limits(list: &[Instruction], within: usize, at: &Path<'_>) -> Vec<DepthLimit> {
    let limit = |(index, Instruction(members)): (usize, &Instruction)| {
        let messages = within + 1 + object_wire_depth(members);
        DepthLimit::for_value(messages, &at.index(index))
    };
    list.iter().enumerate().filter_map(limit).collect()
}

/// Fails if a task is deeper than a limit of its values allows. A task without a depth does not
/// exist, and is skipped because the write fails for that reason.
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
