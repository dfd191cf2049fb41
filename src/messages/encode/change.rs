//! Changes, and the work of an index.

use super::timestamp;
use crate::{
    domain::{
        change_feed::FeedEntry,
        index_work::{AcknowledgeOutcome, IndexWork, IndexWorkState},
    },
    proto::v1,
};

/// An entry of the change feed, with the text of its cursor.
pub fn change(entry: FeedEntry, cursor: String) -> v1::Change {
    v1::Change {
        kind: (entry.kind as i16).into(),
        task: entry.task.to_string(),
        step: entry.step.map(|step| step.to_string()).unwrap_or_default(),
        etag: entry.etag.map(|it| it.into_string()).unwrap_or_default(),
        fields: entry.fields,
        changed_ts: Some(timestamp(entry.changed)),
        subject: entry.subject,
        rpc: entry.rpc.to_owned(),
        transaction: entry.cursor.transaction.to_string(),
        transaction_end: entry.is_last,
        cursor,
        step_count: entry.step_count,
    }
}

/// A task or step that an index has to read or to forget.
pub fn index_work(work: IndexWork) -> v1::IndexWork {
    let state = match work.state {
        IndexWorkState::New => v1::IndexState::New,
        IndexWorkState::Changed => v1::IndexState::Changed,
        IndexWorkState::Deleted => v1::IndexState::Deleted,
    };
    v1::IndexWork {
        guid: work.guid.to_string(),
        kind: work.kind.number(),
        task: work.task.to_string(),
        state: state.into(),
        etag: work.etag,
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
