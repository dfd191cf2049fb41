//! Imports that find what is stored by external ids.

use super::{is_taken_by_task, linked_guide, managed};
use crate::kit::prelude::*;

fn request(document: TaskDocument) -> ImportTaskRequest {
    import_of(document).with(|it| it.match_external_ids = true)
}

async fn imported(client: &Client, document: TaskDocument) -> ImportTaskResponse {
    client.call(request(document)).await.accepted()
}

fn end(id: &str, title: &str) -> Step {
    document_step(StepType::End, title).with_external_id(id)
}

/// A guide of a repository, which has no guids.
fn guide(steps: Vec<Step>) -> TaskDocument {
    document_with(task("Guide").with_external_id("guide"), steps)
}

#[apply(on_both_databases)]
async fn a_document_without_guids_makes_a_guide_and_then_changes_it(client: Client) {
    let outside = client.given_task(task("Outside")).await;
    let full = full_step(&Task::default()).with_external_id("full");
    let wiring = subtask(&Task::default(), &outside).with_external_id("outside");
    let sent = guide(vec![end("a", "A"), full, wiring]);
    let shown = async |document: &TaskDocument| {
        let dry_run = request(document.clone()).with(|it| it.validate_only = true);
        client.call(dry_run).await.accepted()
    };
    assert_eq!(shown(&sent).await.outcome(), ImportOutcome::Created);
    assert_eq!(client.all_tasks().await, [outside]);
    let made = imported(&client, sent.clone()).await;
    assert_eq!(made.outcome(), ImportOutcome::Created);
    let made = made.task.unwrap();
    let before = client.exported(&made.guid).await;
    let again = imported(&client, sent.clone()).await;
    assert_eq!(again.outcome(), ImportOutcome::Unchanged);
    assert_eq!(again.ignored_paths, [""; 0]);
    assert_eq!(client.exported(&made.guid).await, before);

    let mut changed = sent;
    let root = changed.task.as_mut().unwrap();
    root.name = "Renamed".to_owned();
    changed.steps.swap(0, 1);
    changed.steps[1].title = "A2".to_owned();
    changed.steps.insert(1, end("b", "B"));
    let shown = shown(&changed).await;
    assert_eq!(shown.outcome(), ImportOutcome::Updated);
    assert_eq!(shown.task.unwrap().guid, made.guid);
    assert_eq!(client.exported(&made.guid).await, before);
    let updated = imported(&client, changed).await;
    assert_eq!(updated.outcome(), ImportOutcome::Updated);
    assert_eq!(updated.previous_revision, 1);
    assert_eq!(client.revision_document(&made.guid, 1).await, before);
    let after = updated.task.unwrap();
    assert_eq!((&after.guid, &*after.name), (&made.guid, "Renamed"));
    let [full, new, a, outside] = <[String; 4]>::try_from(after.steps).unwrap();
    assert_eq!([a.clone(), full, outside], *made.steps);
    assert!(!made.steps.contains(&new));
    assert_eq!(client.get_step(&a).await.accepted().title, "A2");
}

#[apply(on_both_databases)]
async fn without_the_flag_a_document_makes_a_task_each_time(client: Client) {
    let steps = || vec![end("a", "A")];
    let first = client.given_guide(steps()).await;
    let second = client.given_guide(steps()).await;
    assert_ne!(first.guid, second.guid);
    // A document without an id of its own does so with the flag, too.
    let third = imported(&client, document("Guide", steps())).await;
    assert_eq!(third.outcome(), ImportOutcome::Created);
}

#[apply(on_both_databases)]
async fn a_matched_guide_is_reset_like_one_with_a_guid(client: Client) {
    let full = full_step(&Task::default()).with_external_id("full");
    let root = full_task().with_external_id("guide");
    imported(&client, document_with(root, vec![full, end("a", "A")])).await;
    let lacking = client.call(request(guide(vec![end("a", "A")])));
    lacking.await.refused().is_precondition("ABSENT_STEPS");
    let sent = guide(vec![
        end("full", "Only a title").with_question(question("q", &["a"])),
    ]);
    let reset = request(sent)
        .with(|it| it.set_absent_fields(AbsentFields::Reset))
        .with(|it| it.set_absent_steps(AbsentSteps::Delete));
    let response = client.call(reset).await.accepted();
    // Its type is fixed.
    assert_eq!(response.ignored_paths, ["document.steps.type"]);
    let task = response.task.unwrap();
    assert_eq!((task.dependencies, task.published), (None, Some(1)));
    let step = client.get_step(&task.steps[0]).await.accepted();
    assert_eq!((&*step.title, step.body), ("Only a title", None));
    assert_eq!(task.steps.len(), 1);
}

#[apply(on_both_databases)]
async fn steps_of_a_task_with_a_guid_are_matched_too(client: Client) {
    // The steps of other tasks may have the same ids.
    let given = async || client.given_guide(vec![end("a", "A")]).await;
    let [before, made, after] = [given().await, given().await, given().await];
    let sent = document_of(&made.guid, vec![end("a", "A2")]);
    let response = imported(&client, sent).await;
    assert_eq!(response.task.unwrap().steps, made.steps);
    assert_eq!(client.step_titles(&made.guid).await, ["A2"]);
    for other in [before, after] {
        assert_eq!(client.step_titles(&other.guid).await, ["A"]);
    }
}

#[apply(on_both_databases)]
async fn a_guid_goes_before_an_external_id(client: Client) {
    let owner = imported(&client, guide(Vec::new())).await.task.unwrap();
    let other = client.given_task(task("Other")).await;
    let sent = |id: &str| {
        let root = task("Renamed").with_guid(&other.guid).with_external_id(id);
        document_with(root, Vec::new())
    };
    let refused = client.call(request(sent("guide"))).await.refused();
    is_taken_by_task(&refused, "document.task.external_id", &owner.guid);
    let changed = imported(&client, sent("own")).await.task.unwrap();
    assert_eq!((&changed.guid, &*changed.name), (&other.guid, "Renamed"));
    assert_eq!(changed.external_id(), "own");
    let owner = client.get_task(&owner.guid).await.accepted();
    assert_eq!(owner.name, "Guide");
}

#[apply(on_both_databases)]
async fn the_flag_is_advised_only_where_it_is_not_set(client: Client) {
    let owner = client.given_task(task("Owner").with_external_id("a")).await;
    let other = client.given_task(task("Other")).await;
    let mut document = client.exported(&other.guid).await;
    document.task.as_mut().unwrap().external_id = Some("a".to_owned());
    for match_external_ids in [false, true] {
        let import =
            request(document.clone()).with(|it| it.match_external_ids = match_external_ids);
        let failure = client.call(import).await.refused();
        is_taken_by_task(&failure, "document.task.external_id", &owner.guid);
        let advised = failure.message.contains("set `match_external_ids`");
        assert_eq!(advised, !match_external_ids, "{}", failure.message);
    }
}

#[apply(on_both_databases)]
async fn a_task_is_matched_byte_by_byte_in_its_account_while_it_exists(client: Client) {
    let upper = document_with(task("Guide").with_external_id("GUIDE"), Vec::new());
    let other = client.other_account();
    for (client, document) in [
        (&client, guide(Vec::new())),
        (&client, upper),
        (&other, guide(Vec::new())),
    ] {
        let made = imported(client, document).await;
        assert_eq!(made.outcome(), ImportOutcome::Created);
    }
    let matched = imported(&client, guide(vec![end("a", "A")])).await;
    assert_eq!(matched.outcome(), ImportOutcome::Updated);
    let matched = matched.task.unwrap().guid;
    client.force_delete_task(&matched).await.accepted();
    let again = imported(&client, guide(Vec::new())).await;
    assert_eq!(again.outcome(), ImportOutcome::Created);
    assert_ne!(again.task.unwrap().guid, matched);
}

#[apply(on_both_databases)]
async fn steps_of_managed_tasks_are_matched(client: Client) {
    let document = |title: &str| {
        let inner = document("A", vec![end("inner", title)]);
        let values = vec![answer_with("a", "A", inner)];
        let observation = observation_asking(linked_question(values));
        guide(vec![observation.with_external_id("question")])
    };
    let made = imported(&client, document("Before")).await.task.unwrap();
    let mut before = client.exported(&made.guid).await;
    let response = imported(&client, document("Before")).await;
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
    imported(&client, document("After")).await;
    let mut after = client.exported(&made.guid).await;
    let (before, after) = (managed(&mut before), managed(&mut after));
    assert_eq!(after.steps[0].title, "After");
    assert_eq!(after.steps[0].guid, before.steps[0].guid);
    assert_eq!(
        after.task.as_ref().unwrap().guid,
        before.task.as_ref().unwrap().guid
    );
}

#[apply(on_both_databases)]
async fn etags_must_match_if_the_task_exists(client: Client) {
    let sent = guide(vec![end("a", "A")]);
    let with = |etag: &str, guide_etag: &str| {
        request(sent.clone())
            .with(|it| it.etag = etag.to_owned())
            .with(|it| it.guide_etag = guide_etag.to_owned())
    };
    // There is nothing yet that they could be of.
    let made = client.call(with("old", "old")).await.accepted();
    assert_eq!(made.outcome(), ImportOutcome::Created);
    let etag = made.task.unwrap().etag;
    for wrong in [with("old", ""), with("", "old"), with(&etag, "old")] {
        for validate_only in [true, false] {
            let wrong = wrong.clone().with(|it| it.validate_only = validate_only);
            let refused = client.call(wrong).await.refused();
            refused.is(Code::Aborted, "ETAG_MISMATCH");
        }
    }
    let right = client.call(with(&etag, &made.guide_etag)).await;
    assert_eq!(right.accepted().outcome(), ImportOutcome::Unchanged);
}

#[apply(on_one_database)]
async fn an_etag_needs_something_to_match(client: Client) {
    let with_etag = |document| {
        request(document)
            .with(|it| it.etag = "old".to_owned())
            .with(|it| it.guide_etag = "old".to_owned())
    };
    let unknown = with_etag(document("Guide", Vec::new()));
    let unmatched = with_etag(guide(Vec::new())).with(|it| it.match_external_ids = false);
    for request in [unknown, unmatched] {
        let refused = client.call(request).await.refused();
        refused.violates(&[("etag", "FIELD_INVALID"), ("guide_etag", "FIELD_INVALID")]);
    }
}

#[apply(on_both_databases)]
async fn steps_exchange_their_ids(client: Client) {
    let steps = ["a", "b", "c"].map(|id| end(id, id));
    let made = client.given_guide(steps.to_vec()).await;
    let ids = async || -> Vec<String> {
        let steps = client.steps_of(&made.guid, 0).await;
        steps
            .iter()
            .map(|step| step.external_id().to_owned())
            .collect()
    };
    for order in [
        ["b", "a", "c"],
        ["a", "c", "b"],
        ["c", "b", "a"],
        ["b", "c", "a"],
    ] {
        let steps = made.steps.iter().zip(order);
        let mut steps: Vec<Step> = steps
            .map(|(guid, id)| step_of(guid).with_external_id(id))
            .collect();
        // One changes its body, too, and is written by another statement.
        steps[1].body = Some(order.concat());
        client.imported(document_of(&made.guid, steps)).await;
        assert_eq!(ids().await, order);
    }
    // One gives its id up without getting another one.
    let steps = vec![
        step_of(&made.steps[0]),
        step_of(&made.steps[1]).with_external_id("b"),
        step_of(&made.steps[2]),
    ];
    let reset = steps.into_iter().map(|step| step.titled("step"));
    let document = document_with(task("Guide").with_guid(made.guid.clone()), reset.collect());
    let request = import_of(document).with(|it| it.set_absent_fields(AbsentFields::Reset));
    client.call(request).await.accepted();
    assert_eq!(ids().await, ["", "b", ""]);
}

#[apply(on_both_databases)]
async fn an_id_of_a_deleted_step_goes_to_a_new_one(client: Client) {
    let made = client.given_guide(vec![end("a", "A"), end("b", "B")]).await;
    let steps = vec![
        step_of(&made.steps[0]).with_external_id("b"),
        end("a", "New"),
    ];
    let sent = document_of(&made.guid, steps);
    let after = client
        .import_with(AbsentSteps::Delete, sent)
        .await
        .accepted();
    let after = after.task.unwrap();
    assert_eq!(after.steps[0], made.steps[0]);
    assert!(!made.steps.contains(&after.steps[1]));
}

#[apply(on_both_databases)]
async fn a_step_that_is_listed_by_its_guid_is_not_matched_by_its_former_id(client: Client) {
    let made = client.given_guide(vec![end("a", "A")]).await;
    let renamed = step_of(&made.steps[0]).with_external_id("b");
    for steps in [
        vec![renamed.clone(), end("a", "New")],
        vec![end("a", "New"), renamed],
    ] {
        let mut request = request(document_of(&made.guid, steps));
        request.validate_only = true;
        let shown = client.call(request).await.accepted();
        let after = shown.document.unwrap().steps;
        let titles = after.iter().map(|step| (step.external_id(), &*step.title));
        let titles: std::collections::BTreeSet<_> = titles.collect();
        assert_eq!(titles, [("a", "New"), ("b", "A")].into());
    }
}

#[apply(on_both_databases)]
async fn a_guid_that_is_not_of_the_matched_task_is_refused(client: Client) {
    imported(&client, guide(vec![end("a", "A")])).await;
    let (_, other) = linked_guide(&client).await;
    let sent = guide(vec![step_of(&other.steps[0].guid)]);
    let refused = client.call(request(sent)).await.refused();
    refused.is(Code::NotFound, "STEP_NOT_FOUND");
}

#[apply(on_one_database)]
async fn equal_ids_in_one_document_are_refused(client: Client) {
    let inner = document("A", vec![end("x", "X"), end("y", "Y"), end("x", "X")]);
    let values = vec![answer_with("a", "A", inner)];
    let steps = vec![
        end("a", "A"),
        observation_asking(linked_question(values)).with_external_id("x"),
        end("a", "B"),
    ];
    for request in [
        request(guide(steps.clone())),
        request(document("Guide", steps.clone())).with(|it| it.match_external_ids = false),
    ] {
        let refused = client.call(request).await.refused();
        let inner = "document.steps[1].feedback_config[0].values[0].task_json.steps";
        let path = format!("{inner}[2].external_id");
        refused.violates(&[
            ("document.steps[2].external_id", "FIELD_INVALID"),
            (path.as_str(), "FIELD_INVALID"),
        ]);
        let description = refused.description_of("document.steps[2].external_id");
        assert_eq!(description, "equals document.steps[0].external_id");
        assert_eq!(
            refused.description_of(&path),
            format!("equals {inner}[0].external_id")
        );
    }
}
