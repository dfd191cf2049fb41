//! Statuses of calls that the state of a resource forbids.

use tonic::Status;
use tonic_types::PreconditionViolation;

use super::{Failure, reason_name};
use crate::{domain::Precondition, proto::v1::ErrorReason};

/// How a task stops being managed, and how to delete it then.
const UNLINK: &str = "Update that observation first: set `linked` in its `feedback_config` to \
                      false, or remove the answer whose `link` is the task. The task and its step \
                      stay: delete the step, then the task";

/// FAILED_PRECONDITION, with a violation for each resource or field that prevents the call.
pub fn status(precondition: Precondition) -> Status {
    // What each violation says; the message, if it is empty.
    let mut short = "";
    let mut managed_by = None;
    let (reason, subjects, message): (_, Vec<String>, String) = match precondition {
        Precondition::LinkedImportOnly { paths, new_values } => {
            let message = match new_values {
                true => {
                    "a linked observation has a new answer: only ImportTask creates links. Import \
                     the guide with it, or leave it out"
                }
                false => {
                    "only ImportTask creates links. Import the guide with `linked`, or leave it out"
                }
            };
            (ErrorReason::LinkedImportOnly, paths, message.to_owned())
        }
        Precondition::TaskHasSteps { task } => (
            ErrorReason::TaskHasSteps,
            vec![task.to_string()],
            format!("task {task} has steps; set `force` to delete them too"),
        ),
        Precondition::TaskReferenced { task, by } => {
            short = "the subtask step refers to the task";
            let message = format!(
                "subtask steps of other tasks refer to task {task}: delete them first, or have \
                 them refer to another task"
            );
            (ErrorReason::TaskReferenced, texts(&by), message)
        }
        Precondition::TaskManaged { task, by } => {
            managed_by = by;
            let observation = by.map_or_else(
                || "an observation".to_owned(),
                |step| format!("observation {step}"),
            );
            let message = format!("{observation} manages task {task}. {UNLINK}");
            (ErrorReason::TaskManaged, vec![task.to_string()], message)
        }
        Precondition::StepManaged { step, task } => (
            ErrorReason::StepManaged,
            vec![step.to_string()],
            format!(
                "step {step} goes to task {task}, which an observation of its task manages. {UNLINK}"
            ),
        ),
        Precondition::AbsentSteps { steps } => {
            short = "the document does not list the step";
            let message = absent_steps_message(steps.len());
            (ErrorReason::AbsentSteps, texts(&steps), message)
        }
        Precondition::MissingSubtasks { steps } => {
            short = "the task that the step refers to is gone";
            let message = missing_subtasks_message(steps.len());
            (ErrorReason::RevisionUnrestorable, texts(&steps), message)
        }
        Precondition::MissingSubtask { step, task } => (
            ErrorReason::RevisionUnrestorable,
            vec![step.to_string()],
            format!("step {step} goes to task {task}, which is gone: restore that task first"),
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
        } => (
            ErrorReason::RevisionInUse,
            vec![format!("{task}/{number}")],
            format!(
                "revision {number} of task {task} has the alias {}: remove it first, or \
                 set it on another revision",
                alias.as_str()
            ),
        ),
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
    let description = if short.is_empty() { &message } else { short };
    let listed = subjects.into_iter().take(Precondition::MAX_LISTED_STEPS);
    let violations: Vec<_> = listed
        .map(|subject| PreconditionViolation::new(reason_name(reason), subject, description))
        .collect();
    let mut failure = Failure::new(reason, message).with_counts(violations.len(), total);
    if let Some(step) = managed_by {
        failure = failure.with("managed_by", step);
    }
    failure.details.set_precondition_failure(violations);
    failure.into()
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
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
