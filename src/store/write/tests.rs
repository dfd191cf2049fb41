#![allow(clippy::expect_used)]

use sea_orm::ConnectionTrait;

use super::*;
use crate::domain::{page::PageSize, text::Name};

/// A write that deletes every role and then panics.
struct PanickingWrite;

impl Operation for PanickingWrite {
    type Snapshot = ();
    type Answer = ();

    async fn read_locked(&self, tx: &Tx) -> Result<(), StoreError> {
        let delete = tx.statement("DELETE FROM roles WHERE account_id = $1", []);
        tx.db.execute_raw(delete).await?;
        Ok(())
    }

    fn decide(&self, (): (), _: &WriteContext) -> Result<(Changes, ())> {
        panic!("a fault")
    }
}

#[tokio::test]
async fn a_write_that_panics_is_internal_leaves_nothing_and_the_next_one_goes_on() {
    let account = Account::for_tests().await;
    let name = || Name::parse("role".to_owned()).expect("a name");
    let kept = account.create_role(name()).await.expect("a role");
    let outcome = account.write(PanickingWrite, WriteMode::Store).await;
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
