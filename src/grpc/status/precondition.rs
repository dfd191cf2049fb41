//! Statuses of calls that the state of a resource forbids.

use tonic::Status;
use tonic_types::PreconditionViolation;

use super::failure::{Failure, reason_name};
use crate::{
    domain::{Precondition, ids::StepId},
    proto::v1::ErrorReason,
};

/// FAILED_PRECONDITION, with a violation for each resource or field that prevents the call.
pub fn status(failed: &Precondition) -> Status {
    let message = failed.to_string();
    let of_message = message.as_str();
    // The subjects of the violations, and what these say about them.
    let (reason, subjects, description) = match failed {
        Precondition::LinkedImportOnly { path } => (
            ErrorReason::LinkedImportOnly,
            vec![path.clone()],
            of_message,
        ),
        Precondition::NewLinkedValues { paths } => {
            (ErrorReason::LinkedImportOnly, paths.clone(), of_message)
        }
        Precondition::TaskHasSteps { task } => (
            ErrorReason::TaskHasSteps,
            vec![task.to_string()],
            of_message,
        ),
        Precondition::TaskReferenced { by, .. } => (
            ErrorReason::TaskReferenced,
            texts(by),
            "the subtask step refers to the task",
        ),
        Precondition::TaskManaged { task, .. } => {
            (ErrorReason::TaskManaged, vec![task.to_string()], of_message)
        }
        Precondition::StepManaged { step, .. } => {
            (ErrorReason::StepManaged, vec![step.to_string()], of_message)
        }
        Precondition::AbsentSteps { steps } => (
            ErrorReason::AbsentSteps,
            texts(steps),
            "the document does not list the step",
        ),
        Precondition::MissingSubtasks { steps } => (
            ErrorReason::RevisionUnrestorable,
            texts(steps),
            "the task that the step refers to is gone",
        ),
        Precondition::MissingSubtask { step, .. } => (
            ErrorReason::RevisionUnrestorable,
            vec![step.to_string()],
            of_message,
        ),
        Precondition::CursorExpired => (
            ErrorReason::CursorExpired,
            vec!["cursor".to_owned()],
            of_message,
        ),
        Precondition::RevisionInUse { task, number, .. } => (
            ErrorReason::RevisionInUse,
            vec![format!("{task}/{number}")],
            of_message,
        ),
        Precondition::RequestIdReused { .. } => (
            ErrorReason::RequestIdReused,
            vec!["request_id".to_owned()],
            of_message,
        ),
    };
    let total = subjects.len();
    let listed = subjects.into_iter().take(Precondition::MAX_LISTED_STEPS);
    let violations: Vec<_> = listed
        .map(|subject| PreconditionViolation::new(reason_name(reason), subject, description))
        .collect();
    let mut failure = Failure::new(reason, &message).with_counts(violations.len(), total);
    if let Precondition::TaskManaged { by: Some(step), .. } = failed {
        failure = failure.with("managed_by", step);
    }
    failure.details.set_precondition_failure(violations);
    failure.into()
}

fn texts(steps: &[StepId]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}
