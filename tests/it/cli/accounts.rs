//! `accounts`: what the accounts of a database have, and the deletion of one.

use serde_json::{Value, json};

use super::terminal::answered;
use crate::{
    command::{Cli, Command, binary_text, command, text},
    databases::postgres,
    kit::{
        runtime::runtime,
        scratch::Scratch,
        server::{Settings, TestServer},
        sql::SqlConnection,
    },
    prelude::*,
};

/// Fills an account: managed tasks, translations, conditions, roles, revisions with an alias, a
/// deleted guide and step, an outcome of a retry, changes in order, work of an index. Returns a guide.
pub fn fill(cli: &Cli) -> String {
    let names = [
        "restart-safely.json",
        "measure-a-power-supply.json",
        "laptop-will-not-start.json",
        "laptop-will-not-start.json",
    ];
    let guides = cli.import_guides(&names);
    let (deleted, kept) = (&guides[3], guides[2].clone());
    cli.command(&["keep", &kept, "--alias", "live"])
        .run()
        .succeeded();
    let delete = cli.command(&["delete", deleted, "--force"]);
    delete.run().succeeded();
    let many = (0..600).map(|number| {
        json!({"product_id": 1, "type": "STEP_TYPE_INFORMATION", "title": format!("Step {number}"),
            "body": "x".repeat(1_000)})
    });
    let steps: Vec<Value> = many.collect();
    cli.import(&json!({"task": {"name": "Long", "product_id": 1}, "steps": steps}));
    runtime().block_on(async {
        let address = cli.server.trim_start_matches("http://").parse();
        let client = Client::at(address.expect("an address")).with_account(&cli.account);
        client.create_role("Support").await.accepted();
        let create =
            create_task_request(task("Retried").translated("de", TaskTranslation::default()))
                .with(|it| it.request_id = unknown_guid());
        client.call(create).await.accepted();
        let guide = client.given_task(task("Indexed")).await;
        let step = information_step(&guide, "Step").translated("de", step_translation("Schritt"));
        let step = client.given_step(step).await;
        client.index_work().await;
        client.delete_step(&step.guid).await.accepted();
        // The feed has a row once its entries are in order.
        client.cursor_now().await;
    });
    kept
}

fn accounts(url: &str, args: &[&str]) -> Command {
    command(&[&["accounts"], args].concat()).env("EXPERTISE_DATABASE_URL", url)
}

/// The listed values of an account, if it is listed.
fn listed(url: &str, account: &str) -> Option<Value> {
    let list = accounts(url, &["--format=json"]).run().succeeded().json();
    let mut list = list.as_array().expect("an array").clone();
    list.retain(|it| it["account"] == account);
    list.pop()
}

/// The tables that have rows of an account.
fn tables_with(url: &str, account: &str) -> Vec<String> {
    runtime().block_on(async {
        let mut connection = SqlConnection::open(url).await;
        connection.tables_with(account).await
    })
}

fn an_account_is_listed_and_deleted_with_all_its_rows(url: &str) {
    let server = TestServer::start_blocking(&Settings::new(url));
    let account = |name: &str| Cli {
        server: server.url(),
        account: name.to_owned(),
    };
    let (gone, stays) = (account("gone"), account("stays"));
    fill(&gone);
    let guide = fill(&stays);
    let before = stays.export(&guide);
    let summary = listed(url, &gone.account).expect("it is listed");
    let tasks = gone.command(&["list", "--format=json"]).run().json();
    let tasks = tasks.as_array().expect("an array");
    assert_eq!(summary["tasks"], tasks.len());
    let steps = tasks
        .iter()
        .map(|it| it["steps"].as_array().map_or(0, Vec::len));
    assert_eq!(summary["steps"], steps.sum::<usize>());
    assert!(
        summary["bytes"].as_u64().expect("a number") > 600_000,
        "{summary}"
    );
    assert!(text(&summary["last_change"]).ends_with('Z'), "{summary}");
    let table = accounts(url, &[]).run().succeeded().stdout;
    let row = table.lines().find(|row| row.starts_with(&gone.account));
    let cells: Vec<&str> = row.expect(&table).split_whitespace().collect();
    let numbers = ["tasks", "steps", "bytes"].map(|it| summary[it].to_string());
    assert_eq!(cells[1..4], numbers);
    assert_eq!(cells[4], summary["last_change"]);

    let filled = tables_with(url, &gone.account);
    let also = tables_with(url, &stays.account);
    assert_eq!(filled, also);
    let all = runtime().block_on(async {
        let mut connection = SqlConnection::open(url).await;
        connection.tenant_tables().await
    });
    assert_eq!(filled, all);

    let delete = || accounts(url, &["delete", &gone.account, "--force", "--format=json"]);
    let deleted = delete().run().succeeded().json();
    assert_eq!(deleted["account"], gone.account.as_str());
    assert!(
        deleted["rows"].as_u64().expect("a number") > 100,
        "{deleted}"
    );
    assert_eq!(listed(url, &gone.account), None);
    let left = tables_with(url, &gone.account);
    assert_eq!(left, Vec::<String>::new());
    delete().run().fails_with(1, &["has no data of account"]);

    assert_eq!(stays.export(&guide), before);
    let left = tables_with(url, &stays.account);
    assert_eq!(left, also);
}

#[test]
fn an_account_is_listed_and_deleted_on_sqlite() {
    an_account_is_listed_and_deleted_with_all_its_rows(
        &Scratch::of_this_run().sqlite_url("accounts"),
    );
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn an_account_is_listed_and_deleted_on_postgres() {
    an_account_is_listed_and_deleted_with_all_its_rows(&postgres("accounts"));
}

#[test]
fn an_account_is_listed_for_any_row_and_by_its_id() {
    let url = Scratch::of_this_run().sqlite_url("any_row");
    let server = command(&["--listen=127.0.0.1:0"]).env("EXPERTISE_DATABASE_URL", &url);
    let server = server.start();
    let address = server.address();
    runtime().block_on(async {
        for account in ["b", "c", "a"] {
            let client = Client::at(address).with_account(account);
            client.given_role("Support").await;
            if account == "b" {
                let guide = client.given_task(task("Guide")).await;
                client.given_steps(&guide, &["one", "two"]).await;
            }
        }
    });
    let list = accounts(&url, &[]).run().succeeded().stdout;
    let rows = list.lines().skip(1).map(|row| {
        let cells = row.split_whitespace().take(3);
        cells.collect::<Vec<_>>().join(" ")
    });
    assert_eq!(rows.collect::<Vec<_>>(), ["a 0 0", "b 1 2", "c 0 0"]);
    let only_a_role = listed(&url, "a").expect("it is listed");
    assert_eq!(only_a_role["bytes"], 0);
    assert!(only_a_role["last_change"].is_null(), "{only_a_role}");
}

#[test]
fn a_deletion_asks_and_needs_a_terminal() {
    let url = Scratch::of_this_run().sqlite_url("asked");
    let server = command(&["--listen=127.0.0.1:0"]).env("EXPERTISE_DATABASE_URL", &url);
    let server = server.start();
    let cli = Cli {
        server: format!("http://{}", server.address()),
        account: "demo".to_owned(),
    };
    cli.import_guides(&["restart-safely.json"]);
    let line = accounts(&url, &["delete", "demo"]).run().failure(2);
    assert!(line.contains("use --force"), "{line}");
    let delete = format!(
        "{} accounts delete demo --database-url {url}",
        binary_text()
    );
    let (shown, code) = answered("n\n", &delete, &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("Nothing was deleted."), "{shown}");
    assert!(listed(&url, "demo").is_some());
    let table = accounts(&url, &[]).run().succeeded().stdout;
    assert!(
        table.starts_with("ACCOUNT") && table.contains("demo"),
        "{table}"
    );
    let (shown, code) = answered("y\n", &delete, &[]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(listed(&url, "demo"), None);
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn an_empty_database_has_no_accounts() {
    let url = postgres("no_accounts");
    let line = accounts(&url, &[]).run().failure(1);
    assert!(line.contains("the database is empty"), "{line}");
    let migrate = command(&["migrate", "--database-url", &url]).run();
    migrate.succeeded();
    let output = accounts(&url, &[]).run().succeeded();
    assert_eq!(output.stderr, "the database has no accounts\n");
    let list = accounts(&url, &["--format=json"]).run().succeeded().json();
    assert_eq!(list, json!([]));
}
