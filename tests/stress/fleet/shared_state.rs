//! Page tokens, request ids and etags of one server are valid at another.

use super::prelude::*;

#[apply(on_two_servers)]
async fn a_page_token_is_valid_at_the_other_server(clients: [Client; 2]) {
    let mut made = Vec::new();
    for n in 0..7 {
        made.push(clients[n % 2].given_task(task("Listed")).await.guid);
    }
    let mut found = Vec::new();
    let mut request = ListTasksRequest::default().with(|it| it.page_size = 2);
    for n in 0.. {
        let page = clients[n % 2].call(request.clone()).await;
        let page = page.accepted();
        found.extend(page.tasks.into_iter().map(|task| task.guid));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(found, made);
}

#[apply(on_two_servers)]
async fn a_create_sent_to_both_at_once_is_done_once(clients: [Client; 2]) {
    let parent = clients[0].given_task(task("Parent")).await;
    for _ in 0..10 {
        let request = create_step_request(information_step(&parent, "once"))
            .with(|it| it.request_id = unknown_guid());
        let (one, other) = tokio::join!(
            clients[0].call(request.clone()),
            clients[1].call(request.clone())
        );
        let (one, other) = (one.accepted(), other.accepted());
        assert_eq!(one, other);
        assert_eq!(clients[0].step_order(&parent.guid).await.last(), {
            one.step.as_ref().map(|step| &step.guid)
        });
    }
    assert_eq!(clients[1].step_order(&parent.guid).await.len(), 10);
}

#[apply(on_two_servers)]
async fn an_import_sent_to_both_at_once_is_done_once(clients: [Client; 2]) {
    let guide = document(
        "Guide",
        vec![linked_observation(&[("a", "Red"), ("b", "Green")])],
    );
    let request = import_of(guide).with(|it| it.request_id = unknown_guid());
    let (one, other) = tokio::join!(
        clients[0].call(request.clone()),
        clients[1].call(request.clone())
    );
    assert_eq!(one.accepted(), other.accepted());
    // The guide and the two tasks that it manages.
    assert_eq!(clients[1].all_tasks().await.len(), 3);
}

#[apply(on_two_servers)]
async fn an_etag_of_one_server_is_checked_by_the_other(clients: [Client; 2]) {
    let made = clients[0].given_task(task("Versioned")).await;
    let renamed = clients[1]
        .updated_task(made.clone().named("Renamed"), &["name"])
        .await;
    let late = made.named("Late");
    let refused = clients[0].update_task(late, &["name"]).await.refused();
    assert_eq!(
        (refused.code, refused.reason()),
        (Code::Aborted, "ETAG_MISMATCH")
    );
    assert_eq!(clients[0].get_task(&renamed.guid).await.accepted(), renamed);
}
