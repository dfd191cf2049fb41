//! Pages, fingerprints and ids of findings, previews and references.

use super::{named, of_variable};
use crate::{api::cases::guide, prelude::*};

/// Observations that nothing reads, and an end.
fn unused(names: &[&str]) -> String {
    let asked = names.iter().map(|name| format!("ask {name}: x, y\n"));
    asked.collect::<String>() + "end Done"
}

#[apply(on_both_databases)]
async fn a_token_of_findings_is_invalid_after_its_guide_has_changed(client: Client) {
    let made = client.imported(named("Unused", &unused(&["a", "b"]))).await;
    let mut request = validation_of(&made.guid).with(|it| it.page_size = 1);
    request.page_token = client.validated(request.clone()).await.next_page_token;
    let renamed = step_of(&made.steps[0]).titled("Changed");
    client.update_step(renamed, &["title"]).await.accepted();
    let refused = client.call(request).await.refused();
    refused.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

async fn fingerprint(client: &Client, request: &ValidateTaskRequest) -> String {
    client.validated(request.clone()).await.fingerprint
}

#[apply(on_both_databases)]
async fn a_known_fingerprint_that_is_still_true_is_unchanged(client: Client) {
    let made = client.imported(named("Unused", &unused(&["a"]))).await;
    for request in [
        validation_of(&made.guid),
        validation_of_document(named("Unused", &unused(&["a"]))),
    ] {
        let known_fingerprint = fingerprint(&client, &request).await;
        let known = request
            .clone()
            .with(|it| it.known_fingerprint = known_fingerprint.clone());
        let response = client.validated(known.clone()).await;
        assert!(response.unchanged);
        assert_eq!(response.findings, []);
        assert_eq!(response.counts, Some(FindingCounts::default()));
        assert_eq!(response.fingerprint, known_fingerprint);
        let options =
            ValidationOptions::default().with(|it| it.min_severity = Severity::Warning.into());
        let response = client
            .validated(known.with(|it| it.options = Some(options)))
            .await;
        assert!(!response.unchanged);
    }
}

#[apply(on_both_databases)]
async fn a_later_page_ignores_the_known_fingerprint(client: Client) {
    let made = client.imported(named("Unused", &unused(&["a", "b"]))).await;
    let first = validation_of(&made.guid).with(|it| it.page_size = 1);
    let page = client.validated(first.clone()).await;
    let second = first
        .with(|it| it.page_token = page.next_page_token)
        .with(|it| it.known_fingerprint = page.fingerprint);
    let page = client.validated(second).await;
    assert!(!page.unchanged);
    assert_eq!(page.findings.len(), 1);
}

#[apply(on_both_databases)]
async fn what_reads_and_sets_elsewhere_changes_the_fingerprint(client: Client) {
    let steps = unused(&["a"]) + "\ninfo Reader ? .set_elsewhere = x";
    let made = client.imported(guide(&steps)).await;
    let request = validation_of(&made.guid);
    let first = fingerprint(&client, &request).await;
    assert_eq!(fingerprint(&client, &request).await, first);
    client.imported(guide("info Reader ? .a = x")).await;
    let second = fingerprint(&client, &request).await;
    assert_ne!(second, first);
    let setter = client.imported(guide("ask set_elsewhere: x")).await;
    let third = fingerprint(&client, &request).await;
    assert_ne!(third, second);
    let renamed = step_of(&setter.steps[0]).titled("Renamed");
    client.updated_step(renamed, &[]).await;
    assert_ne!(fingerprint(&client, &request).await, third);
}

#[apply(on_both_databases)]
async fn a_finding_keeps_its_id_when_others_come_and_go(client: Client) {
    let made = client.imported(named("Unused", &unused(&["a", "b"]))).await;
    let request = validation_of(&made.guid);
    let before = client.validated(request.clone()).await.findings;
    client.delete_step(&made.steps[0]).await.accepted();
    let after = client.validated(request).await.findings;
    assert_eq!(after, before[1..]);
}

/// All findings, and how many pages they took.
async fn all(client: &Client, request: ListFindingsRequest) -> (Vec<Finding>, usize) {
    let pages = client.pages(request).await;
    let count = pages.len();
    let found = pages.into_iter().flat_map(|page| page.findings);
    (found.collect(), count)
}

#[apply(on_both_databases)]
async fn findings_of_all_tasks_are_listed_in_order_of_creation(client: Client) {
    let mut expected = Vec::new();
    for name in ["A", "B", "C"] {
        let made = client
            .imported(named(name, &unused(&["a", "b", "c"])))
            .await;
        let found = client.validated(validation_of(&made.guid)).await.findings;
        expected.extend(found);
    }
    assert_eq!(expected.len(), 9);
    for page_size in [1, 2, 4, 500] {
        let request = ListFindingsRequest::default().with(|it| it.page_size = page_size);
        assert_eq!(all(&client, request).await.0, expected, "{page_size}");
    }
}

#[apply(on_both_databases)]
async fn a_call_looks_at_a_bounded_number_of_steps(client: Client) {
    let steps = guide(&"solution Step\n".repeat(900)).steps;
    for _ in 0..4 {
        client.imported(document("Long", steps.clone())).await;
    }
    client.imported(named("Last", &unused(&["a"]))).await;
    let first = client.call(ListFindingsRequest::default()).await.accepted();
    assert_eq!(first.findings, []);
    assert!(!first.next_page_token.is_empty());
    let (found, pages) = all(&client, ListFindingsRequest::default()).await;
    assert_eq!(found.len(), 1);
    assert_eq!(pages, 2);
}

#[apply(on_both_databases)]
async fn a_page_continues_within_a_task_that_has_changed(client: Client) {
    let made = client.imported(named("A", &unused(&["a", "b", "c"]))).await;
    let request = ListFindingsRequest::default().with(|it| it.page_size = 2);
    let first = client.call(request.clone()).await.accepted();
    client.delete_step(&made.steps[0]).await.accepted();
    let next = request.with(|it| it.page_token = first.next_page_token);
    let second = client.call(next).await.accepted();
    let steps: Vec<_> = second.findings.iter().map(|one| &one.step).collect();
    assert_eq!(steps, [&made.steps[2]]);
    assert_eq!(second.next_page_token, "");
}

async fn with_subtask(client: &Client) -> Task {
    let inner = document("inner", document_steps(&["c", "d"]));
    let inner = client.imported(inner).await;
    let mut steps = document_steps(&["a", "b"]);
    steps.push(subtask(&Task::default(), &inner));
    steps.extend(document_steps(&["e"]));
    steps.push(step(&Task::default(), StepType::Observation, "f"));
    client.imported(document("outer", steps)).await
}

fn titles(preview: &PreviewTaskResponse) -> Vec<&str> {
    let steps = preview.steps.iter();
    let titles = steps.filter_map(|step| step.title.as_ref());
    titles.map(|title| title.text.as_str()).collect()
}

#[apply(on_both_databases)]
async fn pages_list_every_step_once_in_order(client: Client) {
    let task = with_subtask(&client).await;
    let new = information_step(&task, "new");
    let new = client.create_step_after(new, &task.steps[0]).await;
    new.accepted();
    let request = preview_of(&task.guid).to_depth(1).with_page_size(2);
    let pages = client.pages(request).await;
    let pages: Vec<String> = pages.iter().map(|it| titles(it).join(" ")).collect();
    assert_eq!(pages, ["a new", "b inner", "c d", "e f"]);
}

#[apply(on_both_databases)]
async fn other_fields_are_on_every_page(client: Client) {
    let task = with_subtask(&client).await;
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
async fn a_token_of_a_preview_is_invalid_after_its_guide_has_changed(client: Client) {
    let task = with_subtask(&client).await;
    let request = preview_of(&task.guid).with_page_size(2);
    let token = client.previewed(request.clone()).await.next_page_token;
    client.retitle(&task.steps[4], "F").await;
    let failure = client.call(request.after(token)).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

#[apply(on_both_databases)]
async fn a_token_lasts_while_other_guides_change(client: Client) {
    let task = with_subtask(&client).await;
    let request = preview_of(&task.guid).with_page_size(2);
    let token = client.previewed(request.clone()).await.next_page_token;
    with_subtask(&client).await;
    client.previewed(request.after(token)).await;
}

#[apply(on_both_databases)]
async fn a_fingerprint_changes_with_the_keys_of_observations_elsewhere(client: Client) {
    let task = client.imported(guide("info known ? .light = green")).await;
    let fingerprint = async || client.previewed(preview_of(&task.guid)).await.fingerprint;
    let first = fingerprint().await;
    client.imported(guide("ask light: green, red")).await;
    assert_ne!(fingerprint().await, first);
}

#[apply(on_both_databases)]
async fn a_fingerprint_changes_with_its_guide_alone(client: Client) {
    let task = with_subtask(&client).await;
    let fingerprint = async || client.previewed(preview_of(&task.guid)).await.fingerprint;
    let first = fingerprint().await;
    with_subtask(&client).await;
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
    let request = preview_of(&task.guid).with(|it| it.expand = vec!["body".to_owned()]);
    let pages = client.pages(request).await;
    assert_eq!(pages.len(), 3);
    for page in pages {
        assert_eq!(page.steps.len(), 1);
        let body = page.steps[0].body.as_ref().expect("a body");
        assert_eq!(body.text.len(), 2_000_000);
    }
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
        let step = information_step(&task, "Step").depending_on(all_of(conditions));
        client.given_step(step).await;
    }
    let page = client.call(of_variable("large")).await.accepted();
    assert!(
        (32..128).contains(&page.references.len()),
        "{}",
        page.references.len()
    );
    assert!(prost::Message::encoded_len(&page) <= 3 << 20);
    assert_eq!(client.list(of_variable("large")).await.len(), 160);
}

#[apply(on_both_databases)]
async fn what_is_added_and_deleted_elsewhere_shifts_no_page(client: Client) {
    let name = "components.7.light";
    let task = client.given_task(task("Guide")).await;
    let reads = all_of(vec![when(name, "=", "on")]);
    let step = || information_step(&task, "Step").depending_on(reads.clone());
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(client.given_step(step()).await.guid);
    }
    let mut request = of_variable(name).with(|it| it.page_size = 2);
    let page = client.call(request.clone()).await.accepted();
    client.delete_step(&steps[1]).await.accepted();
    steps.push(client.given_step(step()).await.guid);
    request.page_token = page.next_page_token;
    let rest = client.list(request).await.into_iter();
    let rest: Vec<String> = rest.filter_map(|one| Some(one.place?.step)).collect();
    assert_eq!(rest, steps[2..]);
}

#[apply(on_both_databases)]
async fn readers_of_own_names_make_short_pages(client: Client) {
    let owner = "ask light: on\n".to_owned() + &"info Own ? light = on\n".repeat(20);
    client.imported(named("Owner", &owner)).await;
    let reader = client.imported(guide("info Step ? light = on")).await;
    let request = of_variable("light").with(|it| it.page_size = 1);
    let found = client.list(request).await.into_iter();
    let found: Vec<String> = found.filter_map(|one| Some(one.place?.step)).collect();
    assert_eq!(found, reader.steps);
}

#[apply(on_one_database)]
async fn equal_guides_have_their_findings_in_one_order(client: Client) {
    let mut inner = guide("ask v: x, y\nend Done ? v = x");
    let roles = [AccessLevel::User, AccessLevel::Tech];
    inner.task.as_mut().expect("a task").roles = roles.map(i32::from).to_vec();
    let inner = client.imported(inner).await;
    let mut orders = Vec::new();
    for _ in 0..12 {
        let steps = vec![
            document_step(StepType::Information, "Note"),
            subtask(&Task::default(), &inner),
        ];
        let made = client.imported(document("Outer", steps)).await;
        let found = client.validated(validation_of(&made.guid)).await.findings;
        let found = found
            .into_iter()
            .filter(|it| it.rule == "path/no-outcome")
            .map(|finding| finding.message);
        orders.push(found.collect::<Vec<_>>());
    }
    assert_eq!(orders[0].len(), 2, "{orders:?}");
    orders.dedup();
    assert_eq!(orders.len(), 1, "{orders:?}");
}
