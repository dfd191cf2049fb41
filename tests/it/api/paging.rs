//! Pages of lists: their sizes, their order, and which tokens are valid.

use crate::{
    kit::server::{TestServer, in_memory},
    prelude::*,
};

mod concurrent_changes;
mod every_listing;
mod filters;
mod message_limit;
mod renumbering;

/// Asserts that a page with so many items is not empty, and larger than 3 MiB only for a single one.
pub fn ends_early(page: &impl prost::Message, items: usize) {
    let size = page.encoded_len();
    assert!(items == 1 || items > 1 && size <= 3 << 20, "{size}");
}

#[apply(on_both_databases)]
async fn tasks_are_listed_in_the_order_of_their_creation(client: Client) {
    let mut created = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        created.push(client.given_task(task(name)).await);
    }
    let update = task_of(&created[1].guid).named("touched");
    created[1] = client.updated_task(update, &[]).await;
    assert_eq!(client.all_tasks().await, created);
}

fn steps_page(task: &Task, page_token: &str) -> ListStepsRequest {
    ListStepsRequest {
        task: task.guid.clone(),
        page_size: 1,
        page_token: page_token.to_owned(),
        expand: Vec::new(),
    }
}

#[apply(on_both_databases)]
async fn a_page_ends_early_rather_than_exceed_3_mib(client: Client) {
    let task = client.given_task(task("Heavy")).await;
    let sizes = [1, 1, 1, 2, 4, 1, 1].map(|mib| mib * 1_000_000);
    for size in sizes {
        let sent = information_step(&task, "heavy").with_body("x".repeat(size));
        client.given_step(sent).await;
    }
    let request = steps_page(&task, "")
        .with(|it| it.expand = vec!["body".to_owned()])
        .with(|it| it.page_size = 500);
    let pages = client.pages(request).await;
    for page in &pages {
        ends_early(page, page.steps.len());
    }
    let steps = pages.iter().flat_map(|page| &page.steps);
    assert_eq!(steps.map(|it| it.body().len()).collect::<Vec<_>>(), sizes);
    assert!((4..=6).contains(&pages.len()), "{} pages", pages.len());
}

/// Two of the tasks are larger than a page together, and one by itself.
#[apply(on_both_databases)]
async fn a_page_of_tasks_ends_early_rather_than_exceed_3_mib(client: Client) {
    let mut created = Vec::new();
    for conditions in [400, 400, 900, 1, 400] {
        // Of 4,000 bytes each.
        let condition = when(&"🔧".repeat(1_000), "=", "on");
        let heavy = all_of(vec![condition; conditions]);
        let sent = task("Heavy").with_dependencies(heavy);
        created.push(client.given_task(sent).await);
    }
    let pages = client.pages(ListTasksRequest::default()).await;
    for page in &pages {
        ends_early(page, page.tasks.len());
    }
    let pages: Vec<Vec<Task>> = pages.into_iter().map(|page| page.tasks).collect();
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 2]);
    // `assert_eq!` would print them.
    assert!(pages.concat() == created);
    let read = client.get_task(&created[2].guid).await.accepted();
    assert!(read == created[2]);
}

/// Each database has its own key, so creating a database does not reveal the keys of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_database_is_refused() {
    let mut pages = Vec::new();
    let servers = [
        TestServer::start(in_memory()).await,
        TestServer::start(in_memory()).await,
    ];
    for server in &servers {
        let client = server.client();
        for name in ["a", "b"] {
            client.given_task(task(name)).await;
        }
        let request = ListTasksRequest::default().with(|it| it.page_size = 1);
        let page = client.call(request.clone()).await.accepted();
        pages.push((client, request, page.next_page_token));
    }
    let [(one, request, token), (another, ..)] = pages.as_slice() else {
        panic!("two databases")
    };
    let next = request.clone().with(|it| it.page_token = token.clone());
    one.call(next.clone()).await.accepted();
    let failure = another.call(next).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}
