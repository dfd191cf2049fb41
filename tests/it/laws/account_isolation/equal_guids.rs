//! Two accounts whose rows have equal ids. Each read only sees its own account.

use std::collections::BTreeMap;

use crate::{
    kit::{
        server::{TestServer, with_metrics},
        sql::SqlConnection,
    },
    prelude::*,
};

/// The name, every text and the language tag of the account, and of its twin. They are equally
/// long, so that copied sizes are right.
const OWN: [&str; 3] = ["own-account", "Own text", "de-x-own"];
const TWIN: [&str; 3] = ["two-account", "Two text", "de-x-two"];

#[apply(on_both_databases)]
async fn reads_see_one_of_two_rows_with_equal_ids(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let [own, twin] = [OWN, TWIN].map(|[account, ..]| server.client().with_account(account));
    make_resources(&own).await;
    let before = everything(&own, [OWN[2], TWIN[2]]).await;
    let mut database = SqlConnection::open(&url).await;
    for statement in copies(database.tenant_columns().await) {
        database.execute(&statement).await;
    }
    // `assert_eq!` would print all of it.
    assert!(everything(&own, [OWN[2], TWIN[2]]).await == before);
    assert!(everything(&twin, [TWIN[2], OWN[2]]).await == swapped(&before));
    server.shut_down().await;
}

async fn make_resources(client: &Client) {
    let [_, text, language] = OWN;
    let name = TaskTranslation::default().with(|it| it.name = Some(text.to_owned()));
    let sent = full_task().named(text).translated(language, name);
    let task = client.given_task(sent).await;
    let row = step_translation(text).with_body(text);
    // In a page of 500 it is not a small step, so that lists read it by a second statement.
    let sent = full_step(&task).titled(text).with_body(text.repeat(2_000));
    client.given_step(sent.translated(language, row)).await;
    client.given_step(subtask(&task, &task)).await;
    let managed = document(text, vec![document_step(StepType::Information, text)]);
    let linked = linked_question(vec![answer_with("first", text, managed)]);
    let guide = document(text, vec![observation_asking(linked)]);
    client.imported(guide).await;
    client.given_role(text).await;
}

/// Everything that an account can read, as text, with its translation work for both languages.
async fn everything(client: &Client, languages: [&str; 2]) -> String {
    let tasks = client.tasks_with_steps().await;
    let mut alone = Vec::new();
    let mut exports = Vec::new();
    for (task, steps) in &tasks {
        alone.push(format!("{:#?}", client.get_task(&task.guid).await));
        exports.push(client.exported(&task.guid).await);
        for step in steps {
            alone.push(format!("{:#?}", client.get_step(&step.guid).await));
        }
    }
    let roles = client.list_roles(0, "").await.accepted();
    let mut work = client.translation_work(&["fr"]).await;
    for language in languages {
        work.extend(client.translation_work(&[language]).await);
    }
    // The digest depends on the texts, in which the accounts differ.
    work.iter_mut().for_each(|item| item.source_digest.clear());
    format!("{tasks:#?} {alone:#?} {exports:#?} {roles:#?} {work:#?}")
}

/// The text with the words of the account and of its twin exchanged.
fn swapped(text: &str) -> String {
    OWN.into_iter()
        .zip(TWIN)
        .fold(text.to_owned(), |text, (own, twin)| {
            text.replace(own, "\0")
                .replace(twin, own)
                .replace('\0', twin)
        })
}

/// Statements that copy each row of the account to its twin, with other words.
fn copies(columns: Vec<(String, String, bool)>) -> Vec<String> {
    let mut tables: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    // The database draws it.
    let drawn = |column: &str| column == "seq";
    for (table, column, is_text) in columns.into_iter().filter(|(_, it, _)| !drawn(it)) {
        tables.entry(table).or_default().push((column, is_text));
    }
    assert!(tables.len() >= 4, "{tables:?}");
    let copy = |(table, columns): (String, Vec<(String, bool)>)| {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let values = columns.iter().map(|(name, is_text)| match is_text {
            true => OWN
                .iter()
                .zip(TWIN)
                .fold(name.clone(), |value, (own, twin)| {
                    format!("replace({value}, '{own}', '{twin}')")
                }),
            false => name.clone(),
        });
        let values: Vec<String> = values.collect();
        format!(
            "INSERT INTO {table} ({}) SELECT {} FROM {table} WHERE account_id = '{}'",
            names.join(", "),
            values.join(", "),
            OWN[0],
        )
    };
    tables.into_iter().map(copy).collect()
}
