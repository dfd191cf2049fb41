//! Requests that are refused.

use super::*;

on_one_database![
    a_source_is_required,
    a_document_is_checked_as_an_import_checks_it,
    unknown_rules_are_refused,
    severities_are_checked,
    an_empty_suppression_is_refused,
    malformed_ids_in_suppressions_are_refused,
    lists_of_options_have_limits,
    a_known_fingerprint_has_no_nul,
];

async fn refused(client: &Client, options: ValidationOptions) -> Failure {
    let request = validation_of_document(document("Guide", clean()));
    client
        .validate(with_options(request, options))
        .await
        .refused()
}

async fn a_known_fingerprint_has_no_nul(client: Client) {
    let request = ValidateTaskRequest {
        known_fingerprint: "a\0b".to_owned(),
        ..validation_of_document(document("Guide", clean()))
    };
    let refused = client.validate(request).await.refused();
    refused.violates(&[("known_fingerprint", "FIELD_INVALID")]);
}

async fn a_source_is_required(client: Client) {
    let request = ValidateTaskRequest::default();
    let refused = client.validate(request).await.refused();
    refused.violates(&[("source", "FIELD_REQUIRED")]);
}

async fn a_document_is_checked_as_an_import_checks_it(client: Client) {
    let mut steps = clean();
    steps[0].title = String::new();
    steps[1].cost = Some(1);
    let invalid = document("", steps);
    let imported = client.import(invalid.clone()).await.refused();
    let validated = client
        .validate(validation_of_document(invalid))
        .await
        .refused();
    validated.violates(&imported.violations());
}

async fn unknown_rules_are_refused(client: Client) {
    let options = ValidationOptions {
        rules: vec![
            RuleSetting {
                rule: "step/unknown".to_owned(),
                severity: Severity::Off.into(),
            },
            RuleSetting {
                rule: String::new(),
                severity: Severity::Off.into(),
            },
        ],
        suppress: vec![Suppression {
            rule: "Step/unreachable".to_owned(),
            ..Suppression::default()
        }],
        ..ValidationOptions::default()
    };
    refused(&client, options).await.violates(&[
        ("options.rules[0].rule", "FIELD_INVALID"),
        ("options.rules[1].rule", "FIELD_REQUIRED"),
        ("options.suppress[0].rule", "FIELD_INVALID"),
    ]);
}

async fn severities_are_checked(client: Client) {
    let setting = |severity| RuleSetting {
        rule: "step/unreachable".to_owned(),
        severity,
    };
    let options = ValidationOptions {
        rules: vec![setting(0), setting(5)],
        min_severity: Severity::Off.into(),
        ..ValidationOptions::default()
    };
    refused(&client, options).await.violates(&[
        ("options.rules[0].severity", "FIELD_REQUIRED"),
        ("options.rules[1].severity", "FIELD_INVALID"),
        ("options.min_severity", "FIELD_INVALID"),
    ]);
    let options = ValidationOptions {
        min_severity: 7,
        ..ValidationOptions::default()
    };
    let refused = refused(&client, options).await;
    refused.violates(&[("options.min_severity", "FIELD_INVALID")]);
    assert_eq!(
        refused.description(),
        "is not a severity: SEVERITY_INFO (2), SEVERITY_WARNING (3), SEVERITY_ERROR (4)"
    );
}

async fn an_empty_suppression_is_refused(client: Client) {
    let options = ValidationOptions {
        suppress: vec![Suppression::default()],
        ..ValidationOptions::default()
    };
    let refused = refused(&client, options).await;
    refused.violates(&[("options.suppress[0]", "FIELD_REQUIRED")]);
}

async fn malformed_ids_in_suppressions_are_refused(client: Client) {
    let options = ValidationOptions {
        suppress: vec![Suppression {
            task: "no-id".to_owned(),
            step: "no-id".to_owned(),
            path: "a\0b".to_owned(),
            ..Suppression::default()
        }],
        ..ValidationOptions::default()
    };
    refused(&client, options).await.violates(&[
        ("options.suppress[0].task", "FIELD_INVALID"),
        ("options.suppress[0].step", "FIELD_INVALID"),
        ("options.suppress[0].path", "FIELD_INVALID"),
    ]);
}

/// Lists with `excess` elements more than their limits.
fn options_with(excess: usize) -> ValidationOptions {
    let setting = RuleSetting {
        rule: "step/unreachable".to_owned(),
        severity: Severity::Info.into(),
    };
    let suppression = Suppression {
        path: "nothing".to_owned(),
        ..Suppression::default()
    };
    ValidationOptions {
        rules: vec![setting; 100 + excess],
        suppress: vec![suppression; 1_000 + excess],
        known_variables: vec!["known".to_owned(); 1_000 + excess],
        ..ValidationOptions::default()
    }
}

async fn lists_of_options_have_limits(client: Client) {
    let request = validation_of_document(document("Guide", clean()));
    client
        .validated(with_options(request, options_with(0)))
        .await;
    refused(&client, options_with(1)).await.violates(&[
        ("options.rules", "TOO_MANY_ELEMENTS"),
        ("options.suppress", "TOO_MANY_ELEMENTS"),
        ("options.known_variables", "TOO_MANY_ELEMENTS"),
    ]);
    let names = |length: usize| ValidationOptions {
        known_variables: vec!["n".repeat(length), "m".to_owned()],
        languages: vec!["de".to_owned()],
        ..ValidationOptions::default()
    };
    let request = validation_of_document(document("Guide", clean()));
    client.validated(with_options(request, names(2_001))).await;
    let refused = refused(&client, names(2_002)).await;
    refused.violates(&[("options.known_variables[0]", "FIELD_TOO_LONG")]);
}
