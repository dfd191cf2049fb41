#![allow(clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::domain::{
    ids::RoleId,
    order::{Place, StepCursor},
};

const KEY: [u8; 32] = [7; 32];

fn account(id: &str) -> AccountId {
    AccountId::parse(id).expect("an account id")
}

fn tokens<'a>(account: &'a AccountId, filters: &[u8]) -> PageTokens<'a> {
    PageTokens {
        key: &KEY,
        account,
        rpc: "ListTasks",
        filters: filters.to_vec(),
        page_bytes: 0,
    }
}

#[test]
fn a_token_of_another_database_is_refused() {
    let account = account("mine");
    let token = tokens(&account, b"").sign(&RoleId(5));
    let other = PageTokens {
        key: &[8; 32],
        ..tokens(&account, b"")
    };
    assert_eq!(other.verify::<RoleId>(&token), None);
}

#[test]
fn account_and_filters_are_told_apart_by_length() {
    let (short, long) = (account("a"), account("ab"));
    let token = tokens(&short, b"bc").sign(&RoleId(5));
    assert_eq!(tokens(&long, b"c").verify::<RoleId>(&token), None);
}

proptest! {
    #[test]
    fn a_token_carries_its_cursor(epoch: i64, position: i64) {
        let cursor = StepCursor { epoch, place: Place(position) };
        let account = account("mine");
        let tokens = tokens(&account, b"");
        let token = tokens.sign(&cursor);
        prop_assert!(token.len() <= MAX_PAGE_TOKEN_BYTES);
        prop_assert_eq!(tokens.verify(&token), Some(cursor));
    }

    #[test]
    fn any_other_text_is_refused(token in ".{0,80}") {
        let account = account("mine");
        prop_assert_eq!(tokens(&account, b"").verify::<RoleId>(&token), None);
    }
}
