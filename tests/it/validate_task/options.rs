//! Options of a validation, and the list of rules.

use super::*;

const RULES: [&str; 30] = [
    "condition/unknown-variable",
    "condition/unknown-answer",
    "condition/not-comparable",
    "condition/several-bounds",
    "condition/answered-later",
    "condition/self",
    "condition/set-elsewhere",
    "condition/always-holds",
    "step/unreachable",
    "task/never-visible",
    "path/no-outcome",
    "observation/duplicate-name",
    "observation/unused",
    "observation/unused-answer",
    "observation/duplicate-text",
    "observation/single-answer",
    "linked/always-shown",
    "subtask/cycle",
    "subtask/unpublished",
    "subtask/levels",
    "subtask/too-deep",
    "translation/missing",
    "translation/outdated",
    "translation/locked-outdated",
    "translation/answers",
    "translation/unknown-language",
    "task/no-steps",
    "step/no-content",
    "step/unknown-published",
    "analysis/too-large",
];

#[apply(on_one_database)]
async fn rules_are_listed_with_severities_and_descriptions(client: Client) {
    let rules = client.rules().await.accepted().rules;
    let ids: Vec<_> = rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, RULES);
    for rule in &rules {
        assert!(rule.severity() > Severity::Off, "{}", rule.id);
        assert!(!rule.description.is_empty(), "{}", rule.id);
    }
}

/// A guide with findings of all severities.
fn flawed() -> TaskDocument {
    let mut steps = clean();
    steps.insert(1, document_step(StepType::Information, "Empty"));
    let typo = vec![reads("ligth", "=", &["on"])];
    steps.insert(2, needing(shown(StepType::Information, "Typo"), typo));
    steps.push(shown(StepType::Information, "After"));
    document("Flawed", steps)
}

async fn validated(client: &Client, options: ValidationOptions) -> ValidateTaskResponse {
    let request = with_options(validation_of_document(flawed()), options);
    client.validated(request).await
}

fn counts(response: &ValidateTaskResponse) -> [i32; 4] {
    let counts = response.counts.expect("counts");
    [
        counts.errors,
        counts.warnings,
        counts.infos,
        counts.suppressed,
    ]
}

#[apply(on_one_database)]
async fn a_rule_can_have_another_severity(client: Client) {
    let setting = |severity: Severity| RuleSetting {
        rule: "step/no-content".to_owned(),
        severity: severity.into(),
    };
    let options = ValidationOptions {
        // Of two settings of one rule the last counts.
        rules: vec![setting(Severity::Off), setting(Severity::Error)],
        ..ValidationOptions::default()
    };
    let response = validated(&client, options.clone()).await;
    assert_eq!(counts(&response), [2, 1, 0, 0]);
    assert_eq!(response.findings[0].severity(), Severity::Error);
    let options = ValidationOptions {
        min_severity: Severity::Error.into(),
        ..options
    };
    assert_eq!(counts(&validated(&client, options).await), [2, 0, 0, 0]);
}

#[apply(on_one_database)]
async fn findings_below_the_minimum_are_not_listed_or_counted(client: Client) {
    for (minimum, expected) in [
        (Severity::Unspecified, [1, 1, 1, 0]),
        (Severity::Info, [1, 1, 1, 0]),
        (Severity::Warning, [1, 1, 0, 0]),
        (Severity::Error, [1, 0, 0, 0]),
    ] {
        let options = ValidationOptions {
            min_severity: minimum.into(),
            ..ValidationOptions::default()
        };
        assert_eq!(counts(&validated(&client, options.clone()).await), expected);
        // Nor are they counted as suppressed.
        let suppression = Suppression {
            rule: "step/no-content".to_owned(),
            ..Suppression::default()
        };
        let options = ValidationOptions {
            suppress: vec![suppression],
            ..options
        };
        let [errors, warnings, infos, _] = expected;
        let expected = [errors, warnings, 0, infos];
        assert_eq!(counts(&validated(&client, options).await), expected);
    }
}

#[apply(on_one_database)]
async fn a_suppressed_path_matches_exactly_or_before_its_star(client: Client) {
    for (path, suppressed) in [
        ("document.steps[2].dependencies.*", 1),
        ("document.steps[2].*", 1),
        ("document.steps[2]", 0),
        ("document.steps[1]", 1),
        ("document.*", 3),
        ("document.step.*", 0),
        (".*", 3),
        ("document", 0),
        ("*", 0),
    ] {
        let suppression = Suppression {
            path: path.to_owned(),
            ..Suppression::default()
        };
        let options = ValidationOptions {
            suppress: vec![suppression],
            ..ValidationOptions::default()
        };
        let response = validated(&client, options).await;
        assert_eq!(counts(&response)[3], suppressed, "{path}");
        assert_eq!(response.findings.len(), 3 - suppressed as usize, "{path}");
    }
}

#[apply(on_both_databases)]
async fn suppressed_ids_of_others_match_nothing(client: Client) {
    let other = client.other_account();
    let foreign = other.imported(flawed()).await;
    let own = client.imported(flawed()).await;
    for (task, step, suppressed) in [
        (foreign.guid.as_str(), foreign.steps[1].as_str(), 0),
        (&unknown_guid(), &unknown_guid(), 0),
        (&own.guid.to_uppercase(), &own.steps[1].to_uppercase(), 3),
    ] {
        let by_task = Suppression {
            task: task.to_owned(),
            ..Suppression::default()
        };
        let by_step = Suppression {
            step: step.to_owned(),
            ..Suppression::default()
        };
        let options = ValidationOptions {
            suppress: vec![by_task, by_step],
            ..ValidationOptions::default()
        };
        let request = with_options(validation_of(&own.guid), options);
        let response = client.validated(request).await;
        assert_eq!(counts(&response)[3], suppressed);
    }
}

#[apply(on_both_databases)]
async fn counts_are_those_of_the_whole_guide(client: Client) {
    let made = client.imported(flawed()).await;
    let first = ValidateTaskRequest {
        page_size: 1,
        ..validation_of(&made.guid)
    };
    let response = client.validated(first).await;
    assert_eq!(response.findings.len(), 1);
    assert_eq!(counts(&response), [1, 1, 1, 0]);
}

#[apply(on_both_databases)]
async fn a_suppression_matches_by_all_that_it_has(client: Client) {
    let made = client.imported(flawed()).await;
    let task = made.guid.as_str();
    let (empty, typo) = (made.steps[1].as_str(), made.steps[2].as_str());
    let (no_content, unknown) = ("step/no-content", "condition/unknown-variable");
    for (rule, task, step, path, suppressed) in [
        (unknown, "", "", "dependencies.*", 1),
        (no_content, "", "", "dependencies.*", 0),
        (no_content, "", empty, "", 1),
        (no_content, "", typo, "", 0),
        ("", &*unknown_guid(), typo, "", 0),
        ("", task, typo, "dependencies.*", 1),
        (no_content, task, "", "", 1),
    ] {
        let one = Suppression {
            rule: rule.to_owned(),
            task: task.to_owned(),
            step: step.to_owned(),
            path: path.to_owned(),
        };
        let options = ValidationOptions {
            // What two of them match counts once.
            suppress: vec![one.clone(), one.clone()],
            ..ValidationOptions::default()
        };
        let request = with_options(validation_of(&made.guid), options);
        let response = client.validated(request).await;
        assert_eq!(counts(&response)[3], suppressed, "{one:?}");
        assert_eq!(response.findings.len(), 3 - suppressed as usize, "{one:?}");
    }
}

#[apply(on_both_databases)]
async fn each_option_counts_for_all_guides_as_for_one(client: Client) {
    let draft = shown(StepType::End, "Draft").with_published(0);
    let made = [
        client.imported(flawed()).await,
        client.imported(document("Drafts", vec![draft])).await,
    ];
    let listed = async |options: ValidationOptions| {
        let mut expected = Vec::new();
        for task in &made {
            let request = with_options(validation_of(&task.guid), options.clone());
            expected.extend(client.validated(request).await.findings);
        }
        let request = ListFindingsRequest {
            options: Some(options),
            page_size: 500,
            ..ListFindingsRequest::default()
        };
        let response = client.findings(request).await.accepted();
        assert_eq!(response.findings, expected);
        expected
    };
    let without = listed(ValidationOptions::default()).await;
    let changes: [fn(&mut ValidationOptions, &str); 5] = [
        |options, _| {
            let (rule, severity) = ("step/no-content".to_owned(), Severity::Error.into());
            options.rules = vec![RuleSetting { rule, severity }];
        },
        |options, task| {
            options.suppress = vec![Suppression {
                task: task.to_owned(),
                ..Suppression::default()
            }];
        },
        |options, _| options.known_variables = vec![format!("components.{PRODUCT}.ligth")],
        |options, _| options.languages = vec!["fr".to_owned()],
        |options, _| options.include_unpublished = true,
    ];
    for change in changes {
        let mut options = ValidationOptions::default();
        change(&mut options, &made[1].guid);
        assert_ne!(listed(options.clone()).await, without, "{options:?}");
    }
}

/// 400 conditions of 1,000 values each that are no answers.
#[apply(on_one_database)]
async fn findings_beyond_300_000_are_counted_and_not_suppressed(client: Client) {
    let mut steps = vec![asks("light", &["on", "off"])];
    for step in 0..10 {
        let condition = |n: usize| {
            let first = 1_000 * (40 * step + n);
            let values = (first..first + 1_000).map(|value| text(&value.to_string()));
            reads_values("light", "=", values.collect())
        };
        let nodes = (0..40).map(condition).collect();
        steps.push(needing(
            shown(StepType::Solution, "Many"),
            vec![nested(any_of(nodes))],
        ));
    }
    let unknown = Suppression {
        rule: "condition/unknown-answer".to_owned(),
        path: "document.*".to_owned(),
        ..Suppression::default()
    };
    let options = ValidationOptions {
        suppress: vec![unknown],
        ..ValidationOptions::default()
    };
    let request = validation_of_document(document("Many", steps));
    let response = client.validated(with_options(request, options)).await;
    let [errors, warnings, infos, suppressed] = counts(&response);
    assert!((299_900..=300_000).contains(&suppressed), "{suppressed}");
    let all = errors + warnings + infos + suppressed;
    assert!((400_000..400_100).contains(&all), "{all}");
}
