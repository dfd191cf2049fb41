//! Pages of lists: their sizes, their order, and which tokens are valid.

use crate::kit::prelude::*;

mod concurrent_changes;
mod filters;
mod message_limit;
mod renumbering;

on_both_databases![
    tasks_are_listed_in_the_order_of_their_creation,
    the_default_page_size_is_50,
    a_page_holds_500_at_most,
    a_negative_page_size_is_refused,
    the_last_page_has_no_token,
    an_empty_list_has_no_token,
    pages_neither_repeat_nor_skip,
    the_page_size_may_change_between_pages,
    an_altered_token_is_refused,
    a_token_of_another_account_is_refused,
    a_token_of_other_filters_is_refused,
    a_token_of_another_call_is_refused,
    a_token_of_another_task_or_expansion_is_refused,
    a_page_ends_early_rather_than_exceed_3_mib,
    steps_of_an_unknown_task_are_not_found,
    an_unknown_expansion_is_refused,
];

const THREE_MIB: usize = 3 * 1024 * 1024;

fn page(page_size: i32, page_token: &str) -> ListTasksRequest {
    ListTasksRequest {
        page_size,
        page_token: page_token.to_owned(),
        ..ListTasksRequest::default()
    }
}

async fn given_tasks(client: &Client, count: usize) -> Vec<Task> {
    let mut tasks = Vec::new();
    for n in 0..count {
        tasks.push(client.given_task(task(&format!("task {n}"))).await);
    }
    tasks
}

async fn tasks_are_listed_in_the_order_of_their_creation(client: Client) {
    let created = given_tasks(&client, 5).await;
    let update = task_of(&created[1].guid).named("touched");
    let mut expected = created;
    expected[1] = client.updated_task(update, &[]).await;
    let listed = client.list_tasks(page(0, "")).await.accepted();
    assert_eq!(listed.tasks, expected);
}

async fn the_default_page_size_is_50(client: Client) {
    given_tasks(&client, 51).await;
    let first = client.list_tasks(page(0, "")).await.accepted();
    assert_eq!(first.tasks.len(), 50);
    let second = client.list_tasks(page(0, &first.next_page_token)).await;
    assert_eq!(second.accepted().tasks.len(), 1);
}

async fn a_page_holds_500_at_most(client: Client) {
    for n in 0..501 {
        client.given_role(&format!("role {n}")).await;
    }
    for page_size in [500, 501, i32::MAX] {
        let listed = client.list_roles(page_size, "").await.accepted();
        assert_eq!(listed.roles.len(), 500);
        assert_ne!(listed.next_page_token, "");
    }
}

async fn a_negative_page_size_is_refused(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let violation = [("page_size", "FIELD_OUT_OF_RANGE")];
    for page_size in [-1, i32::MIN] {
        let listed = client.list_tasks(page(page_size, "")).await;
        listed.refused().violates(&violation);
        let listed = client.list_roles(page_size, "").await;
        listed.refused().violates(&violation);
        let request = ListStepsRequest {
            page_size,
            ..steps_page(&task, "")
        };
        let listed = client.list_steps(request).await;
        listed.refused().violates(&violation);
    }
}

async fn the_last_page_has_no_token(client: Client) {
    given_tasks(&client, 4).await;
    let first = client.list_tasks(page(2, "")).await.accepted();
    let second = client.list_tasks(page(2, &first.next_page_token)).await;
    assert_eq!(second.accepted().next_page_token, "");
    let whole = client.list_tasks(page(4, "")).await.accepted();
    assert_eq!(whole.next_page_token, "");
}

async fn an_empty_list_has_no_token(client: Client) {
    let listed = client.list_tasks(page(0, "")).await.accepted();
    assert_eq!(listed, ListTasksResponse::default());
    let task = client.given_task(task("Empty")).await;
    let listed = client.list_steps(steps_page(&task, "")).await.accepted();
    assert_eq!(listed, ListStepsResponse::default());
}

async fn pages_neither_repeat_nor_skip(client: Client) {
    let created = given_tasks(&client, 7).await;
    for page_size in 1..=8 {
        let found = client.list_all_tasks(page(page_size, "")).await;
        assert_eq!(found, created, "pages of {page_size}");
    }
}

async fn the_page_size_may_change_between_pages(client: Client) {
    let created = given_tasks(&client, 5).await;
    let first = client.list_tasks(page(1, "")).await.accepted();
    let rest = client.list_tasks(page(10, &first.next_page_token)).await;
    assert_eq!(rest.accepted().tasks, created[1..]);
}

const TOKEN_VIOLATION: [(&str, &str); 1] = [("page_token", "PAGE_TOKEN_INVALID")];

/// A token after the first of two tasks.
async fn token(client: &Client) -> String {
    given_tasks(client, 2).await;
    let first = client.list_tasks(page(1, "")).await.accepted();
    first.next_page_token
}

/// Tokens that nobody gave out, made of one that somebody did.
pub fn altered(token: &str) -> Vec<String> {
    let altered = token.char_indices().map(|(at, character)| {
        let other = if character == 'A' { 'B' } else { 'A' };
        let rest = &token[at + character.len_utf8()..];
        format!("{}{other}{rest}", &token[..at])
    });
    let mut tokens: Vec<String> = altered.collect();
    tokens.extend([
        format!("{token}A"),
        token[1..].to_owned(),
        token[..token.len() / 2].to_owned(),
        " ".to_owned(),
        "1".to_owned(),
        "ü🔧".to_owned(),
        "\0".to_owned(),
        "A".repeat(100_000),
    ]);
    tokens
}

async fn an_altered_token_is_refused(client: Client) {
    for token in altered(&token(&client).await) {
        let listed = client.list_tasks(page(1, &token)).await;
        listed.refused().violates(&TOKEN_VIOLATION);
    }
}

async fn a_token_of_another_account_is_refused(client: Client) {
    let token = token(&client).await;
    let other = client.other_account();
    given_tasks(&other, 2).await;
    let listed = other.list_tasks(page(1, &token)).await;
    listed.refused().violates(&TOKEN_VIOLATION);
}

async fn a_token_of_other_filters_is_refused(client: Client) {
    let token = token(&client).await;
    let plain = page(1, &token);
    for request in [
        ListTasksRequest {
            product_id: Some(PRODUCT),
            ..plain.clone()
        },
        ListTasksRequest {
            published: Some(1),
            ..plain.clone()
        },
        ListTasksRequest {
            role: Some(AccessLevel::User.into()),
            ..plain.clone()
        },
        ListTasksRequest {
            r#type: Some(TaskType::Standard.into()),
            ..plain
        },
    ] {
        let listed = client.list_tasks(request).await;
        listed.refused().violates(&TOKEN_VIOLATION);
    }
}

async fn a_token_of_another_call_is_refused(client: Client) {
    let token = token(&client).await;
    let listed = client.list_roles(1, &token).await;
    listed.refused().violates(&TOKEN_VIOLATION);
    let task = client.given_task(task("Guide")).await;
    let listed = client.list_steps(steps_page(&task, &token)).await;
    listed.refused().violates(&TOKEN_VIOLATION);
}

fn steps_page(task: &Task, page_token: &str) -> ListStepsRequest {
    ListStepsRequest {
        task: task.guid.clone(),
        page_size: 1,
        page_token: page_token.to_owned(),
        expand: Vec::new(),
    }
}

async fn a_token_of_another_task_or_expansion_is_refused(client: Client) {
    let tasks = given_tasks(&client, 2).await;
    for task in &tasks {
        client.given_steps(task, &["a", "b"]).await;
    }
    let first = client.list_steps(steps_page(&tasks[0], "")).await;
    let token = first.accepted().next_page_token;
    let listed = client.list_steps(steps_page(&tasks[1], &token)).await;
    listed.refused().violates(&TOKEN_VIOLATION);
    let request = ListStepsRequest {
        expand: vec!["body".to_owned()],
        ..steps_page(&tasks[0], &token)
    };
    let listed = client.list_steps(request).await;
    listed.refused().violates(&TOKEN_VIOLATION);
}

async fn a_page_ends_early_rather_than_exceed_3_mib(client: Client) {
    let task = client.given_task(task("Heavy")).await;
    let sizes = [1, 1, 1, 2, 4, 1, 1].map(|mib| mib * 1_000_000);
    for size in sizes {
        let sent = information_step(&task, "heavy").with_body("x".repeat(size));
        client.given_step(sent).await;
    }
    let mut request = ListStepsRequest {
        expand: vec!["body".to_owned()],
        page_size: 500,
        ..steps_page(&task, "")
    };
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let listed = client.list_steps(request.clone()).await.accepted();
        let size = prost::Message::encoded_len(&listed);
        assert!(size <= THREE_MIB || listed.steps.len() == 1, "{size}");
        assert!(!listed.steps.is_empty());
        found.extend(listed.steps.iter().map(|step| step.body().len()));
        pages += 1;
        request.page_token = listed.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(found, sizes);
    assert!((4..=6).contains(&pages), "{pages} pages");
}

async fn steps_of_an_unknown_task_are_not_found(client: Client) {
    let unknown = task_of(&unknown_guid());
    let listed = client.list_steps(steps_page(&unknown, "")).await;
    listed.refused().is_task_not_found(&unknown.guid);
}

async fn an_unknown_expansion_is_refused(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let request = ListStepsRequest {
        expand: ["body", "title", "", "Body"].map(str::to_owned).to_vec(),
        ..steps_page(&task, "")
    };
    let listed = client.list_steps(request).await;
    listed.refused().violates(&[
        ("expand[1]", "FIELD_INVALID"),
        ("expand[2]", "FIELD_INVALID"),
        ("expand[3]", "FIELD_INVALID"),
    ]);
}
