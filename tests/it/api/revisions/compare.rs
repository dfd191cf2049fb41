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
    let pages = client.pages(request.clone()).await;
    assert!(pages.iter().all(|page| !page.same));
    assert_eq!(pages[0].task_paths, ["name"]);
    assert!(pages[1..].iter().all(|page| page.task_paths.is_empty()));
    let listed = pages.iter().flat_map(|page| &page.steps);
    assert_eq!(listed.map(|it| &*it.title).collect::<Vec<_>>(), titles);
    client.given_steps(&guide, &["f"]).await;
    request.page_token.clone_from(&pages[1].next_page_token);
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
