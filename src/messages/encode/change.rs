//! Changes, and the work of an index.

use super::timestamp;
use crate::{
    domain::{
        change_feed::{ChangeKind, FeedEntry},
        index_work::{AcknowledgeOutcome, IndexKind, IndexWork, IndexWorkState},
    },
    proto::v1,
};

/// An entry of the change feed. `cursor` makes the text of its cursor.
pub fn change(entry: FeedEntry, cursor: String) -> v1::Change {
    let FeedEntry {
        cursor: behind,
        kind,
        task,
        step,
        etag,
        fields,
        changed,
        subject,
        rpc,
        is_last,
        step_count,
    } = entry;
    let kind = match kind {
        ChangeKind::TaskCreated => v1::ChangeKind::TaskCreated,
        ChangeKind::TaskUpdated => v1::ChangeKind::TaskUpdated,
        ChangeKind::TaskDeleted => v1::ChangeKind::TaskDeleted,
        ChangeKind::StepCreated => v1::ChangeKind::StepCreated,
        ChangeKind::StepUpdated => v1::ChangeKind::StepUpdated,
        ChangeKind::StepDeleted => v1::ChangeKind::StepDeleted,
    };
    v1::Change {
        kind: kind.into(),
        task: task.to_string(),
        step: step.map(|step| step.to_string()).unwrap_or_default(),
        etag: etag.map(|etag| etag.into_string()).unwrap_or_default(),
        fields,
        changed_ts: Some(timestamp(changed)),
        subject,
        rpc: rpc.to_owned(),
        transaction: behind.transaction.to_string(),
        transaction_end: is_last,
        cursor,
        step_count,
    }
}

/// A task or step that an index has to read or to forget.
pub fn index_work(work: IndexWork) -> v1::IndexWork {
    let IndexWork {
        guid,
        kind,
        task,
        state,
        etag,
        listed: _,
    } = work;
    let kind = match kind {
        IndexKind::Task => v1::IndexKind::Task,
        IndexKind::Step => v1::IndexKind::Step,
    };
    let state = match state {
        IndexWorkState::New => v1::IndexState::New,
        IndexWorkState::Changed => v1::IndexState::Changed,
        IndexWorkState::Deleted => v1::IndexState::Deleted,
    };
    v1::IndexWork {
        guid: guid.to_string(),
        kind: kind.into(),
        task: task.to_string(),
        state: state.into(),
        etag,
    }
}

/// The result of an acknowledgement.
pub fn index_result(outcome: AcknowledgeOutcome) -> v1::IndexResult {
    match outcome {
        AcknowledgeOutcome::Acknowledged => v1::IndexResult::Acknowledged,
        AcknowledgeOutcome::Stale => v1::IndexResult::Stale,
        AcknowledgeOutcome::NotFound => v1::IndexResult::NotFound,
    }
}
