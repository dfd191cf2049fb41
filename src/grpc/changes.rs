//! ChangeService: decode, one store call, encode; or a wait, after which the call is asked again.

use std::time::Duration;

use prost_types::Duration as ProtoDuration;
use tonic::{Request, Response, Status};

use super::{
    Services,
    call::respond,
    decode::{self, Field, field},
    encode,
    page_token::PageTokens,
};
use crate::{
    call_context::{CallContext, CallWait},
    domain::{
        Result,
        change_feed::{FeedEntry, FeedStart},
        ids::TaskId,
        violation::{Reason, Violations},
    },
    proto::v1::{
        ChangeStart, ListChangesRequest, ListChangesResponse, change_service_server::ChangeService,
    },
};

/// The longest that a call waits for changes.
const MAX_WAIT: Duration = Duration::from_secs(60);

#[tonic::async_trait]
impl ChangeService for Services {
    async fn list_changes(
        &self,
        request: Request<ListChangesRequest>,
    ) -> Result<Response<ListChangesResponse>, Status> {
        respond(request, async |caller, request| {
            let ListChangesRequest {
                cursor,
                start,
                task,
                page_size,
                wait,
            } = request;
            // A cursor is valid whatever else is sent.
            let tokens = self.page_tokens(&caller, "ListChanges", &());
            let (start, task, size, wait) = decode::all(|violations| {
                let start = feed_start(&cursor, start, &tokens, violations);
                let field = Field::root("task", violations);
                let task = field::optional_guid(&task, TaskId::parse, field);
                let size = field::page_size(page_size, violations);
                let wait = wait_time(wait, Field::root("wait", violations));
                Some((start?, task, size?, wait?))
            })?;
            let account = self.account(&caller);
            // The start at the present has nothing to wait for.
            let waits = !wait.is_zero() && start != FeedStart::Now && CallContext::may_wait();
            // It is made before the read, so that it sees what is written behind that.
            let watch = waits.then(|| account.watch_changes());
            let page = account.list_changes(start, task, size).await?;
            if let Some(watch) = watch
                && page.entries.is_empty()
                && page.is_at_head
                && let Some(ready) = watch.wait(page.next.position)?
            {
                CallContext::ask_again(CallWait {
                    ready: Box::pin(ready),
                    at_most: wait,
                });
            }
            let change = |entry: FeedEntry| {
                let cursor = tokens.sign(&entry.cursor);
                encode::change(entry, cursor)
            };
            Ok(ListChangesResponse {
                next_cursor: tokens.sign(&page.next),
                changes: page.entries.into_iter().map(change).collect(),
                caught_up: page.caught_up,
            })
        })
        .await
    }
}

/// Where to start: exactly one of a cursor and a start.
fn feed_start(
    cursor: &str,
    start: i32,
    tokens: &PageTokens<'_>,
    violations: &mut Violations,
) -> Option<FeedStart> {
    if !cursor.is_empty() {
        let verified = tokens.verify(cursor).map(FeedStart::After);
        if verified.is_none() {
            let description =
                "is no cursor of this account in this database: begin anew with `start`";
            Field::root("cursor", violations).refuse(Reason::CursorInvalid, description);
        }
        if start != 0 {
            let description = "must not be sent beside `cursor`";
            Field::root("start", violations).refuse(Reason::FieldInvalid, description);
        }
        return verified;
    }
    let mut field = Field::root("start", violations);
    let listed = [ChangeStart::Now, ChangeStart::Oldest];
    let name = ChangeStart::as_str_name;
    match field::enum_value(start, "a start of changes", listed, name, &mut field)? {
        ChangeStart::Now => Some(FeedStart::Now),
        ChangeStart::Oldest => Some(FeedStart::Oldest),
        ChangeStart::Unspecified => {
            let description = "is required, unless `cursor` is sent";
            field.refuse(Reason::FieldRequired, description);
            None
        }
    }
}

/// How long to wait: 0 to [`MAX_WAIT`].
fn wait_time(wait: Option<ProtoDuration>, mut field: Field<'_>) -> Option<Duration> {
    let ProtoDuration { seconds, nanos } = wait.unwrap_or_default();
    // The library's conversion accepts any number of nanoseconds, and negates what is negative.
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    let wait = u64::try_from(seconds).ok().zip(nanos);
    let wait = wait.map(|(seconds, nanos)| Duration::new(seconds, nanos));
    let wait = wait.filter(|wait| *wait <= MAX_WAIT);
    if wait.is_none() {
        let description = format!("must be from 0 to {} seconds", MAX_WAIT.as_secs());
        field.refuse(Reason::FieldOutOfRange, description);
    }
    wait
}
