//! ChangeService: decode, read, encode. With `wait`, reads again when there may be changes.

use std::time::Duration;

use prost_types::Duration as ProtoDuration;

use super::{call::Call, page::PageTokens};
use crate::{
    call_context::CallContext,
    domain::{
        Result,
        change_feed::{FeedEntry, FeedStart},
        ids::TaskId,
        violation::{Reason, Violations},
    },
    messages::{
        decode::{self, Field, field},
        encode,
    },
    proto::v1::{Change, ChangeStart, ListChangesRequest, ListChangesResponse},
};

/// The maximum time that a call waits for changes.
const MAX_WAIT: Duration = Duration::from_secs(60);

impl Call {
    pub async fn list_changes(self, request: ListChangesRequest) -> Result<ListChangesResponse> {
        // A cursor stays valid if the other fields change.
        let tokens = self.page_tokens(&());
        let (mut start, task, size, wait) = decode::all(|violations| {
            let start = feed_start(&request.cursor, request.start, &tokens, violations);
            let field = violations.at("task");
            let task = field::optional_guid(&request.task, TaskId::parse, field);
            let size = field::page_size(request.page_size, violations);
            let wait = wait_time(request.wait, violations.at("wait"));
            Some((start?, task, size?, wait?))
        })?;
        // A call that starts now has nothing to wait for.
        let mut waits = !wait.is_zero() && start != FeedStart::Now;
        let page = loop {
            // It starts before the read, so it sees every later write.
            let watch = waits.then(|| self.account.watch_changes());
            // Boxed, so a waiting call does not hold the memory of a read.
            let page = Box::pin(self.account.list_changes(start, task, size)).await?;
            let is_empty = page.entries.is_empty() && page.is_at_head;
            let Some(watch) = watch.filter(|_| is_empty) else {
                break page;
            };
            let mut looked = page.next;
            let of_task = task.map(|task| (&self.account, task));
            let Some(ready) = watch.wait(&mut looked, of_task)? else {
                break page;
            };
            // After this time, the call returns the next page even if it is empty.
            waits = CallContext::wait(ready, wait).await?;
            start = FeedStart::After(looked);
        };
        let signed = |entry: FeedEntry| {
            let cursor = tokens.sign(&entry.cursor);
            change(entry, cursor)
        };
        let count = page.entries.len();
        let (changes, next_cursor) =
            tokens.found(page.entries, Some(page.next), |entry| entry.cursor, signed);
        Ok(ListChangesResponse {
            caught_up: page.caught_up && changes.len() == count,
            changes,
            next_cursor,
        })
    }
}

/// Where to start: exactly one of a cursor and a start.
fn feed_start(
    cursor: &str,
    start: i32,
    tokens: &PageTokens,
    violations: &mut Violations,
) -> Option<FeedStart> {
    if !cursor.is_empty() {
        let verified = tokens.verify(cursor).map(FeedStart::After);
        if verified.is_none() {
            let description =
                "is not a cursor of this account in this database; start again with `start`";
            violations
                .at("cursor")
                .refuse(Reason::CursorInvalid, description);
        }
        if start != 0 {
            let description = "must not be sent with `cursor`";
            violations
                .at("start")
                .refuse(Reason::FieldInvalid, description);
        }
        return verified;
    }
    let mut field = violations.at("start");
    if start == 0 {
        let description = "is required, unless `cursor` is sent";
        field.refuse(Reason::FieldRequired, description);
        return None;
    }
    let known = |number| match ChangeStart::try_from(number).ok()? {
        ChangeStart::Now => Some(FeedStart::Now),
        ChangeStart::Oldest => Some(FeedStart::Oldest),
        ChangeStart::Unspecified => None,
    };
    field.enum_value(start, "a start of changes", "ChangeStart", known)
}

/// How long to wait: 0 to [`MAX_WAIT`].
fn wait_time(wait: Option<ProtoDuration>, mut field: Field<'_>) -> Option<Duration> {
    let ProtoDuration { seconds, nanos } = wait.unwrap_or_default();
    // The library's conversion accepts any number of nanoseconds, and makes negative values
    // positive.
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    let wait = u64::try_from(seconds).ok().zip(nanos);
    let wait = wait.map(|(seconds, nanos)| Duration::new(seconds, nanos));
    let description = format!("must be from 0 to {} seconds", MAX_WAIT.as_secs());
    field.in_range(wait.filter(|wait| *wait <= MAX_WAIT), &description)
}

/// An entry of the change feed, with the text of its cursor.
fn change(entry: FeedEntry, cursor: String) -> Change {
    Change {
        kind: entry.kind as i32,
        task: entry.task.to_string(),
        step: encode::text(entry.step),
        etag: encode::text(entry.etag),
        fields: entry.fields,
        changed_ts: Some(encode::timestamp(entry.changed)),
        subject: entry.subject,
        rpc: entry.rpc.to_owned(),
        transaction: entry.cursor.transaction.to_string(),
        transaction_end: entry.is_last,
        cursor,
        step_count: entry.step_count,
    }
}
