//! Filters of ListTasks.

use crate::prelude::*;

fn of(product: i64, published: i32, role: AccessLevel) -> Task {
    Task {
        product_id: Some(product),
        published: Some(published),
        roles: vec![role.into()],
        ..task("Filtered")
    }
}

async fn found(client: &Client, request: ListTasksRequest) -> Vec<String> {
    let listed = client.call(request).await.accepted();
    listed.tasks.into_iter().map(|task| task.guid).collect()
}

/// Four tasks: two products, two states, two roles.
async fn four_tasks(client: &Client) -> Vec<String> {
    let mut guids = Vec::new();
    for sent in [
        of(1, 0, AccessLevel::User),
        of(1, 1, AccessLevel::Expert),
        of(2, 0, AccessLevel::Expert),
        of(2, 1, AccessLevel::User),
    ] {
        guids.push(client.given_task(sent).await.guid);
    }
    guids
}

#[apply(on_both_databases)]
async fn each_filter_narrows(client: Client) {
    let four = four_tasks(&client).await;
    let by_product = ListTasksRequest::default().with(|it| it.product_id = Some(2));
    assert_eq!(found(&client, by_product).await, four[2..]);
    // Zero is a filter, too.
    for (published, expected) in [(0, [&four[0], &four[2]]), (1, [&four[1], &four[3]])] {
        let by_state = ListTasksRequest::default().with(|it| it.published = Some(published));
        assert_eq!(
            found(&client, by_state).await.iter().collect::<Vec<_>>(),
            expected
        );
    }
    for (role, expected) in [
        (AccessLevel::User, [&four[0], &four[3]]),
        (AccessLevel::Expert, [&four[1], &four[2]]),
    ] {
        let by_role = ListTasksRequest::default().with(|it| it.role = Some(role.into()));
        assert_eq!(
            found(&client, by_role).await.iter().collect::<Vec<_>>(),
            expected
        );
    }
    let linked = linked_observation(&[("a", "A")]);
    let import = document_with(task_of(&four[3]), vec![linked]);
    client.imported(import).await;
    let managed = client
        .managed_by(&client.step_order(&four[3]).await[0], 0)
        .await;
    let linked = vec![managed.guid];
    for (kind, expected) in [(TaskType::Standard, four), (TaskType::Linked, linked)] {
        let by_type = ListTasksRequest::default().with(|it| it.r#type = Some(kind.into()));
        assert_eq!(found(&client, by_type).await, expected);
    }
    let other = client.given_task(of(3, 2, AccessLevel::Tech)).await;
    for (published, expected) in [(2, vec![other.guid]), (3, vec![])] {
        let by_state = ListTasksRequest::default().with(|it| it.published = Some(published));
        assert_eq!(found(&client, by_state).await, expected);
    }
}

#[apply(on_both_databases)]
async fn each_level_finds_the_tasks_that_it_may_see(client: Client) {
    use AccessLevel::{Expert, Tech, Tech2, Tech3, User, User2, User3};
    let mut own = Vec::new();
    for level in [User, Tech, Tech2, Tech3, Expert, User2, User3] {
        let task = client.given_task(of(1, 1, level)).await;
        own.push((level, task.guid));
    }
    let of_all = client.given_task(task("For everybody")).await.guid;
    for (level, guid) in own {
        let by_level = ListTasksRequest::default().with(|it| it.role = Some(level.into()));
        let expected = [guid, of_all.clone()];
        assert_eq!(found(&client, by_level).await, expected, "{level:?}");
    }
}

/// The tasks that the filter finds for each of two levels.
async fn found_by_level(client: &Client) -> [Vec<String>; 2] {
    let by =
        |level: AccessLevel| ListTasksRequest::default().with(|it| it.role = Some(level.into()));
    [
        found(client, by(AccessLevel::User)).await,
        found(client, by(AccessLevel::Expert)).await,
    ]
}

#[apply(on_both_databases)]
async fn the_role_filter_follows_every_change_of_the_roles(client: Client) {
    let guid = client.given_task(of(1, 1, AccessLevel::User)).await.guid;
    let found = vec![guid.clone()];
    assert_eq!(found_by_level(&client).await, [found.clone(), vec![]]);
    let update = of(1, 1, AccessLevel::Expert).with_guid(guid.clone());
    client.updated_task(update, &["roles"]).await;
    assert_eq!(found_by_level(&client).await, [vec![], found.clone()]);
    // A rename is written under locks.
    let update = of(1, 1, AccessLevel::User).with_guid(guid.clone());
    let update = update.named("Renamed");
    client.updated_task(update, &["name", "roles"]).await;
    assert_eq!(found_by_level(&client).await, [found.clone(), vec![]]);
    let mut exported = client.exported(&guid).await;
    let task = exported.task.as_mut().expect("the task");
    task.roles = vec![AccessLevel::Expert.into()];
    client.imported(exported).await;
    assert_eq!(found_by_level(&client).await, [vec![], found]);
}

#[apply(on_both_databases)]
async fn filters_combine(client: Client) {
    let four = four_tasks(&client).await;
    let request = ListTasksRequest {
        product_id: Some(1),
        published: Some(1),
        role: Some(AccessLevel::Expert.into()),
        r#type: Some(TaskType::Standard.into()),
        ..ListTasksRequest::default()
    };
    assert_eq!(found(&client, request).await, four[1..2]);
}

#[apply(on_both_databases)]
async fn filters_hold_on_every_page(client: Client) {
    let mut expected = Vec::new();
    for round in 0..3 {
        let four = four_tasks(&client).await;
        expected.push(four[1].clone());
        expected.push(four[2].clone());
        assert_eq!(expected.len(), 2 * (round + 1));
    }
    let request = ListTasksRequest::default()
        .with(|it| it.role = Some(AccessLevel::Expert.into()))
        .with(|it| it.page_size = 1);
    let tasks = client.list(request).await;
    let guids: Vec<String> = tasks.into_iter().map(|task| task.guid).collect();
    assert_eq!(guids, expected);
}
