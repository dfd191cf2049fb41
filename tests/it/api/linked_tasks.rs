//! Tasks that the values of an observation manage: many of them. `tests/cases/linked_tasks.cases` has
//! what writes make of a few.

use crate::prelude::*;

/// A guide with a linked observation, which manages a task for each of these keys.
async fn given_managing_guide(client: &Client, keys: &[String]) -> Task {
    let values = keys.iter().map(|key| (key.as_str(), key.as_str()));
    let values: Vec<(&str, &str)> = values.collect();
    client.given_guide(vec![linked_observation(&values)]).await
}

#[apply(on_both_databases)]
async fn a_thousand_values_manage_a_thousand_tasks(client: Client) {
    let keys: Vec<String> = (0..1_000).map(|key| key.to_string()).collect();
    let made = given_managing_guide(&client, &keys).await;
    assert_eq!(made.steps.len(), 1_001);
    let titles = client.step_titles(&made.guid).await;
    assert_eq!(titles[1..], keys);
    let tasks = client.all_tasks().await;
    assert_eq!(tasks.len(), 1_001);
    let exported = client.exported(&made.guid).await;
    client.import(exported).await.accepted();
    assert_eq!(client.get_task(&made.guid).await.accepted(), made);
}

#[apply(on_both_databases)]
async fn translations_of_many_wiring_steps_are_deleted_at_once(client: Client) {
    let keys: Vec<String> = (0..1_000).map(|key| key.to_string()).collect();
    let made = given_managing_guide(&client, &keys).await;
    let mut sent = client.exported(&made.guid).await;
    for value in &mut sent.steps[0].feedback_config[0].values {
        value.task_json = None;
    }
    for step in &mut sent.steps[1..] {
        let row = step_translation("übersetzt");
        step.translations.insert("de".to_owned(), row);
    }
    client.imported(sent.clone()).await;
    assert_eq!(translated_steps(&client, &made.guid).await, 1_000);
    for step in &mut sent.steps[1..] {
        step.guid.clear();
        step.translations.clear();
    }
    client.imported(sent).await;
    assert_eq!(client.step_order(&made.guid).await, made.steps);
    assert_eq!(translated_steps(&client, &made.guid).await, 0);
}

/// How many steps of a task have translations.
async fn translated_steps(client: &Client, task: &str) -> usize {
    let steps = client.exported(task).await.steps.into_iter();
    steps.filter(|step| !step.translations.is_empty()).count()
}
