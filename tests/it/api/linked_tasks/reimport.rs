//! Repeated imports of linked questions.

use super::{guide, managed_by, now, unlinked};
use crate::kit::prelude::*;

/// The document of a guide with the change made to its question.
async fn changed(
    client: &Client,
    guide: &Task,
    change: impl FnOnce(&mut FeedbackConfig),
) -> TaskDocument {
    let mut sent = client.exported(&guide.guid).await;
    change(&mut sent.steps[0].feedback_config[0]);
    sent
}

#[apply(on_both_databases)]
async fn a_new_text_renames_the_task_and_its_wiring_step(client: Client) {
    let (made, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let before = managed_by(&client, &question).await;
    let elsewhere = client.given_task(task("Elsewhere")).await;
    let referring = client.given_step(subtask(&elsewhere, &before[1])).await;
    let sent = changed(&client, &made, |config| {
        config.values[1].value = "Renamed".to_owned();
    });
    let response = client.import(sent.await).await.accepted();
    // The document still calls them by their former name.
    let below = "document.steps";
    let expected = [
        format!("{below}.feedback_config.values.task_json.task.name"),
        format!("{below}.title"),
    ];
    assert_eq!(response.ignored_paths, expected);
    let after = managed_by(&client, &question).await;
    assert_eq!(after[0], before[0]);
    assert_eq!(after[1].name, "Renamed");
    assert_eq!(now(&client, &wiring[0]).await, wiring[0]);
    for step in [&wiring[1], &referring] {
        let after = now(&client, step).await;
        assert_eq!(after.title, "Renamed");
        assert_ne!(after.etag, step.etag);
    }
}

#[apply(on_both_databases)]
async fn a_document_imports_the_managed_task_again(client: Client) {
    let inner = document("A", document_steps(&["a", "b"]));
    let steps = vec![observation_asking(linked_question(vec![answer_with(
        "x", "A", inner,
    )]))];
    let made = client.given_guide(steps).await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let before = managed_by(&client, &question).await.remove(0);
    let sent = changed(&client, &made, |config| {
        let inner = config.values[0].task_json.as_mut().unwrap();
        inner.task.as_mut().unwrap().published = Some(0);
        inner.steps[0].title = "a2".to_owned();
        inner.steps.swap(0, 1);
        inner.steps.insert(1, document_step(StepType::End, "new"));
    });
    let response = client.import(sent.await).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    assert_eq!(response.task.unwrap(), made);
    let after = managed_by(&client, &question).await.remove(0);
    assert_eq!((&after.guid, after.published), (&before.guid, Some(0)));
    let titles = client.step_titles(&after.guid).await;
    assert_eq!(titles, ["b", "new", "a2"]);
    assert_eq!(after.steps[0], before.steps[1]);
}

#[apply(on_both_databases)]
async fn a_managed_task_without_a_document_keeps_its_steps(client: Client) {
    let inner = document("A", document_steps(&["a", "b"]));
    let steps = vec![observation_asking(linked_question(vec![answer_with(
        "x", "A", inner,
    )]))];
    let made = client.given_guide(steps).await;
    let before = client.tasks_with_steps().await;
    let sent = changed(&client, &made, |config| config.values[0].task_json = None).await;
    for absent in [AbsentSteps::Unspecified, AbsentSteps::Delete] {
        client.import_with(absent, sent.clone()).await.accepted();
        assert_eq!(client.tasks_with_steps().await, before);
    }
}

#[apply(on_both_databases)]
async fn an_appended_step_follows_those_of_a_renamed_managed_task(client: Client) {
    let (made, question, _) = guide(&client, &[("a", "A")]).await;
    let managed = managed_by(&client, &question).await.remove(0);
    let mut order = Vec::new();
    for title in ["1", "2", "3"] {
        order.push(
            client
                .given_step(information_step(&managed, title))
                .await
                .guid,
        );
    }
    let mut sent = changed(&client, &made, |config| {
        config.values[0].value = "Renamed".to_owned();
    })
    .await;
    sent.steps[0].feedback_config[0].values[0].task_json = None;
    client.imported(sent).await;
    order.push(
        client
            .given_step(information_step(&managed, "4"))
            .await
            .guid,
    );
    assert_eq!(client.step_order(&managed.guid).await, order);
}

#[apply(on_both_databases)]
async fn a_new_key_may_bring_a_document(client: Client) {
    let (made, question, _) = guide(&client, &[("a", "A")]).await;
    let known = client
        .imported(document("Known", document_steps(&["known"])))
        .await;
    let brought = client.exported(&known.guid).await;
    let sent = changed(&client, &made, |config| {
        config.values.push(answer_with("b", "B", brought));
    });
    client.imported(sent.await).await;
    let question = now(&client, &question).await;
    let after = managed_by(&client, &question).await.remove(1);
    assert_ne!(after.guid, known.guid);
    assert_eq!(client.step_titles(&after.guid).await, ["known"]);
    assert_eq!(client.get_task(&known.guid).await.accepted(), known);
}

#[apply(on_both_databases)]
async fn a_returning_key_gets_another_task(client: Client) {
    let (made, question, _) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let before = managed_by(&client, &question).await;
    let sent = client.exported(&made.guid).await;
    let mut without = sent.clone();
    without.steps[0].feedback_config[0].values.remove(0);
    client.imported(without).await;
    let mut again = sent;
    again.steps[0].feedback_config[0].values[0].task_json = None;
    client.imported(again).await;
    let after = managed_by(&client, &now(&client, &question).await).await;
    assert_ne!(after[0].guid, before[0].guid);
    assert_eq!(after[1].guid, before[1].guid);
    let former = client.get_task(&before[0].guid).await.accepted();
    assert_eq!(former.r#type(), TaskType::Standard);
}

#[apply(on_both_databases)]
async fn a_wiring_step_that_is_not_listed_stays_with_its_observation(client: Client) {
    let (made, _, _) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    // Unlisted wiring steps do not count as absent.
    let steps = vec![step_of(&made.steps[3]), step_of(&made.steps[0])];
    let sent = document_of(&made.guid, steps);
    for absent in [
        AbsentSteps::Unspecified,
        AbsentSteps::Keep,
        AbsentSteps::Delete,
    ] {
        client.import_with(absent, sent.clone()).await.accepted();
        let order = client.step_order(&made.guid).await;
        let expected = [3, 0, 1, 2].map(|at: usize| made.steps[at].clone());
        assert_eq!(order, expected);
    }
    // They are in the order of the values.
    let swapped = linked_question(vec![answer("b", "B"), answer("a", "A")]);
    let question = step_of(&made.steps[0]).with_question(swapped);
    let sent = document_of(&made.guid, vec![question, step_of(&made.steps[3])]);
    client.imported(sent).await;
    let expected = [0, 2, 1, 3].map(|at: usize| made.steps[at].clone());
    assert_eq!(client.step_order(&made.guid).await, expected);
}

#[apply(on_both_databases)]
async fn the_wiring_step_of_a_key_that_is_gone_counts_as_absent(client: Client) {
    let (made, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let gone = managed_by(&client, &question).await.remove(1);
    let without = step_of(&question.guid).with_question(linked_question(vec![answer("a", "A")]));
    let sent = document_of(&made.guid, vec![without, step_of(&made.steps[3])]);
    let refused = client.import(sent.clone()).await.refused();
    let absent = [("ABSENT_STEPS", wiring[1].guid.as_str())];
    assert_eq!(refused.preconditions(), absent);
    client.import_with(AbsentSteps::Keep, sent).await.accepted();
    let expected = [0, 1, 3, 2].map(|at: usize| made.steps[at].clone());
    assert_eq!(client.step_order(&made.guid).await, expected);
    unlinked(&client, &gone, &wiring[1]).await;
}

#[apply(on_both_databases)]
async fn a_wiring_step_that_is_listed_moves(client: Client) {
    let (made, question, _) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let order = [2, 0, 3, 1].map(|at: usize| made.steps[at].clone());
    let steps = order.iter().map(|guid| step_of(guid)).collect();
    client.imported(document_of(&made.guid, steps)).await;
    assert_eq!(client.step_order(&made.guid).await, order);
    assert_eq!(now(&client, &question).await, question);
}

#[apply(on_both_databases)]
async fn a_wiring_step_without_its_id_is_recognised(client: Client) {
    let (made, _, wiring) = guide(&client, &[("a", "A")]).await;
    let mut sent = client.exported(&made.guid).await;
    sent.steps[1].guid.clear();
    sent.steps[1].body = Some("changed".to_owned());
    sent.steps.swap(1, 2);
    let after = client.imported(sent).await;
    let expected = [0, 2, 1].map(|at: usize| made.steps[at].clone());
    assert_eq!(after.steps, expected);
    let step = now(&client, &wiring[0]).await;
    assert_eq!((step.body(), &step.link), ("changed", &wiring[0].link));
}

#[apply(on_both_databases)]
async fn a_wiring_step_without_its_id_is_recognised_although_the_question_is_omitted(
    client: Client,
) {
    let (made, _, wiring) = guide(&client, &[("a", "A")]).await;
    let mut sent = client.exported(&made.guid).await;
    sent.steps[0].feedback_config.clear();
    sent.steps[1].guid.clear();
    let after = client.imported(sent).await;
    assert_eq!(after.steps, made.steps);
    assert_eq!(now(&client, &wiring[0]).await, wiring[0]);
}

#[apply(on_both_databases)]
async fn a_wiring_step_keeps_to_its_task(client: Client) {
    let other = client.given_task(task("Other")).await;
    let (made, _, wiring) = guide(&client, &[("a", "A")]).await;
    let mut sent = client.exported(&made.guid).await;
    sent.steps[1].subtask_id.clone_from(&other.guid);
    let response = client.import(sent).await.accepted();
    assert_eq!(response.ignored_paths, ["document.steps.subtask_id"]);
    assert_eq!(now(&client, &wiring[0]).await, wiring[0]);
}

#[apply(on_both_databases)]
async fn an_absent_observation_is_unlinked_before_it_is_deleted(client: Client) {
    let (made, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let managed = managed_by(&client, &question).await;
    // One wiring step is listed and stays, the other is deleted with its observation.
    let steps = vec![step_of(&made.steps[3]), step_of(&made.steps[1])];
    let sent = document_of(&made.guid, steps);
    let refused = client.import(sent.clone()).await.refused();
    refused.is_precondition("ABSENT_STEPS");
    let after = client
        .import_with(AbsentSteps::Delete, sent)
        .await
        .accepted();
    let expected = [made.steps[3].clone(), made.steps[1].clone()];
    assert_eq!(after.task.unwrap().steps, expected);
    unlinked(&client, &managed[0], &wiring[0]).await;
    let survivor = client.get_task(&managed[1].guid).await.accepted();
    assert_eq!(survivor.r#type(), TaskType::Standard);
    client.delete_task(&survivor.guid).await.accepted();
}

#[apply(on_both_databases)]
async fn a_managed_task_may_be_imported_by_itself(client: Client) {
    let (_, question, _) = guide(&client, &[("a", "A")]).await;
    let managed = managed_by(&client, &question).await.remove(0);
    let sent = document_of(&managed.guid, vec![linked_observation(&[("x", "X")])]);
    let after = client.imported(sent).await;
    assert_eq!(after.r#type(), TaskType::Linked);
    assert_eq!(after.parent_guid, managed.parent_guid);
    assert_eq!(after.steps.len(), 2);
    let inner = client.get_step(&after.steps[0]).await.accepted();
    let inner = managed_by(&client, &inner).await.remove(0);
    assert_eq!(inner.parent_guid, managed.guid);
}

#[apply(on_both_databases)]
async fn the_name_of_a_managed_task_is_ignored_and_listed(client: Client) {
    let (made, question, _) = guide(&client, &[("a", "A")]).await;
    let before = client.tasks_with_steps().await;
    let managed = managed_by(&client, &question).await.remove(0);
    let renaming = task_of(&managed.guid).named("Mine");
    let unnamed = task_of(&managed.guid);
    for (sent, mask) in [
        (&renaming, &[][..]),
        (&renaming, &["name"]),
        (&unnamed, &["name"]),
    ] {
        let response = client.update_task(sent.clone(), mask).await.accepted();
        assert_eq!(response.ignored_paths, ["task.name"]);
        assert_eq!(response.task, Some(managed.clone()));
    }
    let alone = document_with(renaming.clone(), Vec::new());
    let response = client.import(alone.clone()).await.accepted();
    assert_eq!(response.ignored_paths, ["document.task.name"]);
    let sent = changed(&client, &made, |config| {
        config.values[0].task_json = Some(Box::new(alone));
    });
    let response = client.import(sent.await).await.accepted();
    let listed = "document.steps.feedback_config.values.task_json.task.name";
    assert_eq!(response.ignored_paths, [listed]);
    assert_eq!(client.tasks_with_steps().await, before);
}

#[apply(on_both_databases)]
async fn what_a_managed_task_manages_stays_when_it_is_unlinked(client: Client) {
    let middle = document("A", vec![linked_observation(&[("x", "X")])]);
    let steps = vec![observation_asking(linked_question(vec![answer_with(
        "a", "A", middle,
    )]))];
    let made = client.given_guide(steps).await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let middle = managed_by(&client, &question).await.remove(0);
    let below = client.exported(&middle.guid).await;
    let sent = changed(&client, &made, |config| {
        config.linked = None;
        config.values[0].task_json = None;
    });
    client.imported(sent.await).await;
    let after = client.exported(&middle.guid).await;
    assert_eq!(after.task.unwrap().r#type, Some(TaskType::Standard.into()));
    assert_eq!(after.steps, below.steps);
}

#[apply(on_both_databases)]
async fn translations_of_many_wiring_steps_are_deleted_at_once(client: Client) {
    let keys: Vec<String> = (0..1_000).map(|key| key.to_string()).collect();
    let values: Vec<(&str, &str)> = keys
        .iter()
        .map(|key| (key.as_str(), key.as_str()))
        .collect();
    let made = client.given_guide(vec![linked_observation(&values)]).await;
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

#[apply(on_both_databases)]
async fn an_unlinked_wiring_step_that_is_listed_again_wires_the_new_task(client: Client) {
    let (made, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let sent = client.exported(&made.guid).await;
    let former = managed_by(&client, &question).await;
    let unlink = step_of(&question.guid).with_question(crate::kit::sample::question("it", &["a"]));
    client.updated_step(unlink, &["feedback_config"]).await;
    for step in &wiring {
        assert_eq!(now(&client, step).await.link, "");
    }
    client.imported(sent).await;
    let after = managed_by(&client, &now(&client, &question).await).await;
    assert!(former.iter().all(|task| !after.contains(task)));
    for (step, task) in wiring.iter().zip(&after) {
        let step = now(&client, step).await;
        assert_eq!((&step.link, &step.subtask_id), (&task.guid, &task.guid));
        assert_eq!(step.title, task.name);
    }
    // No other step leads to them.
    assert_eq!(client.step_order(&made.guid).await, made.steps);
}

#[apply(on_both_databases)]
async fn names_of_managed_tasks_are_translated_by_their_documents(client: Client) {
    let translated = |name: &str| task("").translated("de", task_translation(name));
    let inner = answer_with("a", "A", document_with(translated("Erste"), Vec::new()));
    let steps = vec![observation_asking(linked_question(vec![inner]))];
    let made = client.given_guide(steps).await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let name = async || {
        let managed = managed_by(&client, &question).await.remove(0);
        let german = &managed.translations["de"];
        (german.name().to_owned(), german.locked())
    };
    assert_eq!(name().await, ("Erste".to_owned(), true));
    let sent = changed(&client, &made, |config| {
        let inner = config.values[0].task_json.as_mut().unwrap();
        inner.task = Some(translated("Zweite"));
    });
    client.imported(sent.await).await;
    assert_eq!(name().await, ("Zweite".to_owned(), true));
    // It stays when the answer is renamed.
    let sent = changed(&client, &made, |config| {
        config.values[0].value = "Renamed".to_owned();
        config.values[0].task_json = None;
    });
    client.imported(sent.await).await;
    assert_eq!(name().await, ("Zweite".to_owned(), true));
}
