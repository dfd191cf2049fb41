//! Documents of a task that exists.

use crate::prelude::*;

async fn guide(client: &Client, titles: &[&str]) -> Task {
    client.given_guide(document_steps(titles)).await
}

#[apply(on_both_databases)]
async fn ids_are_read_in_any_case(client: Client) {
    let made = guide(&client, &["a"]).await;
    let steps = vec![step_of(&made.steps[0].to_uppercase())];
    let after = client
        .imported(document_of(&made.guid.to_uppercase(), steps))
        .await;
    assert_eq!(after, made);
}

#[apply(on_both_databases)]
async fn a_step_may_be_listed_once(client: Client) {
    let made = guide(&client, &["a"]).await;
    let steps = vec![
        step_of(&made.steps[0]),
        step_of(&made.steps[0].to_uppercase()),
    ];
    let failure = client
        .import(document_of(&made.guid, steps))
        .await
        .refused();
    failure.violates(&[("document.steps[1].guid", "FIELD_INVALID")]);
}

fn renaming(guid: &str, etag: &str) -> ImportTaskRequest {
    let sent = document_with(task_of(guid).named("Renamed"), Vec::new());
    import_of(sent).with(|it| it.etag = etag.to_owned())
}

#[apply(on_both_databases)]
async fn an_old_etag_aborts_the_import(client: Client) {
    let made = guide(&client, &[]).await;
    let after = client.call(renaming(&made.guid, "")).await.accepted();
    for etag in [made.etag.as_str(), "x", " "] {
        let failure = client.call(renaming(&made.guid, etag)).await.refused();
        failure.is(Code::Aborted, "ETAG_MISMATCH");
        let expected = format!(
            "task {}: its etag is not the one sent; read it again",
            made.guid
        );
        assert_eq!(failure.message, expected);
    }
    let read = client.get_task(&made.guid).await.accepted();
    assert_eq!(Some(read), after.task);
}

#[apply(on_both_databases)]
async fn an_etag_follows_the_list_of_steps_and_not_their_texts(client: Client) {
    let made = guide(&client, &["a"]).await;
    let step = step_of(&made.steps[0]);
    client.updated_step(step.clone().titled("b"), &[]).await;
    let request = import_of(document_of(&made.guid, vec![step.titled("c")]))
        .with(|it| it.etag = made.etag.clone());
    client.call(request.clone()).await.accepted();
    assert_eq!(client.step_titles(&made.guid).await, ["c"]);
    client.given_step(information_step(&made, "new")).await;
    let refused = client.call(request).await.refused();
    refused.is(Code::Aborted, "ETAG_MISMATCH");
}

/// Many imports, each with new steps and a new order.
#[apply(on_both_databases)]
async fn a_hundred_orders_in_a_row_are_those_of_their_lists(client: Client) {
    let made = guide(&client, &["a", "b", "c"]).await;
    let mut order = made.steps.clone();
    for round in 0..100 {
        let mut steps: Vec<Step> = order.iter().map(|guid| step_of(guid)).collect();
        match round % 5 {
            0 => steps.reverse(),
            1 => steps.rotate_left(1),
            2 => steps.insert(1, document_step(StepType::Information, "second")),
            3 => steps.insert(0, document_step(StepType::Information, "first")),
            _ => {
                let at = steps.len() / 2;
                steps.insert(at, document_step(StepType::Information, "middle"));
                steps.insert(at, document_step(StepType::Information, "before"));
            }
        }
        let expected: Vec<String> = steps.iter().map(|step| step.guid.clone()).collect();
        let after = client.imported(document_of(&made.guid, steps)).await;
        let known = after.steps.iter().map(|guid| match order.contains(guid) {
            true => guid.clone(),
            false => String::new(),
        });
        assert_eq!(known.collect::<Vec<_>>(), expected);
        assert_eq!(client.step_order(&made.guid).await, after.steps);
        order = after.steps;
    }
    let listed = client.steps_of(&made.guid, 7).await;
    let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
    assert_eq!(listed, order);
}
