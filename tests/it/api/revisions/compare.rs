//! CompareRevisions.

use crate::prelude::*;

#[apply(on_both_databases)]
async fn pages_hold_all_differences(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    client.kept_revision(&guide.guid).await;
    let titles = ["a", "b", "c", "d", "e"];
    client.given_steps(&guide, &titles).await;
    client.rename(&guide.guid, "Renamed").await;
    client.alias(&guide.guid, "base", 1).await;
    let mut request = CompareRevisionsRequest {
        task: guide.guid.clone(),
        base: "base".to_owned(),
        page_size: 2,
        ..CompareRevisionsRequest::default()
    };
    let mut listed = Vec::new();
    let token = loop {
        let page = client.call(request.clone()).await.accepted();
        assert!(!page.same);
        let task_paths: &[&str] = match request.page_token.as_str() {
            "" => &["name"],
            _ => &[],
        };
        assert_eq!(page.task_paths, task_paths);
        listed.extend(page.steps.into_iter().map(|step| step.title));
        if page.next_page_token.is_empty() {
            break request.page_token;
        }
        request.page_token = page.next_page_token;
    };
    assert_eq!(listed, titles);
    client.given_steps(&guide, &["f"]).await;
    request.page_token = token;
    let failure = client.call(request.clone()).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
    // Nor is it another revision that the alias names by now.
    request.page_token.clear();
    let page = client.call(request.clone()).await.accepted();
    request.page_token = page.next_page_token;
    client.kept_revision(&guide.guid).await;
    client.alias(&guide.guid, "base", 2).await;
    let failure = client.call(request).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}
