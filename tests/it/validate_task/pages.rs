//! Pages, fingerprints and ids of findings.

use super::*;

/// A guide with an unused observation for each name.
fn unused(names: &[&str]) -> TaskDocument {
    let asked = names.iter().map(|name| asks(name, &["x", "y"]));
    let steps: Vec<Step> = asked.chain([shown(StepType::End, "Done")]).collect();
    document("Unused", steps)
}

#[apply(on_both_databases)]
async fn a_token_is_invalid_after_its_guide_has_changed(client: Client) {
    let made = client.imported(unused(&["a", "b"])).await;
    let mut request = ValidateTaskRequest {
        page_size: 1,
        ..validation_of(&made.guid)
    };
    request.page_token = client.validated(request.clone()).await.next_page_token;
    let renamed = step_of(&made.steps[0]).titled("Changed");
    client.update_step(renamed, &["title"]).await.accepted();
    let refused = client.validate(request).await.refused();
    refused.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

async fn fingerprint(client: &Client, request: &ValidateTaskRequest) -> String {
    client.validated(request.clone()).await.fingerprint
}

#[apply(on_both_databases)]
async fn a_known_fingerprint_that_is_still_true_is_unchanged(client: Client) {
    let made = client.imported(unused(&["a"])).await;
    for request in [
        validation_of(&made.guid),
        validation_of_document(unused(&["a"])),
    ] {
        let known_fingerprint = fingerprint(&client, &request).await;
        let known = ValidateTaskRequest {
            known_fingerprint: known_fingerprint.clone(),
            ..request.clone()
        };
        let response = client.validated(known.clone()).await;
        assert!(response.unchanged);
        assert_eq!(response.findings, []);
        assert_eq!(response.counts, Some(FindingCounts::default()));
        assert_eq!(response.fingerprint, known_fingerprint);
        let options = ValidationOptions {
            min_severity: Severity::Warning.into(),
            ..ValidationOptions::default()
        };
        let response = client.validated(with_options(known, options)).await;
        assert!(!response.unchanged);
    }
}

#[apply(on_both_databases)]
async fn a_later_page_ignores_the_known_fingerprint(client: Client) {
    let made = client.imported(unused(&["a", "b"])).await;
    let first = ValidateTaskRequest {
        page_size: 1,
        ..validation_of(&made.guid)
    };
    let page = client.validated(first.clone()).await;
    let second = ValidateTaskRequest {
        page_token: page.next_page_token,
        known_fingerprint: page.fingerprint,
        ..first
    };
    let page = client.validated(second).await;
    assert!(!page.unchanged);
    assert_eq!(page.findings.len(), 1);
}

#[apply(on_both_databases)]
async fn what_reads_and_sets_elsewhere_changes_the_fingerprint(client: Client) {
    let mut guide = unused(&["a"]);
    let needs = vec![reads("set_elsewhere", "=", &["x"])];
    guide
        .steps
        .push(needing(shown(StepType::Information, "Reader"), needs));
    let made = client.imported(guide).await;
    let request = validation_of(&made.guid);
    let first = fingerprint(&client, &request).await;
    assert_eq!(fingerprint(&client, &request).await, first);
    let reader = needing(
        shown(StepType::Information, "Reader"),
        vec![reads("a", "=", &["x"])],
    );
    client.imported(document("Reads", vec![reader])).await;
    let second = fingerprint(&client, &request).await;
    assert_ne!(second, first);
    let setter = document("Sets", vec![asks("set_elsewhere", &["x"])]);
    let setter = client.imported(setter).await;
    let third = fingerprint(&client, &request).await;
    assert_ne!(third, second);
    let renamed = step_of(&setter.steps[0]).titled("Renamed");
    client.updated_step(renamed, &[]).await;
    assert_ne!(fingerprint(&client, &request).await, third);
}

#[apply(on_both_databases)]
async fn a_finding_keeps_its_id_when_others_come_and_go(client: Client) {
    let made = client.imported(unused(&["a", "b"])).await;
    let request = validation_of(&made.guid);
    let before = client.validated(request.clone()).await.findings;
    client.delete_step(&made.steps[0]).await.accepted();
    let after = client.validated(request).await.findings;
    assert_eq!(after, before[1..]);
}

#[apply(on_both_databases)]
async fn findings_are_in_the_order_of_the_guide(client: Client) {
    let mut guide = unused(&["a"]);
    let inner = |key, name| shown_after(key, unused(&[name]).steps);
    let innermost = vec![answer_with("3", "Three", inner("3", "d"))];
    let mut first = inner("1", "b");
    first
        .steps
        .insert(0, observation_asking(linked_question(innermost)));
    let values = vec![
        answer_with("1", "One", first),
        answer_with("2", "Two", inner("2", "c")),
    ];
    guide
        .steps
        .insert(0, observation_asking(linked_question(values)));
    let found = client
        .validated(validation_of_document(guide))
        .await
        .findings;
    let found = of_rule(&found, "observation/unused").into_iter();
    let paths: Vec<_> = found.map(|one| one.path.as_str()).collect();
    let inner = "document.steps[0].feedback_config[0].values";
    assert_eq!(
        paths,
        [
            "document.steps[1].feedback_config[0].name".to_owned(),
            format!("{inner}[0].task_json.steps[1].feedback_config[0].name"),
            format!(
                "{inner}[0].task_json.steps[0].feedback_config[0].values[0].\
                 task_json.steps[0].feedback_config[0].name"
            ),
            format!("{inner}[1].task_json.steps[0].feedback_config[0].name"),
        ]
    );
}

#[apply(on_both_databases)]
async fn findings_of_a_step_are_in_the_order_of_paths_behind_those_of_its_task(client: Client) {
    let typo = vec![reads("ligth", "=", &["on"])];
    let step = needing(document_step(StepType::Information, "Empty"), typo).with_published(2);
    let step = step.translated("german", step_translation("Leer"));
    let steps = vec![step, shown(StepType::End, "Done")];
    let made = client.imported(document("Guide", steps)).await;
    let found = client.validated(validation_of(&made.guid)).await.findings;
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.step.as_str(), one.rule.as_str(), one.path.as_str()))
        .collect();
    let (first, second) = (made.steps[0].as_str(), made.steps[1].as_str());
    let typo = "dependencies.nodes[0].condition";
    let german = "translations[\"german\"]";
    assert_eq!(
        found,
        [
            ("", "translation/missing", german),
            (first, "step/no-content", ""),
            (first, "condition/unknown-variable", typo),
            (first, "step/unknown-published", "published"),
            (first, "translation/unknown-language", german),
            (second, "translation/missing", german),
        ]
    );
}

#[apply(on_both_databases)]
async fn findings_of_an_export_have_its_ids(client: Client) {
    let made = client.imported(unused(&["a", "a"])).await;
    let exported = client.exported(&made.guid).await;
    let found = client.validated(validation_of_document(exported)).await;
    let finding = of_rule(&found.findings, "observation/duplicate-name")[0];
    assert_eq!((&finding.task, &finding.step), (&made.guid, &made.steps[1]));
    let [place] = finding.related.as_slice() else {
        panic!("{finding:#?}");
    };
    assert_eq!((&place.task, &place.step), (&made.guid, &made.steps[0]));
    assert_eq!(place.title, "Ask a");
}
