//! Calls that wait for changes. Writes of this server wake them immediately, and writes of other servers
//! after about [`POLL_INTERVAL`].

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, TryAcquireError, watch},
    time::{MissedTickBehavior, interval, sleep},
};

use super::{Account, Store};
use crate::domain::{
    Error, Overload, Result,
    change_feed::{FeedCursor, FeedStart},
    ids::{AccountId, TaskId},
    page::PageSize,
};

/// How often the database is polled for writes of other servers, once per account with waiting calls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long a woken call waits for further changes, so that one response can contain several.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// The maximum number of waiting calls of all accounts.
const MAX_WAITING: usize = 1_000;
/// The maximum number of waiting calls of one account.
const MAX_ACCOUNT_WAITING: usize = 100;
/// The maximum number of changed tasks that a feed remembers. Beyond that, it forgets the oldest
/// changes.
const MAX_KNOWN_TASKS: usize = 10_000;

/// The calls of this server that wait for changes.
pub struct FeedWaits {
    /// The watched accounts. Emptied at shutdown, which ends all waits.
    feeds: Mutex<HashMap<AccountId, Feed>>,
    /// The places for waiting calls; closed at shutdown.
    places: Arc<Semaphore>,
    writes: AtomicU64,
    /// Held while old changes of an account are deleted.
    pub pruning: tokio::sync::Mutex<()>,
}

impl Default for FeedWaits {
    fn default() -> Self {
        Self {
            feeds: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_WAITING)),
            writes: AtomicU64::default(),
            pruning: tokio::sync::Mutex::default(),
        }
    }
}

/// A feed that is watched.
#[derive(Clone, Default)]
struct Feed {
    news: watch::Sender<FeedNews>,
    scan: Arc<tokio::sync::Mutex<FeedScan>>,
}

/// The new entries of a feed, as far as this server knows.
#[derive(Clone, Copy, Default, PartialEq)]
struct FeedNews {
    /// The newest position that a poll found.
    head: i64,
    /// How many times a write may have added an entry without a position.
    wakes: u64,
}

/// What one call has read from a feed, shared by all calls that wait for changes of a task.
#[derive(Default)]
struct FeedScan {
    /// All entries up to here have been read; `None` before the first read.
    cursor: Option<FeedCursor>,
    /// `tasks` covers all entries from this position on.
    from: i64,
    /// The newest position of each changed task.
    tasks: BTreeMap<TaskId, i64>,
    /// [`FeedNews::wakes`] before the last read.
    wakes: u64,
}

impl FeedScan {
    /// Reads the new entries. The first read starts after `start`.
    async fn read(&mut self, account: &Account, start: FeedCursor) -> Result<()> {
        // If this fails, the next read starts over.
        let Self {
            cursor,
            mut tasks,
            mut from,
            ..
        } = mem::take(self);
        let mut cursor = cursor.unwrap_or(start);
        if tasks.is_empty() || tasks.len() > MAX_KNOWN_TASKS {
            tasks.clear();
            from = cursor.position;
        }
        loop {
            let page = account.list_changes(FeedStart::After(cursor), None, PageSize::LARGEST);
            let page = page.await?;
            cursor = page.next;
            let entries = page.entries.into_iter();
            tasks.extend(entries.map(|entry| (entry.task, entry.cursor.position)));
            if page.is_at_head {
                break;
            }
        }
        (self.cursor, self.from, self.tasks) = (Some(cursor), from, tasks);
        Ok(())
    }

    /// Whether the task may have changed after a position.
    fn may_have(&self, task: TaskId, after: i64) -> bool {
        let newest = self.tasks.get(&task);
        after < self.from || newest.is_some_and(|newest| *newest > after)
    }
}

impl FeedWaits {
    fn feeds(&self) -> MutexGuard<'_, HashMap<AccountId, Feed>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the calls that wait for changes of an account.
    pub fn wake(&self, account: &AccountId) {
        self.update_news(account, |news| news.wakes += 1);
    }

    fn update_news(&self, account: &AccountId, update: impl FnOnce(&mut FeedNews)) {
        if let Some(feed) = self.feeds().get(account) {
            feed.news.send_if_modified(|news| {
                let before = *news;
                update(news);
                *news != before
            });
        }
    }

    /// Counts a write of this server, and returns how many there were.
    pub fn count_write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of waiting calls.
    pub fn waiting(&self) -> usize {
        MAX_WAITING - self.places.available_permits()
    }

    /// The accounts that are being watched. Forgets all others.
    fn watched(&self) -> Vec<AccountId> {
        let mut feeds = self.feeds();
        feeds.retain(|_, feed| feed.news.receiver_count() > 0);
        feeds.keys().cloned().collect()
    }

    fn watch(&self, account: &AccountId) -> FeedWatch {
        let mut feeds = self.feeds();
        // Subscribed to under the lock: a feed without subscribers is removed.
        let feed = feeds.entry(account.clone()).or_default();
        FeedWatch {
            wakes: feed.news.borrow().wakes,
            news: feed.news.subscribe(),
            feed: feed.clone(),
            places: Arc::clone(&self.places),
        }
    }
}

/// Watches an account's feed, from the creation of the watch on.
pub struct FeedWatch {
    feed: Feed,
    news: watch::Receiver<FeedNews>,
    /// [`FeedNews::wakes`] when the watch was created.
    wakes: u64,
    places: Arc<Semaphore>,
}

impl FeedWatch {
    /// Waits until there may be entries after `cursor`, for all tasks or for one. With a task,
    /// entries of other tasks advance `cursor`; one call reads them for all waiting calls. Returns
    /// `None` at shutdown, when every call returns immediately. Fails if too many calls are
    /// waiting.
    pub fn wait<'a>(
        self,
        cursor: &'a mut FeedCursor,
        task_filter: Option<(&'a Account, TaskId)>,
    ) -> Result<Option<impl Future<Output = ()> + Send + use<'a>>> {
        let place = match self.places.try_acquire_owned() {
            Ok(place) if self.feed.news.receiver_count() <= MAX_ACCOUNT_WAITING => place,
            Err(TryAcquireError::Closed) => return Ok(None),
            _ => return Err(Error::Overloaded(Overload::WaitsFull)),
        };
        // Drops the sender, so that `wait_for` fails at shutdown.
        let (scan, mut news, mut wakes) = (self.feed.scan, self.news, self.wakes);
        Ok(Some(async move {
            let _place = place;
            loop {
                let is_new = |news: &FeedNews| news.head > cursor.position || news.wakes > wakes;
                // Fails at shutdown.
                if news.wait_for(is_new).await.is_err() {
                    return;
                }
                sleep(GATHER_TIME).await;
                let Some((account, task)) = task_filter else {
                    return;
                };
                let mut scan = scan.lock().await;
                let FeedNews { head, wakes: now } = *news.borrow();
                let seen = scan.cursor.map_or(-1, |cursor| cursor.position);
                if seen < head || scan.wakes < now {
                    // Boxed, so a waiting call does not hold the memory of a read. The call will get
                    // the error itself.
                    if Box::pin(scan.read(account, *cursor)).await.is_err() {
                        return;
                    }
                    scan.wakes = now;
                }
                if scan.may_have(task, cursor.position) {
                    return;
                }
                let until = scan
                    .cursor
                    .filter(|scanned| scanned.position > cursor.position);
                *cursor = until.unwrap_or(*cursor);
                wakes = scan.wakes;
            }
        }))
    }
}

impl Account {
    /// Watches the account's feed from now on.
    pub fn watch_changes(&self) -> FeedWatch {
        self.feed_waits().watch(&self.id)
    }
}

impl Store {
    /// Polls for writes of other servers and wakes waiting calls, until the future is dropped.
    pub async fn follow_changes(self) {
        let waits = &self.inner.feed_waits;
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            for id in waits.watched() {
                // While the database does not respond, the calls keep waiting.
                if let Ok((head, has_new)) = self.account(&id).feed_head().await {
                    waits.update_news(&id, |news| {
                        news.head = head;
                        news.wakes += u64::from(has_new);
                    });
                }
            }
        }
    }

    /// Ends all waits, and lets no call wait from now on.
    pub fn end_waits(&self) {
        let waits = &self.inner.feed_waits;
        waits.places.close();
        waits.feeds().clear();
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use tokio::time::timeout;
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_poll_wakes_the_calls_that_know_only_older_positions() {
        let waits = FeedWaits::default();
        let account = AccountId::parse("a").expect("an account");
        let wait = async |position| {
            let mut cursor = FeedCursor {
                position,
                transaction: Uuid::nil(),
            };
            let watch = waits.watch(&account);
            let waiting = watch.wait(&mut cursor, None).expect("a place");
            waiting.expect("no shutdown").await
        };
        let short = Duration::from_secs(5);
        // Receivers start with the newest state.
        let _feed = waits.watch(&account);
        waits.update_news(&account, |news| news.head = 6);
        let (less, more) = (wait(5), wait(6));
        assert!(timeout(short, less).await.is_ok(), "it is woken");
        assert!(timeout(short, more).await.is_err(), "it waits");
    }

    #[test]
    fn a_server_lets_1000_calls_wait_and_100_of_an_account() {
        let waits = FeedWaits::default();
        let wait = |account: usize| {
            let account = AccountId::parse(&account.to_string()).expect("an account");
            let cursor = Box::leak(Box::new(FeedCursor {
                position: 0,
                transaction: Uuid::nil(),
            }));
            waits.watch(&account).wait(cursor, None)
        };
        let mut waiting: Vec<_> = (0..1_000).map(|call| wait(call / 100)).collect();
        assert_eq!(waiting.iter().filter(|it| it.is_ok()).count(), 1_000);
        assert!(matches!(wait(10), Err(Error::Overloaded(_))));
        // A finished call frees a place, of the server and of its account.
        waiting.truncate(999);
        assert!(matches!(wait(8), Err(Error::Overloaded(_))));
        assert!(wait(10).is_ok());
        assert!(wait(9).is_ok());
    }
}
