//! Pages and fingerprints.

use super::{observation, title};
use crate::kit::prelude::*;

async fn guide(client: &Client) -> Task {
    let inner = document("inner", document_steps(&["c", "d"]));
    let inner = client.imported(inner).await;
    let mut steps = document_steps(&["a", "b"]);
    steps.push(subtask(&Task::default(), &inner));
    steps.extend(document_steps(&["e"]));
    steps.push(observation("f", &["yes"]));
    client.imported(document("outer", steps)).await
}

fn titles(preview: &PreviewTaskResponse) -> Vec<&str> {
    preview.steps.iter().map(title).collect()
}

#[apply(on_both_databases)]
async fn pages_list_every_step_once_in_order(client: Client) {
    let task = guide(&client).await;
    let new = information_step(&task, "new");
    let new = client.create_step_after(new, &task.steps[0]).await;
    new.accepted();
    let mut request = preview_of(&task.guid).to_depth(1).with_page_size(2);
    let mut pages = Vec::new();
    loop {
        let preview = client.previewed(request.clone()).await;
        pages.push(titles(&preview).join(" "));
        if preview.next_page_token.is_empty() {
            break;
        }
        request = request.after(preview.next_page_token);
    }
    assert_eq!(pages, ["a new", "b inner", "c d", "e f"]);
}

#[apply(on_both_databases)]
async fn other_fields_are_on_every_page(client: Client) {
    let task = guide(&client).await;
    let request = preview_of(&task.guid)
        .with_page_size(3)
        .answering("unused", text("1"));
    let first = client.previewed(request.clone()).await;
    let second = client
        .previewed(request.after(first.next_page_token.clone()))
        .await;
    assert_ne!(first.steps, second.steps);
    assert_eq!(first.next_observation, [task.steps[4].clone()]);
    let others = |preview: PreviewTaskResponse| PreviewTaskResponse {
        steps: Vec::new(),
        next_page_token: String::new(),
        ..preview
    };
    assert_eq!(others(first), others(second));
}

#[apply(on_both_databases)]
async fn a_token_is_invalid_after_its_guide_has_changed(client: Client) {
    let task = guide(&client).await;
    let request = preview_of(&task.guid).with_page_size(2);
    let token = client.previewed(request.clone()).await.next_page_token;
    client
        .updated_step(step_of(&task.steps[4]).titled("F"), &["title"])
        .await;
    let failure = client.preview(request.after(token)).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

#[apply(on_both_databases)]
async fn a_token_lasts_while_other_guides_change(client: Client) {
    let task = guide(&client).await;
    let request = preview_of(&task.guid).with_page_size(2);
    let token = client.previewed(request.clone()).await.next_page_token;
    guide(&client).await;
    client.previewed(request.after(token)).await;
}

#[apply(on_both_databases)]
async fn a_fingerprint_changes_with_its_guide_alone(client: Client) {
    let task = guide(&client).await;
    let fingerprint = async || client.previewed(preview_of(&task.guid)).await.fingerprint;
    let first = fingerprint().await;
    guide(&client).await;
    assert_eq!(fingerprint().await, first);
    let inner = client.get_step(&task.steps[2]).await.accepted().subtask_id;
    client
        .updated_task(task_of(&inner).with_published(0), &["published"])
        .await;
    assert_ne!(fingerprint().await, first);
    let fingerprint = async |document| {
        client
            .previewed(preview_of_document(document))
            .await
            .fingerprint
    };
    let document = |name: &str| document(name, document_steps(&["a"]));
    let one = fingerprint(document("one")).await;
    assert_eq!(fingerprint(document("one")).await, one);
    assert_ne!(fingerprint(document("two")).await, one);
    // An export lists the steps once more.
    let mut exported = document("one");
    exported.task.as_mut().expect("a task").steps = vec![unknown_guid()];
    assert_eq!(fingerprint(exported).await, one);
}

#[apply(on_both_databases)]
async fn a_page_ends_before_it_is_too_large(client: Client) {
    const PAGE_BYTES: usize = 3 * 1024 * 1024;
    let large = object(serde_json::json!({"text": "x".repeat(900_000)}));
    let step = document_step(StepType::Information, "large").with_instructions(vec![large]);
    let task = client.imported(document("Large", vec![step; 5])).await;
    let first = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(first.steps.len(), 3);
    assert!(prost::Message::encoded_len(&first) <= PAGE_BYTES);
    let rest = preview_of(&task.guid).after(first.next_page_token);
    assert_eq!(client.previewed(rest).await.steps.len(), 2);
}

#[apply(on_both_databases)]
async fn bodies_count_for_the_size_of_a_page(client: Client) {
    let step = document_step(StepType::Information, "large").with_body("x".repeat(2_000_000));
    let task = client.imported(document("Large", vec![step; 3])).await;
    let mut request = preview_of(&task.guid).expanding(vec!["body".to_owned()]);
    for last in [false, false, true] {
        let page = client.previewed(request.clone()).await;
        assert_eq!(page.steps.len(), 1);
        let body = page.steps[0].body.as_ref().expect("a body");
        assert_eq!(body.text.len(), 2_000_000);
        assert_eq!(page.next_page_token.is_empty(), last);
        request = request.after(page.next_page_token);
    }
}
