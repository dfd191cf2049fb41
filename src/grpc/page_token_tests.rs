#![allow(clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

const KEY: [u8; 32] = [7; 32];

fn account(id: &str) -> AccountId {
    AccountId::parse(id).expect("an account id")
}

fn listing<'a>(account: &'a AccountId, filters: &[u8]) -> Listing<'a> {
    Listing {
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
    let token = listing(&mine, b"a").seal(&role);
    assert_eq!(listing(&mine, b"a").open(&token), Some(role));
    assert_eq!(listing(&other, b"a").open::<RoleId>(&token), None);
    assert_eq!(listing(&mine, b"b").open::<RoleId>(&token), None);
    let call = Listing {
        rpc: "ListRoles",
        ..listing(&mine, b"a")
    };
    assert_eq!(call.open::<RoleId>(&token), None);
    let database = Listing {
        key: &[8; 32],
        ..listing(&mine, b"a")
    };
    assert_eq!(database.open::<RoleId>(&token), None);
}

#[test]
fn what_borders_on_each_other_is_not_mixed_up() {
    let (short, long) = (account("a"), account("ab"));
    let token = listing(&short, b"bc").seal(&RoleId(5));
    assert_eq!(listing(&long, b"c").open::<RoleId>(&token), None);
}

proptest! {
    #[test]
    fn a_token_opens_to_its_mark(
        epoch: i64,
        position: i64,
        fraction in prop::collection::vec(any::<u8>(), 0..=FRACTION_MAX),
    ) {
        let cursor = Cursor { epoch, place: Place { position, fraction } };
        let account = account("mine");
        let listing = listing(&account, b"");
        let token = listing.seal(&cursor);
        prop_assert!(token.len() <= TOKEN_MAX);
        prop_assert_eq!(listing.open(&token), Some(cursor));
    }

    #[test]
    fn an_altered_token_opens_to_nothing(id: u128, index: usize, byte: u8) {
        let account = account("mine");
        let listing = listing(&account, b"");
        let task = TaskId(Uuid::from_u128(id));
        let token = listing.seal(&task);
        let mut bytes = token.clone().into_bytes();
        let index = index % bytes.len();
        bytes[index] = byte;
        let altered = String::from_utf8_lossy(&bytes).into_owned();
        let expected = (altered == token).then_some(task);
        prop_assert_eq!(listing.open(&altered), expected);
    }

    #[test]
    fn nonsense_opens_to_nothing(token in ".{0,80}") {
        let account = account("mine");
        prop_assert_eq!(listing(&account, b"").open::<RoleId>(&token), None);
    }
}
