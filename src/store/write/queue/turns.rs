//! Whose turn it is.

use std::collections::VecDeque;

use crate::domain::ids::AccountId;

/// What waits, by account. Accounts take turns, so that one with much to write does not keep the
/// others waiting for all of it.
pub struct Turns<T> {
    /// The account whose turn is next comes first. None has an empty queue.
    accounts: VecDeque<(AccountId, VecDeque<T>)>,
}

impl<T> Turns<T> {
    pub fn new() -> Self {
        Self {
            accounts: VecDeque::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Adds what waits behind all else of the account.
    pub fn push(&mut self, account: &AccountId, item: T) {
        match self.accounts.iter_mut().find(|(it, _)| it == account) {
            Some((_, queue)) => queue.push_back(item),
            None => {
                let queue = VecDeque::from([item]);
                self.accounts.push_back((account.clone(), queue));
            }
        }
    }

    /// Takes what is next.
    pub fn pop(&mut self) -> Option<T> {
        let (account, mut queue) = self.accounts.pop_front()?;
        let item = queue.pop_front();
        if !queue.is_empty() {
            self.accounts.push_back((account, queue));
        }
        item
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn accounts_take_turns_and_each_keeps_its_order() {
        let mut turns = Turns::new();
        for item in ["a1", "a2", "a3", "b1", "c1", "b2"] {
            let account = AccountId::parse(&item[..1]).expect("an account");
            turns.push(&account, item);
        }
        let taken: Vec<&str> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(taken, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(turns.is_empty());
    }
}
