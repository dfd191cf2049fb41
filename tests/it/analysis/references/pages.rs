//! Pages of references.

use super::{depending, first_page, observation, of_task, of_variable, references};
use crate::kit::prelude::*;

on_both_databases![
    pages_of_any_size_make_the_same_list,
    pages_of_a_tasks_references_make_the_same_list,
    a_token_belongs_to_its_request,
    a_token_belongs_to_its_account,
    an_id_in_capitals_is_the_same_request,
    a_page_of_large_targets_ends_early,
    what_is_added_and_deleted_elsewhere_shifts_no_page,
    readers_of_own_names_make_short_pages,
];

/// A guide that sets and reads a variable, once in its own conditions.
async fn guide(client: &Client) -> Task {
    let name = "components.7.light";
    let two = vec![when(name, "=", "on"), when(name, "!=", "off")];
    let guide = task("Guide").with_dependencies(all_of(two.clone()));
    let guide = client.given_task(guide).await;
    for _ in 0..3 {
        client
            .given_step(observation(&guide, "light", &["on"]))
            .await;
        client
            .given_step(depending(information_step(&guide, "Step"), two.clone()))
            .await;
    }
    guide
}

async fn pages_of_any_size_make_the_same_list(client: Client) {
    let guide = guide(&client).await;
    for task in ["", &guide.guid] {
        let request = |page_size| ListReferencesRequest {
            task: task.to_owned(),
            page_size,
            ..of_variable("components.7.light")
        };
        let all = references(&client, request(500)).await;
        assert_eq!(all.len(), 11);
        for size in 1..12 {
            let page = first_page(&client, request(size)).await.accepted();
            let size = usize::try_from(size).expect("a size");
            assert_eq!(page.references.len(), size.min(11), "{size}");
            assert_eq!(page.next_page_token.is_empty(), size == 11, "{size}");
            let size = i32::try_from(size).expect("a size");
            assert_eq!(references(&client, request(size)).await, all, "{size}");
        }
    }
}

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
    let all = references(&client, request(0)).await;
    assert_eq!(all.len(), 5);
    for size in 1..6 {
        assert_eq!(references(&client, request(size)).await, all, "{size}");
    }
    let page = first_page(&client, request(5)).await.accepted();
    assert_eq!(page.next_page_token, "");
}

async fn a_token_belongs_to_its_request(client: Client) {
    let guide = guide(&client).await;
    let request = ListReferencesRequest {
        page_size: 1,
        ..of_variable("components.7.light")
    };
    let page = first_page(&client, request.clone()).await.accepted();
    let with_token = ListReferencesRequest {
        page_token: page.next_page_token,
        ..request
    };
    let others = [
        ListReferencesRequest {
            variable: "components.7.lamp".to_owned(),
            ..with_token.clone()
        },
        ListReferencesRequest {
            answer: "on".to_owned(),
            ..with_token.clone()
        },
        ListReferencesRequest {
            task: guide.guid,
            ..with_token.clone()
        },
    ];
    for other in others {
        let refused = first_page(&client, other).await.refused();
        refused.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
    }
    first_page(&client, with_token).await.accepted();
}

async fn a_token_belongs_to_its_account(client: Client) {
    guide(&client).await;
    let request = ListReferencesRequest {
        page_size: 1,
        ..of_variable("components.7.light")
    };
    let page = first_page(&client, request.clone()).await.accepted();
    let request = ListReferencesRequest {
        page_token: page.next_page_token,
        ..request
    };
    let refused = first_page(&client.other_account(), request).await.refused();
    refused.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

async fn an_id_in_capitals_is_the_same_request(client: Client) {
    let guide = guide(&client).await;
    let request = |task: String, page_token| ListReferencesRequest {
        task,
        page_size: 1,
        page_token,
        ..of_variable("components.7.light")
    };
    let first = request(guide.guid.clone(), String::new());
    let page = first_page(&client, first).await.accepted();
    let next = request(guide.guid.to_uppercase(), page.next_page_token);
    let page = first_page(&client, next).await.accepted();
    assert_eq!(page.references.len(), 1);
}

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
    let page = first_page(&client, of_variable("large")).await.accepted();
    assert!(
        (32..128).contains(&page.references.len()),
        "{}",
        page.references.len()
    );
    assert!(prost::Message::encoded_len(&page) <= 3 << 20);
    assert_eq!(references(&client, of_variable("large")).await.len(), 160);
}

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
    let page = first_page(&client, request.clone()).await.accepted();
    client.delete_step(&steps[1]).await.accepted();
    steps.push(client.given_step(step()).await.guid);
    request.page_token = page.next_page_token;
    let rest = super::places(&client, request).await;
    let rest: Vec<String> = rest.into_iter().map(|(_, step, _)| step).collect();
    assert_eq!(rest, steps[2..]);
}

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
