#![allow(clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

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
    }
}

#[test]
fn a_token_is_bound_to_key_account_call_and_filters() {
    let (mine, other) = (account("mine"), account("other"));
    let role = RoleId(5);
    let token = tokens(&mine, b"a").sign(&role);
    assert_eq!(tokens(&mine, b"a").verify(&token), Some(role));
    assert_eq!(tokens(&other, b"a").verify::<RoleId>(&token), None);
    assert_eq!(tokens(&mine, b"b").verify::<RoleId>(&token), None);
    let call = PageTokens {
        rpc: "ListRoles",
        ..tokens(&mine, b"a")
    };
    assert_eq!(call.verify::<RoleId>(&token), None);
    let database = PageTokens {
        key: &[8; 32],
        ..tokens(&mine, b"a")
    };
    assert_eq!(database.verify::<RoleId>(&token), None);
}

#[test]
fn account_and_filters_are_told_apart_by_length() {
    let (short, long) = (account("a"), account("ab"));
    let token = tokens(&short, b"bc").sign(&RoleId(5));
    assert_eq!(tokens(&long, b"c").verify::<RoleId>(&token), None);
}

proptest! {
    #[test]
    fn a_token_carries_its_cursor(
        epoch: i64,
        position: i64,
        fraction in prop::collection::vec(any::<u8>(), 0..=FRACTION_MAX),
    ) {
        let cursor = StepCursor { epoch, place: Place { position, fraction } };
        let account = account("mine");
        let tokens = tokens(&account, b"");
        let token = tokens.sign(&cursor);
        prop_assert!(token.len() <= TOKEN_MAX_BYTES);
        prop_assert_eq!(tokens.verify(&token), Some(cursor));
    }

    #[test]
    fn an_altered_token_is_refused(id: u128, index: usize, byte: u8) {
        let account = account("mine");
        let tokens = tokens(&account, b"");
        let task = TaskId(Uuid::from_u128(id));
        let token = tokens.sign(&task);
        let mut bytes = token.clone().into_bytes();
        let index = index % bytes.len();
        bytes[index] = byte;
        let altered = String::from_utf8_lossy(&bytes).into_owned();
        let expected = (altered == token).then_some(task);
        prop_assert_eq!(tokens.verify(&altered), expected);
    }

    #[test]
    fn any_other_text_is_refused(token in ".{0,80}") {
        let account = account("mine");
        prop_assert_eq!(tokens(&account, b"").verify::<RoleId>(&token), None);
    }
}
