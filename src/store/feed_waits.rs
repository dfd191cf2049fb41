//! Calls that wait for changes. Writes of this server wake them immediately, and writes of other servers
//! within [`POLL_INTERVAL`].

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use sea_orm::QuerySelect;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{Account, Store, entity::change_feed, error::StoreError, read::has_new_changes};
use crate::domain::{Error, Result, ids::AccountId};

/// How often the database is polled for writes of other servers, once per account with waiting calls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long a woken call waits for further changes, so that one response can contain several.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// The maximum number of waiting calls of all accounts.
const MAX_WAITING: usize = 1_000;
/// The maximum number of waiting calls of one account.
const MAX_WAITING_OF_ACCOUNT: usize = 100;

/// The calls of this server that wait for changes.
#[derive(Default)]
pub struct FeedWaits {
    accounts: Mutex<HashMap<AccountId, Watched>>,
    /// Whether calls may no longer wait.
    ended: AtomicBool,
    writes: AtomicU64,
    /// Held while old changes of an account are deleted.
    pub pruning: tokio::sync::Mutex<()>,
}

/// An account whose feed is watched.
struct Watched {
    /// Changed when there may be something new; dropped at shutdown.
    wake: watch::Sender<()>,
    watching: usize,
    waiting: usize,
    /// The newest position that a waiting call knows.
    head: i64,
}

impl FeedWaits {
    fn accounts(&self) -> MutexGuard<'_, HashMap<AccountId, Watched>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the calls that wait for changes of an account.
    pub fn wake(&self, account: &AccountId) {
        if let Some(watched) = self.accounts().get(account) {
            watched.wake.send_replace(());
        }
    }

    /// Counts a write of this server, and returns how many there were.
    pub fn count_write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.accounts()
            .values()
            .map(|watched| watched.waiting)
            .sum()
    }

    /// Watches the feed of an account from now on.
    fn watch(self: &Arc<Self>, account: &AccountId) -> FeedWatch {
        let new = || Watched {
            wake: watch::Sender::new(()),
            watching: 0,
            waiting: 0,
            head: 0,
        };
        let mut accounts = self.accounts();
        let woken = match self.ended.load(Ordering::Relaxed) {
            true => new().wake.subscribe(),
            false => {
                let watched = accounts.entry(account.clone()).or_insert_with(new);
                watched.watching += 1;
                watched.wake.subscribe()
            }
        };
        FeedWatch {
            woken,
            waits: Arc::clone(self),
            account: account.clone(),
            is_waiting: false,
        }
    }
}

/// Sees what changes in the feed of an account after it was made.
pub struct FeedWatch {
    woken: watch::Receiver<()>,
    waits: Arc<FeedWaits>,
    account: AccountId,
    is_waiting: bool,
}

impl FeedWatch {
    /// Waits until there may be entries after the position `head`. `None` at shutdown, when every call
    /// returns immediately. Fails if too many calls wait.
    pub fn wait(mut self, head: i64) -> Result<Option<impl Future<Output = ()> + Send + 'static>> {
        if !self.begin(head)? {
            return Ok(None);
        }
        Ok(Some(async move {
            // It fails at shutdown.
            if self.woken.changed().await.is_ok() {
                sleep(GATHER_TIME).await;
            }
        }))
    }

    fn begin(&mut self, head: i64) -> Result<bool> {
        let mut accounts = self.waits.accounts();
        let waiting: usize = accounts.values().map(|watched| watched.waiting).sum();
        let Some(watched) = accounts.get_mut(&self.account) else {
            return Ok(false);
        };
        if waiting >= MAX_WAITING || watched.waiting >= MAX_WAITING_OF_ACCOUNT {
            return Err(Error::Overloaded);
        }
        if watched.head != head {
            watched.head = head;
            if watched.waiting > 0 {
                // Calls that wait already may know only older positions. This one does not.
                let is_woken = self.woken.has_changed().unwrap_or(true);
                watched.wake.send_replace(());
                if !is_woken {
                    self.woken.mark_unchanged();
                }
            }
        }
        watched.waiting += 1;
        self.is_waiting = true;
        Ok(true)
    }
}

impl Drop for FeedWatch {
    fn drop(&mut self) {
        let mut accounts = self.waits.accounts();
        if let Some(watched) = accounts.get_mut(&self.account) {
            watched.waiting -= usize::from(self.is_waiting);
            watched.watching -= 1;
            if watched.watching == 0 {
                accounts.remove(&self.account);
            }
        }
    }
}

impl Account {
    /// Sees what changes in the account's feed from now on.
    pub fn watch_changes(&self) -> FeedWatch {
        self.feed_waits().watch(&self.id)
    }
}

impl Store {
    /// Wakes calls that wait for writes of other servers, until it is dropped.
    pub async fn follow_changes(self) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let waits = &self.inner.feed_waits;
            let waiting: Vec<AccountId> = {
                let accounts = waits.accounts();
                let waiting = accounts.iter().filter(|(_, watched)| watched.waiting > 0);
                waiting.map(|(account, _)| account.clone()).collect()
            };
            for account in waiting {
                // While the database does not answer, the calls go on waiting.
                let Ok((head, has_new)) = self.account(&account).feed_head().await else {
                    continue;
                };
                let mut accounts = waits.accounts();
                if let Some(watched) = accounts.get_mut(&account) {
                    if has_new || watched.head != head {
                        watched.wake.send_replace(());
                    }
                    watched.head = head;
                }
            }
        }
    }

    /// Ends the wait of every call, and lets none wait from now on.
    pub fn end_waits(&self) {
        let waits = &self.inner.feed_waits;
        let mut accounts = waits.accounts();
        waits.ended.store(true, Ordering::Relaxed);
        accounts.clear();
    }
}

impl Account {
    /// The newest position, and whether there are entries without one. The latter is read first: entries
    /// that are sequenced in between then show up in the position.
    async fn feed_head(&self) -> Result<(i64, bool), StoreError> {
        let scope = self.reader();
        let has_new = has_new_changes(scope).await?;
        let heads: Vec<i64> = scope
            .find::<change_feed::Entity>()
            .select_only()
            .column(change_feed::Column::Head)
            .into_tuple()
            .all(scope.db)
            .await?;
        Ok((heads.first().copied().unwrap_or_default(), has_new))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    /// A server that polls after the second call has begun sees nothing new.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_knows_of_more_wakes_those_that_know_of_less() {
        let waits = Arc::new(FeedWaits::default());
        let account = AccountId::parse("a").expect("an account");
        let wait = |head| {
            let waiting = waits.watch(&account).wait(head);
            waiting.expect("a place").expect("no shutdown")
        };
        let (less, more) = (wait(5), wait(6));
        let short = Duration::from_secs(5);
        assert!(timeout(short, less).await.is_ok(), "it is woken");
        assert!(timeout(short, more).await.is_err(), "it waits");
    }

    #[test]
    fn a_server_lets_1000_calls_wait_and_100_of_an_account() {
        let waits = Arc::new(FeedWaits::default());
        let wait = |account: usize| {
            let account = AccountId::parse(&account.to_string()).expect("an account");
            waits.watch(&account).wait(0)
        };
        let mut waiting: Vec<_> = (0..1_000).map(|call| wait(call / 100)).collect();
        assert_eq!(waiting.iter().filter(|it| it.is_ok()).count(), 1_000);
        assert!(matches!(wait(10), Err(Error::Overloaded)));
        // Whoever ends leaves a place, of the server and of its account.
        waiting.truncate(999);
        assert!(matches!(wait(8), Err(Error::Overloaded)));
        assert!(wait(10).is_ok());
        assert!(wait(9).is_ok());
    }
}
