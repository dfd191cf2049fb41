#![allow(clippy::expect_used)]

use super::*;
use crate::domain::ids::RoleId;

fn tokens(key: u8, account: &str, filters: &[u8]) -> PageTokens {
    let account = AccountId::parse(account).expect("an account id");
    PageTokens::new(&[key; 32], &account, "ListTasks", filters, 0)
}

#[test]
fn account_and_filters_are_told_apart_by_length() {
    let token = tokens(7, "a", b"bc").sign(&RoleId(5));
    assert_eq!(tokens(7, "ab", b"c").verify::<RoleId>(&token), None);
}
