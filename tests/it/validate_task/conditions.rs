//! Rules about single conditions.

use super::*;
use serde_json::json;

#[apply(on_one_database)]
async fn a_clean_guide_has_no_findings(client: Client) {
    assert_eq!(findings(&client, clean()).await, []);
}

#[apply(on_one_database)]
async fn a_variable_that_nothing_sets_is_unknown_and_the_closest_is_suggested(client: Client) {
    let mut steps = clean();
    let typo = needing(
        shown(StepType::Information, "Typo"),
        vec![reads("ligth", "=", &["on"])],
    );
    steps.insert(1, typo);
    let path = "dependencies.nodes[0].condition";
    let found = only_finding(&client, steps, "condition/unknown-variable", 1, path).await;
    assert_eq!(fact(&found, "variable"), json!("components.7.ligth"));
    assert_eq!(fact(&found, "suggestion"), json!("components.7.light"));
    assert_eq!(found.severity(), Severity::Warning);
}

#[apply(on_one_database)]
async fn an_own_name_of_the_task_is_suggested(client: Client) {
    let mut steps = clean();
    steps.insert(
        1,
        needing(
            shown(StepType::Information, "Typo"),
            vec![when("ligth", "=", "on")],
        ),
    );
    let path = "dependencies.nodes[0].condition";
    let found = only_finding(&client, steps, "condition/unknown-variable", 1, path).await;
    assert_eq!(fact(&found, "suggestion"), json!("light"));
}

#[apply(on_one_database)]
async fn an_own_name_of_a_managed_task_is_suggested_in_it(client: Client) {
    let typo = needing(
        shown(StepType::Information, "Typo"),
        vec![when("ligth", "=", "on")],
    );
    let inner = |own: Step| document("", vec![own, typo.clone(), shown(StepType::End, "End")]);
    let linked = linked_question(vec![
        answer_with("a", "A", inner(asks("light", &["on", "off"]))),
        answer_with("b", "B", inner(shown(StepType::Information, "Text"))),
    ]);
    let steps = vec![observation_asking(linked), shown(StepType::End, "End")];
    let found = findings(&client, steps).await;
    let unknown = found
        .iter()
        .filter(|one| one.rule == "condition/unknown-variable");
    let suggested: Vec<_> = unknown.map(|one| fact(one, "suggestion")).collect();
    assert_eq!(suggested[0], json!("light"));
    assert_eq!(suggested.len(), 2);
    assert_ne!(suggested[1], json!("light"));
}

#[apply(on_one_database)]
async fn a_name_that_nothing_sets_is_not_suggested(client: Client) {
    let reading = |name: &str| {
        needing(
            shown(StepType::Information, name),
            vec![reads(name, "=", &["red"])],
        )
    };
    let mut steps = clean();
    steps.splice(1..1, [reading("temperature"), reading("temperatures")]);
    let found = findings(&client, steps).await;
    let unknown: Vec<_> = found
        .iter()
        .filter(|one| one.rule == "condition/unknown-variable")
        .collect();
    assert_eq!(unknown.len(), 2);
    for finding in unknown {
        assert_eq!(fact(finding, "suggestion"), json!(null));
    }
}

#[apply(on_one_database)]
async fn a_declared_variable_is_known(client: Client) {
    for declared in ["device.model", "device.*", "*.model"] {
        let mut steps = clean();
        steps[0].dependencies = Some(any_of(vec![
            when("device.model", "=", "x"),
            when("device.model", "!=", "x"),
        ]));
        let options = ValidationOptions {
            known_variables: vec![declared.to_owned()],
            ..ValidationOptions::default()
        };
        let request = validation_of_document(document("Guide", steps));
        let found = client.validated(with_options(request, options)).await;
        let unknown = found.findings.iter();
        let unknown = unknown.filter(|one| one.rule == "condition/unknown-variable");
        let expected = if declared == "*.model" { 2 } else { 0 };
        assert_eq!(unknown.count(), expected, "{declared}");
    }
}

#[apply(on_one_database)]
async fn the_variable_of_a_loop_is_known(client: Client) {
    let mut steps = clean();
    steps[3].looping = Some(Looping {
        alias: "outlet".to_owned(),
        ..Looping::default()
    });
    let inside = vec![
        when("outlet.place", "=", "kitchen"),
        when("outlet", "!=", "none"),
    ];
    let beside = vec![when("outlets.place", "=", "kitchen")];
    steps.insert(1, needing(shown(StepType::Information, "Loop"), inside));
    steps.insert(2, needing(shown(StepType::Information, "Beside"), beside));
    let path = "dependencies.nodes[0].condition";
    only_finding(&client, steps, "condition/unknown-variable", 2, path).await;
}

#[apply(on_one_database)]
async fn a_name_of_another_task_is_unknown(client: Client) {
    let mut steps = clean();
    let inner = needing(
        shown(StepType::Information, "Inner"),
        vec![when("light", "=", "on")],
    );
    steps.insert(
        1,
        linked_observation(&[]).with_question(linked_question(vec![
            answer_with("a", "A", shown_after("a", vec![inner.clone()])),
            answer_with("b", "B", shown_after("b", vec![shown(StepType::Idp, "B")])),
        ])),
    );
    let found = findings(&client, steps).await;
    let path = "document.steps[1].feedback_config[0].values[0].task_json.steps[0].\
                dependencies.nodes[0].condition";
    assert_eq!(places(&found), [("condition/unknown-variable", path)]);
}

#[apply(on_one_database)]
async fn an_answer_that_is_no_key_is_unknown_and_the_closest_is_suggested(client: Client) {
    for operator in ["=", "!="] {
        let mut steps = clean();
        steps[2] = needing(
            shown(StepType::Solution, "Switch it on"),
            vec![reads("light", operator, &["off", "offf"])],
        );
        let path = "dependencies.nodes[0].condition.targets[1]";
        let found = only_finding(&client, steps, "condition/unknown-answer", 2, path).await;
        assert_eq!(fact(&found, "variable"), json!("components.7.light"));
        assert_eq!(fact(&found, "target"), json!("offf"));
        assert_eq!(fact(&found, "suggestion"), json!("off"));
    }
}

#[apply(on_one_database)]
async fn each_target_that_is_no_answer_is_reported(client: Client) {
    let mut steps = clean();
    let targets = vec![text("steady"), text("off"), number(5.0), value(true.into())];
    steps[2] = needing(
        shown(StepType::Solution, "Switch it on"),
        vec![reads_values("light", "=", targets)],
    );
    let found = findings(&client, steps).await;
    let path =
        |target| format!("document.steps[2].dependencies.nodes[0].condition.targets[{target}]");
    let rule = "condition/unknown-answer";
    let expected = [path(0), path(2), path(3)];
    assert_eq!(
        places(&found),
        expected.each_ref().map(|path| (rule, path.as_str()))
    );
    let targets: Vec<_> = found.iter().map(|one| fact(one, "target")).collect();
    assert_eq!(targets, [json!("steady"), json!(5.0), json!(true)]);
}

#[apply(on_one_database)]
async fn a_number_equals_a_numeric_key(client: Client) {
    let steps = vec![
        asks("beeps", &["1.0", "2", "0"]),
        needing(
            shown(StepType::Solution, "One"),
            vec![reads_values("beeps", "=", vec![number(1.0)])],
        ),
        needing(
            shown(StepType::Solution, "Two"),
            vec![reads_values("beeps", "=", vec![number(2.0)])],
        ),
        needing(
            shown(StepType::Solution, "None"),
            vec![reads_values("beeps", "=", vec![number(-0.0)])],
        ),
    ];
    assert_eq!(findings(&client, steps).await, []);
}

#[apply(on_one_database)]
async fn a_bound_that_is_not_numeric_is_not_comparable(client: Client) {
    let steps = vec![
        asks("beeps", &["1", "2"]),
        needing(
            shown(StepType::Information, "Compared"),
            vec![nested(any_of(vec![
                reads("beeps", ">", &["many"]),
                reads("beeps", "<", &["2"]),
                reads("beeps", ">", &["1"]),
                reads_values("beeps", "<", vec![value(true.into())]),
            ]))],
        ),
        shown(StepType::End, "Done"),
    ];
    let path = |node| {
        format!("document.steps[1].dependencies.nodes[0].group.nodes[{node}].condition.targets[0]")
    };
    let found = findings(&client, steps).await;
    let found: Vec<_> = found
        .iter()
        .filter(|one| one.rule != "condition/always-holds")
        .collect();
    assert_eq!(found.len(), 2, "{found:#?}");
    for (finding, (node, operator, target)) in found
        .iter()
        .zip([(0, ">", json!("many")), (3, "<", json!(true))])
    {
        assert_eq!(finding.rule, "condition/not-comparable");
        assert_eq!(finding.path, path(node));
        assert_eq!(fact(finding, "operator"), json!(operator));
        assert_eq!(fact(finding, "target"), target);
    }
}

#[apply(on_one_database)]
async fn a_variable_without_numeric_answers_is_not_comparable(client: Client) {
    for operator in [">", "<"] {
        let mut steps = clean();
        let compared = any_of(vec![
            reads("light", operator, &["1"]),
            reads("light", "=", &["on"]),
        ]);
        steps[1].dependencies = Some(compared);
        let path = "dependencies.nodes[0].condition";
        let found = only_finding(&client, steps, "condition/not-comparable", 1, path).await;
        assert_eq!(fact(&found, "operator"), json!(operator));
    }
}

#[apply(on_one_database)]
async fn several_bounds_are_superfluous(client: Client) {
    let steps = vec![
        asks("beeps", &["1", "3"]),
        needing(
            shown(StepType::Solution, "Many"),
            vec![reads("beeps", ">", &["2", "5"])],
        ),
        needing(
            shown(StepType::Solution, "Few"),
            vec![reads("beeps", "<", &["2", "0"])],
        ),
        shown(StepType::End, "Done"),
    ];
    let path = "dependencies.nodes[0].condition";
    let found = findings(&client, steps).await;
    let found: Vec<_> = found
        .iter()
        .filter(|one| one.rule != "observation/unused-answer")
        .collect();
    assert_eq!(found.len(), 2, "{found:#?}");
    for (finding, (step, targets)) in found.iter().zip([(1, ["2", "5"]), (2, ["2", "0"])]) {
        assert_eq!(finding.rule, "condition/several-bounds");
        assert_eq!(finding.path, format!("document.steps[{step}].{path}"));
        assert_eq!(fact(finding, "targets"), json!(targets));
    }
}

#[apply(on_one_database)]
async fn an_observation_behind_its_reader_is_answered_later(client: Client) {
    let mut steps = clean();
    steps.insert(
        0,
        needing(
            shown(StepType::Information, "Early"),
            vec![reads("light", "=", &["on"])],
        ),
    );
    let path = "dependencies.nodes[0].condition";
    let found = only_finding(&client, steps, "condition/answered-later", 0, path).await;
    assert_eq!(found.related[0].title, "Ask light");
}

/// Not every observation that sets the variable comes after the first.
#[apply(on_one_database)]
async fn the_first_of_two_observations_that_reads_their_name_is_not_answered_later(client: Client) {
    let mut steps = clean();
    steps[0].dependencies = Some(all_of(vec![reads("light", "!=", &["off"])]));
    steps.insert(1, asks("light", &["on", "off"]));
    let path = "feedback_config[0].name";
    only_finding(&client, steps, "observation/duplicate-name", 1, path).await;
}

#[apply(on_one_database)]
async fn an_observation_that_reads_its_own_answer_reads_itself(client: Client) {
    let mut steps = clean();
    steps[0].dependencies = Some(all_of(vec![when("light", "!=", "off")]));
    let path = "dependencies.nodes[0].condition";
    let found = only_finding(&client, steps, "condition/self", 0, path).await;
    assert_eq!(found.severity(), Severity::Error);
}

#[apply(on_both_databases)]
async fn a_variable_that_other_guides_set_is_set_elsewhere(client: Client) {
    let other = document("Other", vec![asks("damage", &["liquid", "none"])]);
    let other = client.imported(other).await;
    let mut steps = clean();
    steps.insert(
        0,
        needing(
            shown(StepType::Information, "Liquid"),
            vec![reads("damage", "=", &["liquid"])],
        ),
    );
    let path = "dependencies.nodes[0].condition";
    let found = only_finding(&client, steps, "condition/set-elsewhere", 0, path).await;
    let [place] = found.related.as_slice() else {
        panic!("{found:#?}");
    };
    assert_eq!((&place.task, &place.step), (&other.guid, &other.steps[0]));
    assert_eq!(place.title, "Ask damage");
}

#[apply(on_both_databases)]
async fn a_variable_that_other_guides_set_too_may_be_answered_before(client: Client) {
    let other = document("Other", vec![asks("light", &["on", "off"])]);
    client.imported(other).await;
    let mut early = clean();
    let needs = vec![reads("light", "=", &["on"])];
    early.insert(0, needing(shown(StepType::Information, "Early"), needs));
    let mut itself = clean();
    itself[0].dependencies = Some(all_of(vec![reads("light", "!=", &["off"])]));
    for steps in [early, itself] {
        let found = findings(&client, steps).await;
        for rule in ["answered-later", "self", "set-elsewhere"] {
            let found = of_rule(&found, &format!("condition/{rule}")).len();
            assert_eq!(found, 0, "{rule}");
        }
    }
}

/// Nothing is said about `nobody`: an observation that was not read may set it.
#[apply(on_both_databases)]
async fn a_name_without_setters_beside_one_with_too_many_to_read_has_no_finding(client: Client) {
    let many = vec![asks("used", &["on", "off"]); 2_100];
    client.imported(document("Others", many)).await;
    let reading = |name| {
        let step = shown(StepType::Information, name);
        needing(step, vec![reads(name, "=", &["on"])])
    };
    let mut steps = clean();
    steps.insert(1, reading("used"));
    steps.insert(2, reading("nobody"));
    let found = findings(&client, steps).await;
    let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(rules, ["condition/set-elsewhere"], "{found:#?}");
    assert!(found[0].message.contains(".used`"), "{found:#?}");
    assert_eq!(found[0].related.len(), 20);
}

#[apply(on_both_databases)]
async fn what_a_document_replaces_sets_and_reads_nothing(client: Client) {
    let stored = client.imported(document("Guide", clean())).await;
    let mut changed = client.exported(&stored.guid).await;
    // Nothing reads the new name, and nothing sets the old one any more.
    changed.steps[0].feedback_config[0].name = "lamp".to_owned();
    let mut without_readers = client.exported(&stored.guid).await;
    without_readers.steps.drain(1..3);
    for (document, as_another, as_the_same) in [
        (
            changed,
            "condition/set-elsewhere",
            "condition/unknown-variable",
        ),
        (without_readers, "", "observation/unused"),
    ] {
        let mut request = validation_of_document(document);
        let found = client.validated(request.clone()).await.findings;
        let has = |found: &[Finding], rule: &str| found.iter().any(|one| one.rule == rule);
        assert!(!has(&found, as_the_same), "{found:#?}");
        assert_eq!(
            has(&found, as_another),
            !as_another.is_empty(),
            "{found:#?}"
        );
        request.replaces_stored = true;
        let found = client.validated(request).await.findings;
        assert!(has(&found, as_the_same), "{found:#?}");
        assert!(!has(&found, "condition/set-elsewhere"), "{found:#?}");
    }
    let request = ValidateTaskRequest {
        replaces_stored: true,
        ..validation_of(&stored.guid)
    };
    let failure = client.validate(request).await.refused();
    failure.violates(&[("replaces_stored", "FIELD_INVALID")]);
}

#[apply(on_one_database)]
async fn conditions_of_unpublished_steps_are_checked(client: Client) {
    let mut steps = clean();
    let typo = vec![reads("ligth", "=", &["on"])];
    let mut draft = needing(shown(StepType::Information, "Draft"), typo);
    draft.published = Some(0);
    steps.insert(1, draft);
    let path = "dependencies.nodes[0].condition";
    only_finding(&client, steps, "condition/unknown-variable", 1, path).await;
}

#[apply(on_one_database)]
async fn paths_lead_into_nested_groups(client: Client) {
    let mut steps = clean();
    let inner = any_of(vec![
        reads("light", "=", &["on"]),
        reads("ligth", "=", &["x"]),
    ]);
    steps[1] = needing(shown(StepType::Solution, "Nested"), vec![nested(inner)]);
    let path = "dependencies.nodes[0].group.nodes[1].condition";
    only_finding(&client, steps, "condition/unknown-variable", 1, path).await;
}

/// A condition that was not read may name any of its answers.
#[apply(on_both_databases)]
async fn an_observation_that_too_many_guides_read_has_no_finding(client: Client) {
    let reader = shown(StepType::Information, "Reader");
    let reader = needing(reader, vec![reads("used", "=", &["on"])]);
    for (readers, found_rules) in [(999, vec!["observation/unused-answer"]), (1_010, vec![])] {
        let others = client.imported(document("Others", vec![reader.clone(); readers]));
        let others = others.await;
        let mut steps = vec![asks("used", &["on", "off"])];
        steps.push(shown(StepType::End, "Done"));
        let found = findings(&client, steps).await;
        let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
        assert_eq!(rules, found_rules, "{found:#?}");
        client.force_delete_task(&others.guid).await.accepted();
    }
}
