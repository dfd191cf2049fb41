//! Ids of tasks and steps that callers choose. `tests/cases/external_ids.cases` has most of it.

mod races;

use crate::prelude::*;

#[apply(on_both_databases)]
async fn ids_differ_by_every_byte(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    // Composed and decomposed, upper and lower case, with and without a space inside.
    for id in ["ü", "u\u{308}", "U", "u", "a b", "a  b"] {
        client.given_task(task("Guide").with_external_id(id)).await;
        let request = ListTasksRequest::default().with(|it| it.external_id = id.to_owned());
        assert_eq!(client.list(request).await.len(), 1, "{id:?}");
        let step = information_step(&guide, "Step").with_external_id(id);
        client.given_step(step).await;
    }
}

#[apply(on_both_databases)]
async fn tasks_are_listed_by_external_id_and_by_name(client: Client) {
    let named = "n".repeat(200);
    let first = client.given_task(task(&named).with_external_id("a")).await;
    let second = client.given_task(task(&named).with_external_id("b")).await;
    client.given_task(task(&named.to_uppercase())).await;
    let spaced = client.given_task(task(" Lamp")).await;
    client.given_task(task("Lamp")).await;
    let by = |external_id: &str, name: &str| ListTasksRequest {
        external_id: external_id.to_owned(),
        name: name.to_owned(),
        page_size: 1,
        ..ListTasksRequest::default()
    };
    let both = [first.clone(), second.clone()];
    assert_eq!(client.list(by("", &named)).await, both);
    assert_eq!(client.list(by("b", "")).await, [second]);
    assert_eq!(client.list(by("a", &named)).await, [first]);
    assert_eq!(client.list(by("a", "other")).await, []);
    assert_eq!(client.list(by("A", "")).await, []);
    assert_eq!(client.list(by("", " Lamp")).await, [spaced]);
}

#[apply(on_both_databases)]
async fn etags_must_match_if_the_task_exists(client: Client) {
    let steps = vec![document_step(StepType::End, "A").with_external_id("a")];
    let sent = document_with(task("Guide").with_external_id("guide"), steps);
    let made = client.import(sent.clone()).await.accepted();
    let etag = made.task.unwrap().etag;
    let with = |etag: &str, guide_etag: &str| {
        import_of(sent.clone())
            .with(|it| it.match_external_ids = true)
            .with(|it| it.etag = etag.to_owned())
            .with(|it| it.guide_etag = guide_etag.to_owned())
    };
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
