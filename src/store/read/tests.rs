#![allow(clippy::expect_used)]

use sea_orm::{ConnectionTrait, Statement};

use super::{guide::tasks_below_sql, task_tree::tree_sql};
use crate::store::{Account, backend};

/// How SQLite finds rows, a line for each table.
async fn plan(account: &Account, sql: &str) -> Vec<String> {
    let db = account.reader();
    let explain = Statement::from_string(backend(db), format!("EXPLAIN QUERY PLAN {sql}"));
    let rows = db.query_all_raw(explain).await.expect("a plan");
    let lines = rows.iter().map(|row| row.try_get_by_index(3));
    lines.map(|line| line.expect("a line")).collect()
}

#[tokio::test]
async fn sqlite_finds_the_tasks_of_a_guide_without_reading_those_of_the_account() {
    let account = Account::for_tests().await;
    for sql in [tree_sql("t.name"), tasks_below_sql("t.name", 1)] {
        let plan = plan(&account, &sql).await;
        let searched = plan.iter().filter(|line| line.contains("account_id=?"));
        assert!(searched.clone().count() >= 3, "{plan:#?}");
        for line in searched {
            let by_id = line.contains("account_id=? AND ") && !line.contains(">?");
            assert!(by_id, "{sql}: {plan:#?}");
        }
    }
}
