//! Findings of all tasks of an account.

use super::*;

/// A document with this many unused observations.
fn unused(name: &str, count: usize) -> TaskDocument {
    let asked = (0..count).map(|index| asks(&format!("unused{index}{name}"), &["x", "y"]));
    let steps = asked.chain([shown(StepType::End, "Done")]).collect();
    document(name, steps)
}

/// All findings, and how many pages they took.
async fn all(client: &Client, mut request: ListFindingsRequest) -> (Vec<Finding>, usize) {
    let mut found = Vec::new();
    for pages in 1..1_000 {
        let page = client.findings(request.clone()).await.accepted();
        found.extend(page.findings);
        if page.next_page_token.is_empty() {
            return (found, pages);
        }
        request.page_token = page.next_page_token;
    }
    panic!("the list has no end");
}

#[apply(on_both_databases)]
async fn findings_of_all_tasks_are_listed_in_order_of_creation(client: Client) {
    let mut expected = Vec::new();
    for name in ["A", "B", "C"] {
        let made = client.imported(unused(name, 3)).await;
        let found = client.validated(validation_of(&made.guid)).await.findings;
        expected.extend(found);
    }
    assert_eq!(expected.len(), 9);
    for page_size in [1, 2, 4, 500] {
        let request = ListFindingsRequest {
            page_size,
            ..ListFindingsRequest::default()
        };
        assert_eq!(all(&client, request).await.0, expected, "{page_size}");
    }
}

#[apply(on_both_databases)]
async fn tasks_are_filtered_by_product_and_published(client: Client) {
    let mut other = unused("Other", 1);
    other.task = Some(task("Other").with_product(8));
    let other = client.imported(other).await;
    let mut hidden = unused("Hidden", 1);
    hidden.task = Some(task("Hidden").with_published(0));
    let hidden = client.imported(hidden).await;
    let by_product = ListFindingsRequest {
        product_id: Some(8),
        ..ListFindingsRequest::default()
    };
    let by_published = ListFindingsRequest {
        published: Some(0),
        ..ListFindingsRequest::default()
    };
    for (request, task) in [(by_product, other), (by_published, hidden)] {
        let found = all(&client, request).await.0;
        let tasks: Vec<_> = found.iter().map(|one| &one.task).collect();
        assert_eq!(tasks, [&task.guid]);
    }
    let by_both = ListFindingsRequest {
        product_id: Some(8),
        published: Some(0),
        ..ListFindingsRequest::default()
    };
    let options = ValidationOptions {
        min_severity: Severity::Warning.into(),
        ..ValidationOptions::default()
    };
    let of_warnings = ListFindingsRequest {
        options: Some(options),
        ..ListFindingsRequest::default()
    };
    for request in [by_both, of_warnings] {
        assert_eq!(all(&client, request).await.0, []);
    }
}

#[apply(on_both_databases)]
async fn managed_tasks_are_looked_at_with_their_parent(client: Client) {
    let values = vec![answer_with("1", "One", unused("", 1))];
    let mut guide = unused("Parent", 0);
    guide
        .steps
        .insert(0, observation_asking(linked_question(values)));
    client.imported(guide).await;
    let found = all(&client, ListFindingsRequest::default()).await.0;
    let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
    let of_parent = ["observation/single-answer", "linked/always-shown"];
    assert_eq!(rules, [&of_parent[..], &["observation/unused"]].concat());
}

#[apply(on_both_databases)]
async fn a_call_looks_at_a_bounded_number_of_steps(client: Client) {
    let steps = vec![shown(StepType::Solution, "Step"); 900];
    for _ in 0..4 {
        client.imported(document("Long", steps.clone())).await;
    }
    client.imported(unused("Last", 1)).await;
    let first = client
        .findings(ListFindingsRequest::default())
        .await
        .accepted();
    assert_eq!(first.findings, []);
    assert!(!first.next_page_token.is_empty());
    let (found, pages) = all(&client, ListFindingsRequest::default()).await;
    assert_eq!(found.len(), 1);
    assert_eq!(pages, 2);
}

#[apply(on_both_databases)]
async fn a_page_continues_within_a_task_that_has_changed(client: Client) {
    let made = client.imported(unused("A", 3)).await;
    let request = ListFindingsRequest {
        page_size: 2,
        ..ListFindingsRequest::default()
    };
    let first = client.findings(request.clone()).await.accepted();
    client.delete_step(&made.steps[0]).await.accepted();
    let next = ListFindingsRequest {
        page_token: first.next_page_token,
        ..request
    };
    let second = client.findings(next).await.accepted();
    let steps: Vec<_> = second.findings.iter().map(|one| &one.step).collect();
    assert_eq!(steps, [&made.steps[2]]);
    assert_eq!(second.next_page_token, "");
}
