//! Documents that are not stored.

use super::{CLEAN, named, of_rule};
use crate::{api::cases::guide, prelude::*};

const LAMP: &str = "ask light: off, on\ninfo dark ? light = off";

#[apply(on_both_databases)]
async fn a_preview_of_a_document_stores_nothing(client: Client) {
    client.previewed(preview_of_document(guide(LAMP))).await;
    assert_eq!(client.all_tasks().await, Vec::<Task>::new());
}

#[apply(on_both_databases)]
async fn an_invalid_document_is_refused_as_an_import_refuses_it(client: Client) {
    let invalid = document_with(
        task(""),
        guide("ask light\ninfo dark cost=7\nsolution").steps,
    );
    let import = client.import(invalid.clone()).await.refused();
    let request = preview_of_document(invalid.clone());
    let preview = client.call(request).await.refused();
    preview.violates(&import.violations());
    let request = validation_of_document(invalid);
    let validation = client.call(request).await.refused();
    validation.violates(&import.violations());
    assert_eq!(import.violations().len(), 4);
    let empty = preview_of_document(TaskDocument::default());
    let failure = client.call(empty).await.refused();
    failure.violates(&[("document.task", "FIELD_REQUIRED")]);
    let mut without_task = document("", document_steps(&[""]));
    without_task.task = None;
    without_task.steps[0].guid = unknown_guid();
    let import = client.import(without_task.clone()).await.refused();
    let request = validation_of_document(without_task);
    let validation = client.call(request).await.refused();
    validation.violates(&import.violations());
    let missing = ("document.steps[0].title", "FIELD_REQUIRED");
    assert!(import.violations().contains(&missing), "{import:?}");
}

#[apply(on_both_databases)]
async fn a_stored_step_has_its_type_cost_and_etag(client: Client) {
    let steps = "solution Clean it cost=7\nidp It is broken cost=2";
    let task = client.imported(guide(steps)).await;
    let dearer = step_of(&task.steps[1]).with(|it| it.cost = Some(3));
    client.updated_step(dearer, &["cost"]).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    let task = client.get_task(&task.guid).await.accepted();
    assert_eq!(preview.task.expect("a task").etag, task.etag);
    assert_eq!(preview.steps.len(), 2);
    for (shown, guid) in preview.steps.iter().zip(&task.steps) {
        let stored = client.get_step(guid).await.accepted();
        assert_eq!(
            (shown.r#type, Some(shown.cost), &shown.etag),
            (stored.r#type, stored.cost, &stored.etag)
        );
    }
}

#[apply(on_both_databases)]
async fn only_steps_of_stored_tasks_have_ids_and_etags(client: Client) {
    let stored = client.imported(guide(LAMP)).await;
    let outer = document("Outer", vec![subtask(&Task::default(), &stored)]);
    let request = preview_of_document(outer).to_depth(1);
    let preview = client.previewed(request).await;
    let (own, inner) = (&preview.steps[0], &preview.steps[1]);
    assert_eq!((own.guid.as_str(), own.etag.as_str()), ("", ""));
    assert_eq!((&inner.guid, &inner.task), (&stored.steps[0], &stored.guid));
    assert!(!inner.etag.is_empty());
}

/// The ids tie the document's parts together.
#[apply(on_both_databases)]
async fn an_export_is_previewed_like_its_guide_with_its_own_ids(client: Client) {
    let linked = "
        ask light: off, on
        link it: a=First, b=Second
          a
            info inside
        info last";
    let task = client.imported(guide(linked)).await;
    let exported = client.exported(&task.guid).await;
    let request = preview_of_document(exported)
        .to_depth(1)
        .with(|it| it.explain = true);
    let mut document = client.previewed(request).await;
    let request = preview_of(&task.guid)
        .to_depth(1)
        .with(|it| it.explain = true);
    let mut stored = client.previewed(request).await;
    assert_eq!(stored.next_observation, [task.steps[0].clone()]);
    let link = &stored.steps[1]
        .question
        .as_ref()
        .expect("a question")
        .answers[0]
        .link;
    let question = client.get_step(&task.steps[1]).await.accepted();
    assert_eq!(*link, answers_of(&question)[0].link);
    assert!(!link.is_empty());
    let root = document.task.as_ref().expect("a task");
    assert_eq!((root.guid.as_str(), root.etag.as_str()), (&*task.guid, ""));
    // Only stored guides have etags and fingerprints.
    for preview in [&mut stored, &mut document] {
        preview.fingerprint.clear();
        preview.task.as_mut().expect("a task").etag.clear();
        preview.steps.iter_mut().for_each(|step| step.etag.clear());
    }
    assert_eq!(stored, document);
}

#[apply(on_one_database)]
async fn the_next_observation_without_an_id_is_named_by_its_index(client: Client) {
    let mut guide = guide(&format!("idp First\n{LAMP}"));
    let preview = client.previewed(preview_of_document(guide.clone())).await;
    assert_eq!(preview.next_observation, ["#1"]);
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    guide.steps[1].guid = id.to_owned();
    let preview = client.previewed(preview_of_document(guide)).await;
    assert_eq!(preview.next_observation, [id]);
}

#[apply(on_both_databases)]
async fn findings_of_an_export_have_its_ids(client: Client) {
    let made = client.imported(guide("ask a: x, y\nask a: x, y")).await;
    let exported = client.exported(&made.guid).await;
    let found = client.validated(validation_of_document(exported)).await;
    let finding = of_rule(&found.findings, "observation/duplicate-name")[0];
    assert_eq!((&finding.task, &finding.step), (&made.guid, &made.steps[1]));
    let [place] = finding.related.as_slice() else {
        panic!("{finding:#?}");
    };
    assert_eq!((&place.task, &place.step), (&made.guid, &made.steps[0]));
    assert_eq!(place.title, "a");
}

#[apply(on_both_databases)]
async fn what_a_document_replaces_sets_and_reads_nothing(client: Client) {
    let stored = client.imported(named("Guide", CLEAN)).await;
    let mut changed = client.exported(&stored.guid).await;
    // Nothing reads the new name, and nothing sets the old one.
    changed.steps[0].feedback_config[0].name = "lamp".to_owned();
    let mut without_readers = client.exported(&stored.guid).await;
    without_readers.steps.drain(1..3);
    let elsewhere = "condition/set-elsewhere";
    for (document, as_another, as_the_same) in [
        (changed, 2, "condition/unknown-variable"),
        (without_readers, 0, "observation/unused"),
    ] {
        let mut request = validation_of_document(document);
        let found = client.validated(request.clone()).await.findings;
        assert_eq!(of_rule(&found, as_the_same).len(), 0, "{found:#?}");
        assert_eq!(of_rule(&found, elsewhere).len(), as_another, "{found:#?}");
        request.replaces_stored = true;
        let found = client.validated(request).await.findings;
        assert_ne!(of_rule(&found, as_the_same).len(), 0, "{found:#?}");
        assert_eq!(of_rule(&found, elsewhere).len(), 0, "{found:#?}");
    }
    let request = validation_of(&stored.guid).with(|it| it.replaces_stored = true);
    let failure = client.call(request).await.refused();
    failure.violates(&[("replaces_stored", "FIELD_INVALID")]);
}
