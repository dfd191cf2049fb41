//! Statuses of calls that the state of a resource forbids.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, PreconditionViolation};

use super::{DOMAIN, build, reason_name, violation_counts};
use crate::{domain::Precondition, proto::v1::ErrorReason};

/// How a task stops being managed, and how to delete it then.
const UNLINK: &str = "Update that observation first: set `linked` in its `feedback_config` to \
                      false, or remove the answer whose `link` is the task. The task and its step \
                      stay: delete the step, then the task";

/// FAILED_PRECONDITION, with a violation for each resource or field that prevents the call.
pub fn status(precondition: Precondition) -> Status {
    let managed_by = managed_by(&precondition);
    let short = short_description(&precondition);
    let (reason, subjects, message): (_, Vec<String>, _) = match precondition {
        Precondition::LinkedImportOnly { paths, new_values } => (
            ErrorReason::LinkedImportOnly,
            paths,
            match new_values {
                true => {
                    "a linked observation has a new answer: only ImportTask creates links. Import \
                     the guide with it, or leave it out"
                }
                false => {
                    "only ImportTask creates links. Import the guide with `linked`, or leave it out"
                }
            }
            .to_owned(),
        ),
        Precondition::TaskHasSteps { task } => (
            ErrorReason::TaskHasSteps,
            vec![task.to_string()],
            format!("task {task} has steps; set `force` to delete them too"),
        ),
        Precondition::TaskReferenced { task, by } => (
            ErrorReason::TaskReferenced,
            by.iter().map(ToString::to_string).collect(),
            format!(
                "subtask steps of other tasks refer to task {task}: delete them first, or have \
                 them refer to another task"
            ),
        ),
        Precondition::TaskManaged { task, by } => (
            ErrorReason::TaskManaged,
            vec![task.to_string()],
            match by {
                Some(step) => format!("observation {step} manages task {task}. {UNLINK}"),
                None => format!("an observation manages task {task}. {UNLINK}"),
            },
        ),
        Precondition::StepManaged { step, task } => (
            ErrorReason::StepManaged,
            vec![step.to_string()],
            format!(
                "step {step} goes to task {task}, which an observation of its task manages. {UNLINK}"
            ),
        ),
        Precondition::AbsentSteps { steps } => (
            ErrorReason::AbsentSteps,
            steps.iter().map(ToString::to_string).collect(),
            absent_steps_message(steps.len()),
        ),
        Precondition::MissingSubtasks { steps } => (
            ErrorReason::RevisionUnrestorable,
            steps.iter().map(ToString::to_string).collect(),
            missing_subtasks_message(steps.len()),
        ),
        Precondition::CursorExpired => (
            ErrorReason::CursorExpired,
            vec!["cursor".to_owned()],
            "changes behind the cursor are no longer kept, or the database was restored to a state \
             before it: take a new cursor with `start` CHANGE_START_NOW, then read everything once"
                .to_owned(),
        ),
        Precondition::RevisionInUse {
            task,
            number,
            alias,
        } => {
            let alias = alias.as_str();
            (
                ErrorReason::RevisionInUse,
                vec![format!("{task}/{number}")],
                format!(
                    "revision {number} of task {task} has the alias {alias}: remove it first, or \
                     set it on another revision"
                ),
            )
        }
        Precondition::RequestIdReused { id } => (
            ErrorReason::RequestIdReused,
            vec!["request_id".to_owned()],
            format!(
                "request_id {id} was used before with another payload: use a new id for another \
                 request"
            ),
        ),
    };
    let total = subjects.len();
    let violations: Vec<_> = subjects
        .into_iter()
        .take(Precondition::MAX_LISTED_STEPS)
        .map(|subject| {
            PreconditionViolation::new(reason_name(reason), subject, short.unwrap_or(&message))
        })
        .collect();
    let mut metadata = violation_counts(violations.len(), total);
    metadata.extend(managed_by.map(|step| ("managed_by".to_owned(), step)));
    let mut details = ErrorDetails::with_error_info(reason_name(reason), DOMAIN, metadata);
    details.set_precondition_failure(violations);
    build(Code::FailedPrecondition, message, details)
}

/// A short description for each violation; without one, it is the message.
fn short_description(precondition: &Precondition) -> Option<&'static str> {
    match precondition {
        Precondition::AbsentSteps { .. } => Some("the document does not list the step"),
        Precondition::TaskReferenced { .. } => Some("the subtask step refers to the task"),
        Precondition::MissingSubtasks { .. } => Some("the task that the step refers to is gone"),
        Precondition::LinkedImportOnly { .. }
        | Precondition::TaskHasSteps { .. }
        | Precondition::TaskManaged { .. }
        | Precondition::StepManaged { .. }
        | Precondition::CursorExpired
        | Precondition::RevisionInUse { .. }
        | Precondition::RequestIdReused { .. } => None,
    }
}

/// The observation that prevents the call.
fn managed_by(precondition: &Precondition) -> Option<String> {
    if let Precondition::TaskManaged { by, .. } = precondition {
        by.map(|step| step.to_string())
    } else {
        None
    }
}

fn missing_subtasks_message(count: usize) -> String {
    let steps = match count {
        1 => "subtask step of the revision refers to a task that is",
        _ => "subtask steps of the revision refer to tasks that are",
    };
    format!(
        "{count} {steps} gone: restore what was deleted, or set `skip_missing_subtasks` to leave \
         the steps out"
    )
}

fn absent_steps_message(count: usize) -> String {
    let (steps, them) = match count {
        1 => ("step", "it"),
        _ => ("steps", "them"),
    };
    let shown = Precondition::MAX_LISTED_STEPS;
    let cut = match count > shown {
        true => format!(" (the first {shown} are shown)"),
        false => String::new(),
    };
    format!(
        "the document does not list {count} {steps} of the task{cut}; set `absent_steps` to keep \
         or delete {them}"
    )
}
