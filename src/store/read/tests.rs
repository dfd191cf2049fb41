#![allow(clippy::expect_used)]

use sea_orm::{ConnectionTrait, Statement};
use uuid::Uuid;

use super::{preview::bodies_sql, references::variables::named_rows_sql, task_tree::tree_sql};
use crate::{
    domain::analysis::NameUse,
    store::{Account, backend, values::Values},
};

/// How SQLite finds the rows of a statement, a line for each table.
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
    let sql = tree_sql("t.name", "$2");
    let plan = plan(&account, &sql).await;
    let searched = plan.iter().filter(|line| line.contains("account_id=?"));
    assert!(searched.clone().count() >= 3, "{plan:#?}");
    for line in searched {
        let by_id = line.contains("account_id=? AND ") && !line.contains(">?");
        assert!(by_id, "{sql}: {plan:#?}");
    }
}

#[tokio::test]
async fn sqlite_sorts_a_few_rows_rather_than_read_all_of_the_account() {
    let account = Account::for_tests().await;
    for (table, condition) in [
        ("steps", "task IN ($2)"),
        ("steps", "task = $2 AND feedback_config LIKE $3"),
        ("steps", "subtask_id IN ($2, $3)"),
        (
            "steps",
            "(guid = $2 OR (subtask_id IN ($3) AND is_link = true))",
        ),
        ("tasks", "parent_guid = $2"),
    ] {
        let rows = format!("FROM {table} WHERE account_id = $1 AND {condition}");
        let plan = plan(&account, &format!("SELECT guid {rows} ORDER BY guid")).await;
        let by_account = plan.iter().find(|line| line.contains("(account_id=?)"));
        assert_eq!(by_account, None, "{rows}: {plan:#?}");
    }
}

#[tokio::test]
async fn sqlite_has_statistics_of_each_index_of_accounts() {
    let account = Account::for_tests().await;
    let db = account.reader();
    // Tables without rowids have no index for their key; its statistics have the table's name.
    let indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' \
         AND tbl_name NOT IN ('accounts', 'server_keys', 'seaql_migrations') \
         UNION ALL SELECT name FROM sqlite_schema WHERE sql LIKE '%WITHOUT ROWID'";
    let names = async |sql: String| {
        let statement = Statement::from_string(backend(db), format!("{sql} ORDER BY 1"));
        let rows = db.query_all_raw(statement).await.expect("the names");
        let names = rows.iter().map(|row| row.try_get_by_index(0));
        names.collect::<Result<Vec<String>, _>>().expect("texts")
    };
    let with_statistics = names("SELECT idx FROM sqlite_stat1".to_owned()).await;
    assert_eq!(with_statistics, names(indexes.to_owned()).await);
}

#[tokio::test]
async fn sqlite_finds_what_one_task_names_among_its_steps() {
    let account = Account::for_tests().await;
    for used in [NameUse::Sets, NameUse::Reads] {
        let plan = plan(&account, &named_rows_sql(used, true, false, false)).await;
        let by_task = "(account_id=? AND task=?)";
        assert!(plan.iter().any(|line| line.contains(by_task)), "{plan:#?}");
    }
}

#[tokio::test]
async fn sqlite_finds_bodies_of_translations_by_their_keys() {
    let account = Account::for_tests().await;
    let translations = ["de", "fr"].map(|language| (Uuid::now_v7(), language.to_owned()));
    let mut values = Values::new();
    let sql = bodies_sql(Vec::new(), translations.into(), &mut values).expect("a statement");
    let plan = plan(&account, &sql).await;
    let by_key = "(account_id=? AND step=? AND language=?)";
    assert!(plan.iter().any(|line| line.contains(by_key)), "{plan:#?}");
}
