//! Statuses of calls that the state of a resource does not allow.

use tonic::Status;
use tonic_types::PreconditionViolation;

use super::failure::{Failure, reason_name};
use crate::{
    domain::{Precondition, ids::StepId},
    proto::v1::ErrorReason,
};

/// FAILED_PRECONDITION with a violation for each resource or field that prevents the call.
pub fn status(failed: &Precondition) -> Status {
    let message = failed.to_string();
    let (reason, subjects) = match failed {
        Precondition::LinkedImportOnly { path } => {
            (ErrorReason::LinkedImportOnly, vec![path.clone()])
        }
        Precondition::NewLinkedValues { paths } => (ErrorReason::LinkedImportOnly, paths.clone()),
        Precondition::TaskHasSteps { task } => (ErrorReason::TaskHasSteps, vec![task.to_string()]),
        Precondition::TaskReferenced { by, .. } => (ErrorReason::TaskReferenced, texts(by)),
        Precondition::TaskManaged { task, .. } => {
            (ErrorReason::TaskManaged, vec![task.to_string()])
        }
        Precondition::StepManaged { step, .. } => (ErrorReason::StepManaged, texts(&[*step])),
        Precondition::AbsentSteps { steps } => (ErrorReason::AbsentSteps, texts(steps)),
        Precondition::MissingSubtasks { steps } => {
            (ErrorReason::RevisionUnrestorable, texts(steps))
        }
        Precondition::MissingSubtask { step, .. } => {
            (ErrorReason::RevisionUnrestorable, texts(&[*step]))
        }
        Precondition::CursorExpired => (ErrorReason::CursorExpired, vec!["cursor".to_owned()]),
        Precondition::RevisionInUse { task, number, .. } => {
            (ErrorReason::RevisionInUse, vec![format!("{task}/{number}")])
        }
        Precondition::RequestIdReused { .. } => {
            (ErrorReason::RequestIdReused, vec!["request_id".to_owned()])
        }
    };
    let description = match failed {
        Precondition::TaskReferenced { .. } => "the subtask step refers to the task",
        Precondition::AbsentSteps { .. } => "the document does not list the step",
        Precondition::MissingSubtasks { .. } => "the task that the step refers to was deleted",
        _ => message.as_str(),
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
