//! Subtask steps that name their tasks by external ids.

use crate::kit::prelude::*;

const FIELD: &str = "step.subtask_external_id";

/// A step that only names its task by an external id.
fn naming(id: &str) -> Step {
    document_step(StepType::Subtask, "").with_subtask_external_id(id)
}

/// A guide, two tasks with the external ids `a` and `b`, of different products, and a step of the
/// guide that refers to the first one.
async fn wired(client: &Client) -> (Task, [Task; 2], Step) {
    let guide = client.given_task(task("Guide")).await;
    let a = client.given_task(task("A").with_external_id("a")).await;
    let b = task("B").with_external_id("b").with_product(PRODUCT + 1);
    let b = client.given_task(b).await;
    let step = client.given_step(subtask(&guide, &a)).await;
    (guide, [a, b], step)
}

fn match_by_external_ids(document: TaskDocument) -> ImportTaskRequest {
    import_of(document).with(|it| it.match_external_ids = true)
}

#[track_caller]
fn refers_to(step: &Step, target: &Task) {
    let expected = (&*target.guid, target.product_id, target.external_id());
    let found = (
        &*step.subtask_id,
        step.subtask_pid,
        step.subtask_external_id(),
    );
    assert_eq!(found, expected, "{step:?}");
    assert_eq!(step.title, target.name);
}

/// Asserts that no task has the external id that this field names.
#[track_caller]
fn is_unknown(failure: &Failure, id: &str, field: &str) {
    failure.is_task_not_found(id);
    assert_eq!(failure.metadata()["field"], field, "{failure:?}");
}

#[apply(on_both_databases)]
async fn a_step_names_its_task_by_either_id_or_both(client: Client) {
    let (guide, [a, b], step) = wired(&client).await;
    refers_to(&step, &a);
    let by_name = naming("b").in_task(&guide.guid);
    let both = subtask(&guide, &b).with_subtask_external_id("b");
    let empty = subtask(&guide, &b).with_subtask_external_id("");
    for sent in [by_name, both, empty] {
        let response = client.create_step(sent).await.accepted();
        assert_eq!(response.ignored_paths, [""; 0]);
        let made = response.step.unwrap();
        refers_to(&made, &b);
        assert_eq!(client.get_step(&made.guid).await.accepted(), made);
    }
    for step in client.steps_of(&guide.guid, 0).await.iter().skip(1) {
        refers_to(step, &b);
    }
    let exported = client.exported(&guide.guid).await;
    refers_to(&exported.steps[0], &a);
    // A task without an external id.
    let step = client.given_step(subtask(&a, &guide)).await;
    assert_eq!(step.subtask_external_id, None);
}

#[apply(on_both_databases)]
async fn what_names_no_task_or_two_is_refused(client: Client) {
    let (guide, [_, b], step) = wired(&client).await;
    let other = client.other_account();
    other
        .given_task(task("Foreign").with_external_id("c"))
        .await;
    let in_guide = |step: Step| step.in_task(&guide.guid);
    for (sent, field, reason) in [
        (
            subtask(&guide, &b).with_subtask_external_id("a"),
            FIELD,
            "FIELD_INVALID",
        ),
        (
            in_guide(naming("b")).with_subtask_id(unknown_guid()),
            FIELD,
            "FIELD_INVALID",
        ),
        (
            in_guide(naming("b")).with_subtask_pid(PRODUCT),
            "step.subtask_pid",
            "FIELD_INVALID",
        ),
        (in_guide(naming(" b")), FIELD, "FIELD_INVALID"),
        (in_guide(naming(&"b".repeat(201))), FIELD, "FIELD_TOO_LONG"),
        (
            in_guide(naming("b")).with_subtask_id("b"),
            "step.subtask_id",
            "FIELD_INVALID",
        ),
    ] {
        let failure = client.create_step(sent.clone()).await.refused();
        failure.violates(&[(field, reason)]);
        let update = sent.with_guid(step.guid.clone());
        let failure = client.update_step(update, &[]).await.refused();
        failure.violates(&[(field, reason)]);
    }
    for id in ["c", "A"] {
        let failure = client.create_step(in_guide(naming(id))).await.refused();
        is_unknown(&failure, id, FIELD);
        let update = step_of(&step.guid).with_subtask_external_id(id);
        let failure = client.update_step(update, &[FIELD_NAME]).await.refused();
        is_unknown(&failure, id, FIELD);
        let document = document("Importing", vec![naming("b"), naming(id)]);
        let failure = client.import(document).await.refused();
        is_unknown(&failure, id, "document.steps[1].subtask_external_id");
    }
    let mut sent = naming("a").with_subtask_id(&b.guid);
    sent.cost = Some(1);
    let failure = client
        .import(document("Importing", vec![sent.clone()]))
        .await;
    failure
        .refused()
        .violates(&[("document.steps[0].cost", "FIELD_OUT_OF_RANGE")]);
    sent.cost = None;
    let failure = client.import(document("Importing", vec![sent])).await;
    let field = "document.steps[0].subtask_external_id";
    failure.refused().violates(&[(field, "FIELD_INVALID")]);
    assert_eq!(client.get_step(&step.guid).await.accepted(), step);
    assert_eq!(client.step_order(&guide.guid).await, [step.guid]);
}

const FIELD_NAME: &str = "subtask_external_id";

#[apply(on_both_databases)]
async fn an_update_names_the_task_by_what_its_mask_has(client: Client) {
    let (_, [a, b], step) = wired(&client).await;
    let update = async |update: Step, mask: &[&str]| {
        let update = update.with_guid(&step.guid);
        client.update_step(update, mask).await
    };
    let updated =
        async |step: Step, mask: &[&str]| update(step, mask).await.accepted().step.unwrap();
    let named = |id: &str| Step::default().with_subtask_external_id(id);
    refers_to(&updated(named("b"), &[]).await, &b);
    refers_to(&updated(named("a"), &[FIELD_NAME]).await, &a);
    let both = named("b").with_subtask_id(&b.guid);
    refers_to(&updated(both, &[FIELD_NAME, "subtask_id"]).await, &b);
    // What the mask does not have does not count.
    let both = named("b").with_subtask_id(&a.guid);
    refers_to(&updated(both.clone(), &["subtask_id"]).await, &a);
    refers_to(&updated(both, &[FIELD_NAME]).await, &b);
    let id_alone = Step::default().with_subtask_id(&a.guid);
    refers_to(
        &updated(id_alone.clone(), &[FIELD_NAME, "subtask_id"]).await,
        &a,
    );
    refers_to(&updated(named("b"), &["*"]).await, &b);
    let failure = update(Step::default(), &[FIELD_NAME]).await.refused();
    failure.violates(&[(FIELD, "FIELD_REQUIRED")]);
    let failure = update(named("b"), &["subtask_id"]).await.refused();
    failure.violates(&[("step.subtask_id", "FIELD_REQUIRED")]);
    let failure = update(id_alone, &[FIELD_NAME]).await.refused();
    failure.violates(&[(FIELD, "FIELD_REQUIRED")]);
    // The stored product remains the product of the task.
    let product = Step::default().with_subtask_pid(PRODUCT);
    let failure = update(product, &["subtask_pid"]).await.refused();
    failure.violates(&[("step.subtask_pid", "FIELD_INVALID")]);
    refers_to(&client.get_step(&step.guid).await.accepted(), &b);
}

#[apply(on_both_databases)]
async fn other_steps_and_wiring_steps_ignore_and_list_it(client: Client) {
    let (guide, _, _) = wired(&client).await;
    let sent = information_step(&guide, "Read").with_subtask_external_id("b");
    let response = client.create_step(sent.clone()).await.accepted();
    assert_eq!(response.ignored_paths, [FIELD]);
    let made = response.step.unwrap();
    assert_eq!(made.subtask_external_id, None);
    let update = sent.with_guid(&made.guid);
    let response = client.update_step(update, &[FIELD_NAME]).await.accepted();
    assert_eq!(response.ignored_paths, [FIELD]);
    let linked = document("Linked", vec![linked_observation(&[("yes", "Yes")])]);
    let linked = client.imported(linked).await;
    let wiring = linked.steps[1].clone();
    let update = step_of(&wiring).with_subtask_external_id("b");
    let response = client.update_step(update, &[]).await.accepted();
    assert_eq!(response.ignored_paths, [FIELD]);
    let mut exported = client.exported(&linked.guid).await;
    assert_eq!(exported.steps[1].subtask_external_id, None);
    exported.steps[1].subtask_external_id = Some("b".to_owned());
    let response = client.import(exported.clone()).await.accepted();
    assert_eq!(
        response.ignored_paths,
        ["document.steps.subtask_external_id"]
    );
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
}

#[apply(on_both_databases)]
async fn steps_follow_the_external_id_of_their_task(client: Client) {
    let (guide, [a, _], step) = wired(&client).await;
    let revision = client.kept_revision(&guide.guid).await.revision;
    let exported = client.exported(&guide.guid).await;
    let mut before = step;
    for id in [Some("other"), None, Some("a")] {
        let cursor = client.cursor_now().await;
        let mut update = task_of(&a.guid);
        update.external_id = id.map(str::to_owned);
        client.updated_task(update, &["external_id"]).await;
        let after = client.get_step(&before.guid).await.accepted();
        assert_eq!(after.subtask_external_id.as_deref(), id);
        assert_ne!(after.etag, before.etag);
        let (changes, _) = client.changes_after(&cursor).await;
        let told = changes.iter().find(|it| it.step == before.guid).unwrap();
        assert_eq!(
            (told.kind(), &*told.fields),
            (ChangeKind::StepUpdated, &[FIELD_NAME.to_owned()][..])
        );
        assert_eq!(told.etag, after.etag);
        let compared = client.compare_revisions(&guide.guid, revision, "").await;
        assert!(compared.accepted().same);
        before = after;
    }
    // A new name and id together.
    let cursor = client.cursor_now().await;
    let update = task_of(&a.guid).named("Both").with_external_id("both");
    let a = client.updated_task(update, &["name", "external_id"]).await;
    refers_to(&client.get_step(&before.guid).await.accepted(), &a);
    let (changes, _) = client.changes_after(&cursor).await;
    let told = changes.iter().find(|it| it.step == before.guid).unwrap();
    assert_eq!(told.fields, [FIELD_NAME, "title"]);
    // The document that names the task by its former id names no task now.
    let failure = client.import(exported).await.refused();
    is_unknown(&failure, "a", "document.steps[0].subtask_external_id");
    let kept = client.revision_document(&guide.guid, revision).await;
    assert_eq!(kept.steps[0].subtask_external_id(), "a");
    // A restored step refers to the current task.
    let information = information_step(&guide, "Read");
    client.given_step(information).await;
    client.restored(&guide.guid, revision).await;
    refers_to(&client.exported(&guide.guid).await.steps[0], &a);
    client.delete_step(&before.guid).await.accepted();
    let update = task_of(&a.guid).with_external_id("latest");
    let a = client.updated_task(update, &["external_id"]).await;
    let restored = client.restore_step(&before.guid).await.accepted();
    refers_to(&restored.step.unwrap(), &a);
}

#[apply(on_both_databases)]
async fn a_directory_of_guides_needs_no_guid(client: Client) {
    let guide = |id: &str, steps| document_with(task(id).with_external_id(id), steps);
    let end = || document_step(StepType::End, "Done").with_external_id("end");
    let inner = document("Yes", vec![naming("part").with_external_id("inner")]);
    let question = linked_question(vec![answer_with("yes", "Yes", inner)]);
    let question = observation_asking(question).with_external_id("question");
    let directory = [
        guide("part", vec![end()]),
        guide(
            "whole",
            vec![naming("part").with_external_id("a"), question],
        ),
        // It refers to itself, too.
        guide(
            "loop",
            vec![
                naming("whole").with_external_id("a"),
                naming("loop").with_external_id("b"),
            ],
        ),
    ];
    for client in [client.clone(), client.other_account()] {
        let failure = client.call(match_by_external_ids(directory[1].clone()));
        let field = "document.steps[0].subtask_external_id";
        is_unknown(&failure.await.refused(), "part", field);
        let mut made = Vec::new();
        for document in &directory {
            let sent = match_by_external_ids(document.clone());
            let response = client.call(sent).await.accepted();
            assert_eq!(response.outcome(), ImportOutcome::Created);
            made.push(response.task.unwrap());
        }
        let [part, whole, looping] = <[Task; 3]>::try_from(made).unwrap();
        let exported = client.exported(&whole.guid).await;
        refers_to(&exported.steps[0], &part);
        let managed = answers_of(&exported.steps[1])[0].task_json.clone();
        refers_to(&managed.unwrap().steps[0], &part);
        let exported = client.exported(&looping.guid).await;
        refers_to(&exported.steps[0], &whole);
        refers_to(&exported.steps[1], &looping);
        for document in &directory {
            for absent_fields in [AbsentFields::Keep, AbsentFields::Reset] {
                let sent = match_by_external_ids(document.clone())
                    .with(|it| it.absent_fields = absent_fields.into())
                    .with(|it| it.set_absent_steps(AbsentSteps::Keep));
                let response = client.call(sent).await.accepted();
                assert_eq!(response.ignored_paths, [""; 0]);
                assert_eq!(response.outcome(), ImportOutcome::Unchanged);
            }
        }
        // An import may assign the external id that one of its own steps names, or remove it.
        let mut renamed = client.exported(&looping.guid).await;
        renamed.task.as_mut().unwrap().external_id = Some("new".to_owned());
        let failure = client.import(renamed.clone()).await.refused();
        is_unknown(&failure, "loop", "document.steps[1].subtask_external_id");
        renamed.steps[1].subtask_external_id = Some("new".to_owned());
        client.imported(renamed).await;
        let renamed = client.exported(&looping.guid).await;
        refers_to(&renamed.steps[1], renamed.task.as_ref().unwrap());
        assert_eq!(renamed.steps[1].subtask_external_id(), "new");
    }
}

#[apply(on_both_databases)]
async fn a_document_is_analyzed_with_the_tasks_that_it_names(client: Client) {
    let target = task("Target").with_external_id("target").with_published(0);
    let target = client.given_task(target).await;
    let own = task("Guide").with_external_id("guide");
    let document = document_with(own, vec![naming("target"), naming("guide")]);
    let validated = client
        .validated(validation_of_document(document.clone()))
        .await;
    let rules: Vec<&str> = validated.findings.iter().map(|it| &*it.rule).collect();
    assert!(rules.contains(&"subtask/unpublished"), "{rules:?}");
    assert!(rules.contains(&"subtask/cycle"), "{rules:?}");
    let preview = preview_of_document(document.clone())
        .with(|it| it.subtask_depth = 1)
        .with(|it| it.include_unpublished = true);
    let previewed = client.previewed(preview.clone()).await;
    let title = previewed.steps[0].title.as_ref().unwrap();
    assert_eq!(title.text, target.name);
    client.delete_task(&target.guid).await.accepted();
    let failure = client.call(preview).await.refused();
    is_unknown(&failure, "target", "document.steps[0].subtask_external_id");
}

/// Clients move an external id between tasks, while others refer to the task that has it.
#[apply(on_both_databases)]
async fn a_name_that_moves_names_one_task_at_a_time(client: Client) {
    let (guide, [a, b], _) = wired(&client).await;
    let answers = at_once(&client, 8, |client, number| {
        let (guide, tasks) = (guide.clone(), [a.guid.clone(), b.guid.clone()]);
        async move {
            for round in 0..8 {
                if number % 2 == 0 {
                    let id = ["moving", "resting"][(number / 2 + round) % 2];
                    let update = task_of(&tasks[round % 2]).with_external_id(id);
                    let moved = client.update_task(update, &["external_id"]).await;
                    assert!(
                        moved.is_ok()
                            || Failure::from(moved.unwrap_err()).reason() == "EXTERNAL_ID_TAKEN"
                    );
                } else {
                    let sent = naming("moving").in_task(&guide.guid);
                    if let Ok(made) = client.create_step(sent).await {
                        assert_eq!(made.step.unwrap().subtask_external_id(), "moving");
                    }
                }
            }
        }
    });
    answers.await;
    for step in client.steps_of(&guide.guid, 0).await {
        let target = client.get_task(&step.subtask_id).await.accepted();
        refers_to(&step, &target);
    }
}
