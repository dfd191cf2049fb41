//! Pages and the largest message.

use crate::{
    kit::server::{TestServer, in_memory},
    prelude::*,
};

const LIMIT: usize = 64 * 1024;

/// A client of a server that sends at most [`LIMIT`] bytes, and the server.
async fn limited() -> (Client, TestServer) {
    let settings = in_memory().set("EXPERTISE_MAX_MESSAGE_BYTES", LIMIT);
    let server = TestServer::start(settings).await;
    (server.client(), server)
}

#[tokio::test]
async fn a_page_ends_early_rather_than_exceed_the_largest_message() {
    let (client, server) = limited().await;
    let task = client.given_task(task("Guide")).await;
    let mut given = Vec::new();
    for _ in 0..3 {
        let step = information_step(&task, "Step").with_body("x".repeat(40_000));
        given.push(client.given_step(step).await.guid);
    }
    let request = ListStepsRequest {
        task: task.guid.clone(),
        expand: vec!["body".to_owned()],
        page_size: 3,
        page_token: String::new(),
    };
    let pages = client.pages(request).await.into_iter();
    let listed = pages.map(|page| page.steps.into_iter().map(|step| step.guid).collect());
    let each_alone: Vec<Vec<String>> = given.into_iter().map(|step| vec![step]).collect();
    assert_eq!(listed.collect::<Vec<Vec<String>>>(), each_alone);
    server.shut_down().await;
}

#[tokio::test]
async fn a_page_of_changes_ends_early_and_the_next_one_goes_on() {
    let (client, server) = limited().await;
    let task = client.given_task(task("Guide")).await;
    let cursor = client.cursor_now().await;
    let mut given = Vec::new();
    for _ in 0..300 {
        let step = information_step(&task, "Step");
        given.push(client.given_step(step).await.guid);
    }
    let mut request = changes_behind(&cursor).with(|it| it.page_size = 500);
    let (mut listed, mut pages) = (Vec::new(), 0);
    loop {
        let page = client.call(request.clone()).await.accepted();
        assert!(prost::Message::encoded_len(&page) <= LIMIT);
        let last = page.changes.last().expect("a change");
        assert_eq!(page.next_cursor, last.cursor);
        listed.extend(page.changes.into_iter().map(|change| change.step));
        pages += 1;
        if page.caught_up {
            break;
        }
        request.cursor = page.next_cursor;
    }
    assert_eq!(listed, given);
    assert!(pages > 1, "more than a page");
    server.shut_down().await;
}

#[tokio::test]
async fn the_error_of_a_request_that_is_too_large_says_that_it_is_the_request() {
    let (client, server) = limited().await;
    let task = client.given_task(task("Guide")).await;
    let step = information_step(&task, "Step").with_body("x".repeat(LIMIT));
    let failure = client.create_step(step).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(failure.message, "the request is larger than 65536 bytes");
    server.shut_down().await;
}
