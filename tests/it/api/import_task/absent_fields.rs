//! Fields of a stored guide that a document leaves out.

use crate::kit::prelude::*;

fn request(absent: AbsentFields, document: TaskDocument) -> ImportTaskRequest {
    import_of(document)
        .with(|it| it.set_absent_steps(AbsentSteps::Delete))
        .with(|it| it.absent_fields = absent.into())
}

async fn reset(client: &Client, document: TaskDocument) -> ImportTaskResponse {
    let request = request(AbsentFields::Reset, document);
    client.call(request).await.accepted()
}

/// A guide whose task and steps have every field.
async fn full_guide(client: &Client) -> TaskDocument {
    let outside = client.given_task(task("Outside")).await;
    let costly = full_step(&Task::default()).with_cost(7);
    let costly = costly.translated("fr", step_translation("Contrôler la vanne"));
    let sent = document_with(
        full_task().with_external_id("guide"),
        vec![
            full_step(&Task::default()),
            Step {
                external_id: Some("solution".to_owned()),
                r#type: StepType::Solution.into(),
                feedback_config: vec![question("tried", &["yes"])],
                ..costly
            },
            subtask(&Task::default(), &outside),
        ],
    );
    let made = client.imported(sent).await;
    client.exported(&made.guid).await
}

#[apply(on_both_databases)]
async fn languages_that_the_document_leaves_out_are_reset_with_their_field(client: Client) {
    let full = full_guide(&client).await;
    let guid = full.task.as_ref().unwrap().guid.clone();
    let mut sent = full.clone();
    sent.steps[1].translations.remove("de");
    assert!(!sent.steps[1].translations.is_empty());
    sent.steps[0].body = None;
    let request = request(AbsentFields::Keep, sent.clone())
        .with(|it| it.reset_fields = field_mask(&["steps.translations"]));
    client.call(request).await.accepted();
    // The body is kept, as it is not named.
    sent.steps[0].body.clone_from(&full.steps[0].body);
    assert_eq!(canonical(client.exported(&guid).await), canonical(sent));
}

#[apply(on_both_databases)]
async fn locked_translations_are_kept_and_listed(client: Client) {
    let mut guide = nested_guide(1);
    change_both(&mut guide, |document| {
        let row = step_translation("Vanne").with_lock(true);
        document.steps[0].translations.insert("fr".to_owned(), row);
        let row = step_translation("Valvola").with_lock(false);
        document.steps[0].translations.insert("it".to_owned(), row);
    });
    let made = client.imported(guide).await;
    let full = client.exported(&made.guid).await;
    let keeping =
        |absent, document: TaskDocument| request(absent, document).with(|it| it.keep_locked = true);
    for absent in [AbsentFields::Keep, AbsentFields::Reset] {
        let response = client.call(keeping(absent, full.clone())).await.accepted();
        assert_eq!(response.outcome(), ImportOutcome::Unchanged);
        assert_eq!(response.ignored_paths, [""; 0]);
    }
    let mut sent = full.clone();
    change_both(&mut sent, |document| {
        let step = &mut document.steps[0];
        step.translations.remove("it");
        step.translations.remove("fr");
        let task = document.task.as_mut().unwrap();
        task.translations.get_mut("de").unwrap().name = Some("Anders".to_owned());
    });
    let response = client
        .call(keeping(AbsentFields::Reset, sent))
        .await
        .accepted();
    let nested = "document.steps.feedback_config.values.task_json";
    assert_eq!(
        response.ignored_paths,
        [
            format!("{nested}.steps.translations.fr"),
            format!("{nested}.task.translations.de"),
            "document.steps.translations.fr".to_owned(),
            "document.task.translations.de".to_owned(),
        ]
    );
    let mut expected = full.clone();
    change_both(&mut expected, |document| {
        document.steps[0].translations.remove("it");
    });
    assert_eq!(
        canonical(client.exported(&made.guid).await),
        canonical(expected)
    );
    // Without the option they are replaced.
    let mut without = full;
    change_both(&mut without, |document| {
        document.task.as_mut().unwrap().translations.clear();
    });
    reset(&client, without.clone()).await;
    let after = client.exported(&made.guid).await;
    assert_eq!(after.task.unwrap().translations.len(), 0);
}

#[apply(on_both_databases)]
async fn locked_translations_of_what_the_document_leaves_out_are_kept(client: Client) {
    let full = guide_with_wiring_step(&client).await;
    let mut wiring = full.steps[1].clone();
    let row = step_translation("Vanne").with_lock(true);
    wiring.translations.insert("fr".to_owned(), row.clone());
    client.updated_step(wiring.clone(), &["translations"]).await;
    let mut sent = full;
    sent.steps.pop();
    let request = request(AbsentFields::Reset, sent).with(|it| it.keep_locked = true);
    let response = client.call(request).await.accepted();
    assert_eq!(response.ignored_paths, ["document.steps.translations.fr"]);
    let after = client.get_step(&wiring.guid).await.accepted();
    assert_eq!(after.translations.get("fr"), Some(&row));
    assert_eq!(after.body, None);
}

/// A question whose value `a` manages a task with such a question, down to this depth. Every task
/// and step has fields that can be reset.
fn nested_guide(depth: usize) -> TaskDocument {
    let mut steps = vec![full_step(&Task::default())];
    if depth > 0 {
        let inner = answer_with("a", "A", nested_guide(depth - 1));
        steps.push(observation_asking(linked_question(vec![inner])));
    }
    document_with(full_task(), steps)
}

/// Changes a nested guide and the document in its value.
fn change_both(guide: &mut TaskDocument, change: fn(&mut TaskDocument)) {
    change(guide);
    let value = &mut guide.steps[1].feedback_config[0].values[0];
    change(value.task_json.as_mut().unwrap());
}

#[apply(on_both_databases)]
async fn one_of_several_languages_is_kept_unless_it_is_reset(client: Client) {
    let mut guide = nested_guide(1);
    change_both(&mut guide, |document| {
        let row = step_translation("Vanne").with_lock(true);
        document.steps[0].translations.insert("fr".to_owned(), row);
    });
    let made = client.imported(guide).await;
    let full = client.exported(&made.guid).await;
    let mut sent = full.clone();
    change_both(&mut sent, |document| {
        let task = document.task.as_mut().unwrap();
        // Both are locked.
        task.translations.remove("de");
        document.steps[0].translations.remove("fr");
    });
    let kept = request(AbsentFields::Keep, sent.clone());
    let response = client.call(kept).await.accepted();
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
    assert_eq!(client.exported(&made.guid).await, full);
    reset(&client, sent.clone()).await;
    let after = client.exported(&made.guid).await;
    assert_eq!(canonical(after), canonical(sent));
}

#[apply(on_both_databases)]
async fn a_value_without_a_document_resets_its_task(client: Client) {
    let made = client.imported(nested_guide(1)).await;
    let full = client.exported(&made.guid).await;
    let mut sent = full.clone();
    sent.steps[1].feedback_config[0].values[0].task_json = None;
    // The steps of the managed task are absent.
    let refused = request(AbsentFields::Reset, sent.clone())
        .with(|it| it.set_absent_steps(AbsentSteps::Unspecified));
    let failure = client.call(refused).await.refused();
    failure.is_precondition("ABSENT_STEPS");
    let kept = request(AbsentFields::Keep, sent.clone());
    let response = client.call(kept).await.accepted();
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
    reset(&client, sent).await;
    let after = client.exported(&made.guid).await;
    let managed = |guide: &TaskDocument| {
        let value = &guide.steps[1].feedback_config[0].values[0];
        value.task_json.clone().unwrap()
    };
    let (before, after) = (managed(&full).task.unwrap(), managed(&after));
    assert_eq!(after.steps, []);
    let after = after.task.unwrap();
    assert_eq!((&after.guid, &after.name), (&before.guid, &before.name));
    assert_eq!(after.published, Some(1));
    assert_eq!(after.roles.len(), 7);
    assert_eq!((after.dependencies, after.translations.len()), (None, 0));
}

/// A guide whose wiring step has fields of its own.
async fn guide_with_wiring_step(client: &Client) -> TaskDocument {
    let sent = document("Guide", vec![linked_observation(&[("a", "A")])]);
    let made = client.imported(sent).await;
    let change = Step {
        body: Some("text".to_owned()),
        published: Some(0),
        feedback_config: vec![question("helped", &["yes"])],
        ..step_of(&made.steps[1])
    };
    client.updated_step(change, &[]).await;
    client.exported(&made.guid).await
}

#[apply(on_both_databases)]
async fn an_unlisted_wiring_step_has_its_defaults(client: Client) {
    let full = guide_with_wiring_step(&client).await;
    let mut sent = full.clone();
    let wiring = sent.steps.pop().unwrap();
    let kept = request(AbsentFields::Keep, sent.clone());
    let response = client.call(kept).await.accepted();
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
    reset(&client, sent).await;
    let after = client.get_step(&wiring.guid).await.accepted();
    assert_eq!((after.body, after.published), (None, Some(1)));
    assert_eq!(after.feedback_config, []);
    assert_eq!((after.link, after.title), (wiring.link, wiring.title));
}

#[apply(on_both_databases)]
async fn a_wiring_step_without_its_id_is_replaced_with_its_question(client: Client) {
    let full = guide_with_wiring_step(&client).await;
    let mut sent = full.clone();
    let wiring = std::mem::take(&mut sent.steps[1].guid);
    sent.steps[1].feedback_config = vec![question("other", &["no"])];
    for absent in [AbsentFields::Keep, AbsentFields::Reset] {
        client.call(request(absent, sent.clone())).await.accepted();
        let after = client.get_step(&wiring).await.accepted();
        assert_eq!(after.feedback_config[0].name, "other");
    }
    sent.steps[1].feedback_config.clear();
    let kept = request(AbsentFields::Keep, sent.clone());
    client.call(kept).await.accepted();
    let after = client.get_step(&wiring).await.accepted();
    assert_eq!(after.feedback_config[0].name, "other");
    reset(&client, sent).await;
    let after = client.get_step(&wiring).await.accepted();
    assert_eq!(after.feedback_config, []);
}

#[apply(on_both_databases)]
async fn the_path_of_a_required_field_that_is_left_out_leads_into_a_value(client: Client) {
    let made = client.imported(nested_guide(1)).await;
    let mut sent = client.exported(&made.guid).await;
    let value = &mut sent.steps[1].feedback_config[0].values[0];
    value.task_json.as_mut().unwrap().steps[0].title.clear();
    let refused = client.call(request(AbsentFields::Reset, sent)).await;
    let path = "document.steps[1].feedback_config[0].values[0].task_json.steps[0].title";
    refused.refused().violates(&[(path, "FIELD_REQUIRED")]);
}

#[apply(on_both_databases)]
async fn what_follows_something_else_still_follows_it(client: Client) {
    let full = guide_with_wiring_step(&client).await;
    let outside = client.given_task(task("Outside")).await;
    let mut sent = full.clone();
    sent.steps.push(subtask(&Task::default(), &outside));
    let guid = &full.task.as_ref().unwrap().guid;
    client.imported(sent).await;
    let full = client.exported(guid).await;
    let mut sent = full.clone();
    let value = &mut sent.steps[0].feedback_config[0].values[0];
    value
        .task_json
        .as_mut()
        .unwrap()
        .task
        .as_mut()
        .unwrap()
        .name
        .clear();
    for step in &mut sent.steps[1..] {
        step.title.clear();
        step.subtask_pid = None;
    }
    // A wiring step refers to its managed task, whatever is sent.
    sent.steps[1].subtask_id.clear();
    let response = reset(&client, sent).await;
    assert_eq!(response.ignored_paths, [""; 0]);
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
    assert_eq!(client.exported(guid).await, full);
}

#[apply(on_both_databases)]
async fn a_wiring_step_that_is_unlinked_needs_its_task(client: Client) {
    let full = guide_with_wiring_step(&client).await;
    let mut sent = full.clone();
    sent.steps[0].feedback_config[0] = question("it", &["a"]);
    sent.steps[1].subtask_id.clear();
    let refused = client.call(request(AbsentFields::Reset, sent.clone()));
    let refused = refused.await.refused();
    refused.violates(&[("document.steps[1].subtask_id", "FIELD_REQUIRED")]);
    // Without a reset it keeps what it refers to.
    client
        .call(request(AbsentFields::Keep, sent))
        .await
        .accepted();
    let wiring = &full.steps[1];
    let after = client.get_step(&wiring.guid).await.accepted();
    assert_eq!((&*after.link, &after.subtask_id), ("", &wiring.subtask_id));
}

#[apply(on_both_databases)]
async fn kept_steps_stay_as_they_are(client: Client) {
    let full = full_guide(&client).await;
    let mut sent = full.clone();
    let kept = sent.steps.split_off(1);
    let request =
        request(AbsentFields::Reset, sent).with(|it| it.set_absent_steps(AbsentSteps::Keep));
    client.call(request).await.accepted();
    let after = client.exported(&full.task.unwrap().guid).await;
    assert_eq!(after.steps[1..], kept);
}

#[apply(on_both_databases)]
async fn a_new_task_is_the_same_with_every_value(client: Client) {
    let made = client.imported(nested_guide(1)).await;
    let expected = client.exported(&made.guid).await;
    for absent in [AbsentFields::Keep, AbsentFields::Reset] {
        let response = client.call(request(absent, nested_guide(1))).await;
        let response = response.accepted();
        assert_eq!(response.outcome(), ImportOutcome::Created);
        let made = client.exported(&response.task.unwrap().guid).await;
        assert_eq!(canonical(made), canonical(expected.clone()));
    }
}
