#![allow(clippy::expect_used)]

use sea_orm::ConnectionTrait;

use super::*;
use crate::{
    config::Config,
    domain::{ids::AccountId, page::PageSize, text::Name},
    store::{Options, Store},
};

async fn account() -> Account {
    let config = Config::for_tests("sqlite::memory:");
    let store = Store::open(Options {
        database: config.database,
        replica: None,
        migrate: true,
        max_connections: 1,
        max_message_bytes: config.max_message_bytes,
    });
    let store = store.await.expect("a database");
    store.account(&AccountId::parse("42").expect("an account"))
}

#[tokio::test]
async fn a_write_that_panics_is_internal_leaves_nothing_and_the_next_one_goes_on() {
    let account = account().await;
    let name = || Name::parse("role".to_owned()).expect("a name");
    let kept = account.create_role(name()).await.expect("a role");
    let write = account.write(Mode::Store, |tx| {
        Box::pin(async move {
            tx.db
                .execute_raw(tx.statement("DELETE FROM roles WHERE account_id = $1", []))
                .await?;
            let none: Option<()> = None;
            #[allow(clippy::unnecessary_literal_unwrap)]
            none.expect("a fault");
            Ok(())
        })
    });
    let outcome = write.await;
    assert!(matches!(outcome, Err(Error::Internal(_))), "{outcome:?}");
    let next = account.create_role(name()).await.expect("a role");
    let page = account
        .list_roles(None, PageSize::new(0).expect("a size"))
        .await;
    let ids: Vec<_> = page
        .expect("roles")
        .items
        .iter()
        .map(|role| role.id)
        .collect();
    assert_eq!(ids, [kept.id, next.id]);
}
