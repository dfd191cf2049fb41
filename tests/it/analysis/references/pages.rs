//! Pages of references.

use super::{depending, observation, of_task, of_variable};
use crate::kit::prelude::*;

#[apply(on_both_databases)]
async fn pages_of_a_tasks_references_make_the_same_list(client: Client) {
    let question = linked_observation(&[("off", "Off"), ("on", "On")]);
    let parent = client.imported(document("Guide", vec![question])).await;
    let steps = client.steps_with_bodies(&parent.guid).await;
    let managed = client
        .get_task(&answers_of(&steps[0])[0].link)
        .await
        .accepted();
    for _ in 0..3 {
        client.given_step(subtask(&parent, &managed)).await;
    }
    let request = |page_size| ListReferencesRequest {
        page_size,
        ..of_task(&managed)
    };
    let all = client.references(request(0)).await;
    assert_eq!(all.len(), 5);
    for size in 1..6 {
        assert_eq!(client.references(request(size)).await, all, "{size}");
    }
    let page = client.list_references(request(5)).await.accepted();
    assert_eq!(page.next_page_token, "");
}

#[apply(on_both_databases)]
async fn a_page_of_large_targets_ends_early(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let large = comparison(Condition {
        variable: "large".to_owned(),
        operator: "=".to_owned(),
        targets: vec![text(&"x".repeat(1 << 15))],
        path: String::new(),
    });
    for _ in 0..5 {
        let conditions = vec![large.clone(); 32];
        let step = depending(information_step(&task, "Step"), conditions);
        client.given_step(step).await;
    }
    let page = client
        .list_references(of_variable("large"))
        .await
        .accepted();
    assert!(
        (32..128).contains(&page.references.len()),
        "{}",
        page.references.len()
    );
    assert!(prost::Message::encoded_len(&page) <= 3 << 20);
    assert_eq!(client.references(of_variable("large")).await.len(), 160);
}

#[apply(on_both_databases)]
async fn what_is_added_and_deleted_elsewhere_shifts_no_page(client: Client) {
    let name = "components.7.light";
    let task = client.given_task(task("Guide")).await;
    let step = || depending(information_step(&task, "Step"), vec![when(name, "=", "on")]);
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(client.given_step(step()).await.guid);
    }
    let mut request = ListReferencesRequest {
        page_size: 2,
        ..of_variable(name)
    };
    let page = client.list_references(request.clone()).await.accepted();
    client.delete_step(&steps[1]).await.accepted();
    steps.push(client.given_step(step()).await.guid);
    request.page_token = page.next_page_token;
    let rest = super::places(&client, request).await;
    let rest: Vec<String> = rest.into_iter().map(|(_, step, _)| step).collect();
    assert_eq!(rest, steps[2..]);
}

#[apply(on_both_databases)]
async fn readers_of_own_names_make_short_pages(client: Client) {
    let owner = document(
        "Owner",
        [
            vec![observation(&Task::default(), "light", &["on"])],
            vec![
                depending(
                    document_step(StepType::Information, "Own"),
                    vec![when("light", "=", "on")]
                );
                20
            ],
        ]
        .concat(),
    );
    client.imported(owner).await;
    let task = client.given_task(task("Reader")).await;
    let step = depending(
        information_step(&task, "Step"),
        vec![when("light", "=", "on")],
    );
    let step = client.given_step(step).await;
    let request = ListReferencesRequest {
        page_size: 1,
        ..of_variable("light")
    };
    let found = super::places(&client, request).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, step.guid);
}
