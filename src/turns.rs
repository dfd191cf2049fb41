//! Accounts take turns, so that one with much to do does not keep the others waiting for all of it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::domain::ids::AccountId;

/// What waits, by account.
pub struct Turns<T> {
    /// The account whose turn is next comes first. None has an empty queue.
    accounts: VecDeque<(AccountId, VecDeque<T>)>,
    /// Whether the account at the back had the last turn. New accounts are then put before it.
    last_had_turn: bool,
    /// Whether an item waits no more. It takes no turn, and is dropped when it is met.
    has_gone: fn(&T) -> bool,
}

impl<T> Turns<T> {
    pub fn new(has_gone: fn(&T) -> bool) -> Self {
        Self {
            accounts: VecDeque::new(),
            last_had_turn: false,
            has_gone,
        }
    }

    /// Adds what waits behind all else of the account.
    pub fn push(&mut self, account: &AccountId, item: T) {
        match self.accounts.iter_mut().find(|(it, _)| it == account) {
            Some((_, queue)) => {
                while queue.pop_back_if(|it| (self.has_gone)(it)).is_some() {}
                queue.push_back(item);
            }
            None => {
                let place = self.accounts.len() - usize::from(self.last_had_turn);
                let queue = VecDeque::from([item]);
                self.accounts.insert(place, (account.clone(), queue));
            }
        }
    }

    /// Takes what is next, with its account, among the accounts that may have a turn.
    pub fn pop(&mut self, may: impl Fn(&AccountId) -> bool) -> Option<(AccountId, T)> {
        let mut next = 0;
        while let Some((account, queue)) = self.accounts.get_mut(next) {
            if !may(account) {
                next += 1;
                continue;
            }
            while queue.pop_front_if(|it| (self.has_gone)(it)).is_some() {}
            let item = queue.pop_front();
            let (account, queue) = self.accounts.remove(next)?;
            // Whatever had the last turn is removed, or is at the back no more.
            self.last_had_turn &= next < self.accounts.len();
            let Some(item) = item else { continue };
            self.last_had_turn = !queue.is_empty();
            if self.last_had_turn {
                self.accounts.push_back((account.clone(), queue));
            }
            return Some((account, item));
        }
        None
    }
}

/// The most of what accounts share that one of them may have: about three quarters, or all of it if
/// that is less than four, so that there usually is something left for another.
pub const fn share_of_account(all: usize) -> usize {
    all - all / 4
}

/// Permits that accounts take in turns. No account has more than its share of them.
pub struct FairSemaphore(Mutex<Permits>);

struct Permits {
    free: usize,
    /// The most that one account may have.
    most: usize,
    /// How many each account has.
    held: HashMap<AccountId, usize>,
    waiting: Turns<oneshot::Sender<FairPermit>>,
}

/// A permit, which is free again when it is dropped.
pub struct FairPermit {
    account: AccountId,
    /// `None` if nothing is given back when it is dropped.
    semaphore: Option<Arc<FairSemaphore>>,
}

impl Permits {
    /// Whether there is a permit for the account.
    fn may_take(&self, account: &AccountId) -> bool {
        self.free > 0 && self.held.get(account).is_none_or(|held| *held < self.most)
    }

    fn take(&mut self, account: &AccountId) {
        self.free -= 1;
        *self.held.entry(account.clone()).or_default() += 1;
    }

    fn give_back(&mut self, account: &AccountId) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(account) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(account);
            }
        }
    }

    /// Takes a permit for one that waits, if there is a permit for it.
    fn take_for_next(&mut self) -> Option<(AccountId, oneshot::Sender<FairPermit>)> {
        if self.free == 0 {
            return None;
        }
        let (held, most) = (&self.held, self.most);
        let may = |account: &AccountId| held.get(account).is_none_or(|held| *held < most);
        let (account, sender) = self.waiting.pop(may)?;
        self.take(&account);
        Some((account, sender))
    }
}

impl FairSemaphore {
    pub fn new(permits: usize) -> Arc<Self> {
        Self::with_most(permits, share_of_account(permits))
    }

    /// The same; an account has so many at most.
    pub fn with_most(permits: usize, most: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Permits {
            free: permits,
            most,
            held: HashMap::new(),
            waiting: Turns::new(oneshot::Sender::is_closed),
        })))
    }

    /// How many permits nobody has.
    pub fn free(&self) -> usize {
        self.lock().free
    }

    /// Takes a permit that nobody has, if the account may have it.
    pub fn try_acquire(self: &Arc<Self>, account: &AccountId) -> Option<FairPermit> {
        let mut permits = self.lock();
        permits.may_take(account).then(|| {
            permits.take(account);
            self.permit(account.clone())
        })
    }

    /// Waits for a permit.
    pub async fn acquire(self: &Arc<Self>, account: &AccountId) -> FairPermit {
        let permit = {
            let mut permits = self.lock();
            if permits.may_take(account) {
                permits.take(account);
                return self.permit(account.clone());
            }
            let (sender, permit) = oneshot::channel();
            permits.waiting.push(account, sender);
            permit
        };
        // The sender stays here until it has sent.
        permit.await.unwrap_or_else(|_| FairPermit {
            account: account.clone(),
            semaphore: None,
        })
    }

    fn permit(self: &Arc<Self>, account: AccountId) -> FairPermit {
        FairPermit {
            account,
            semaphore: Some(Arc::clone(self)),
        }
    }

    /// Takes a permit of this account back, and gives it to one that waits.
    fn release(self: Arc<Self>, mut account: AccountId) {
        loop {
            let next = {
                let mut permits = self.lock();
                permits.give_back(&account);
                permits.take_for_next()
            };
            let Some((next, sender)) = next else { return };
            match sender.send(self.permit(next.clone())) {
                Ok(()) => return,
                // It has gone just now.
                Err(mut permit) => permit.semaphore = None,
            }
            account = next;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Permits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if let Some(semaphore) = self.semaphore.take() {
            semaphore.release(self.account.clone());
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::parse(name).expect("an account")
    }

    #[test]
    fn accounts_take_turns_and_each_keeps_its_order() {
        let mut turns = Turns::new(|_| false);
        for item in ["a1", "a2", "a3", "b1", "c1", "b2"] {
            turns.push(&account(&item[..1]), item);
        }
        let (_, first) = turns.pop(|it| *it == account("b")).expect("one");
        let others = std::iter::from_fn(|| turns.pop(|_| true));
        let others: Vec<&str> = others.map(|(_, item)| item).collect();
        assert_eq!(first, "b1");
        assert_eq!(others, ["a1", "c1", "b2", "a2", "a3"]);
        assert!(turns.accounts.is_empty());
        // One that comes while another one has its turn is next.
        let one = |turns: &mut Turns<&'static str>| turns.pop(|_| true).expect("one").1;
        for item in ["a1", "a2"] {
            turns.push(&account("a"), item);
        }
        assert_eq!(one(&mut turns), "a1");
        for item in ["b1", "b2"] {
            turns.push(&account("b"), item);
        }
        let taken = [(); 3].map(|()| one(&mut turns));
        assert_eq!(taken, ["b1", "a2", "b2"]);
    }

    #[test]
    fn what_has_gone_takes_no_turn_and_does_not_pile_up() {
        let mut turns = Turns::new(|item: &&str| item.starts_with('-'));
        for item in ["a1", "a2", "a3"] {
            turns.push(&account("a"), item);
        }
        for item in ["-", "-", "b1", "-", "-", "b2"] {
            turns.push(&account("b"), item);
        }
        turns.push(&account("c"), "-");
        let kept: usize = turns.accounts.iter().map(|(_, queue)| queue.len()).sum();
        assert_eq!(kept, 6);
        let order: Vec<&str> = std::iter::from_fn(|| turns.pop(|_| true))
            .map(|(_, item)| item)
            .collect();
        assert_eq!(order, ["a1", "b1", "a2", "b2", "a3"]);
        assert!(turns.accounts.is_empty() && !turns.last_had_turn);
    }

    #[tokio::test]
    async fn a_permit_goes_to_the_next_account_and_never_to_one_that_waits_no_more() {
        let (a, b) = (account("a"), account("b"));
        let semaphore = FairSemaphore::new(1);
        let held = semaphore.acquire(&a).await;
        let mut first = Box::pin(semaphore.acquire(&a));
        let mut gone = Box::pin(semaphore.acquire(&a));
        let mut other = Box::pin(semaphore.acquire(&b));
        for waiting in [&mut first, &mut gone, &mut other] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(held);
        let held = first.await;
        assert!((&mut other).now_or_never().is_none());
        drop(gone);
        drop(held);
        let held = other.await;
        assert_eq!(semaphore.free(), 0);
        drop(held);
        assert_eq!(semaphore.free(), 1);
        // One that was given a permit, and did not come to take it.
        let held = semaphore.acquire(&a).await;
        let mut given = Box::pin(semaphore.acquire(&b));
        assert!((&mut given).now_or_never().is_none());
        drop(held);
        drop(given);
        assert_eq!(semaphore.free(), 1);
    }

    #[tokio::test]
    async fn no_account_has_more_than_three_quarters() {
        let (a, b) = (account("a"), account("b"));
        let semaphore = FairSemaphore::new(4);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(semaphore.acquire(&a).await);
        }
        let mut fourth = Box::pin(semaphore.acquire(&a));
        assert!((&mut fourth).now_or_never().is_none());
        let other = semaphore.acquire(&b).await;
        drop(other);
        assert!((&mut fourth).now_or_never().is_none());
        held.pop();
        let fourth = fourth.await;
        assert_eq!(semaphore.free(), 1);
        drop((held, fourth));
        assert_eq!(semaphore.free(), 4);
    }
}
