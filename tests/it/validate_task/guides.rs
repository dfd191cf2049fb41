//! Whole guides: those in `examples/guides`, and one that an import refuses.

use super::*;
use crate::import_task::example_guides;

#[apply(on_both_databases)]
async fn the_example_guides_have_no_error(client: Client) {
    for (name, guide) in example_guides::guides() {
        let document = client
            .validated(validation_of_document(guide.clone()))
            .await;
        let made = client.imported(guide).await;
        let stored = client.validated(validation_of(&made.guid)).await;
        for response in [document, stored] {
            let errors = response.findings.iter();
            let errors: Vec<_> = errors
                .filter(|one| one.severity() == Severity::Error)
                .collect();
            assert!(errors.is_empty(), "{name}: {errors:#?}");
            let about_walkthroughs = response.findings.iter().filter(|one| {
                let rule = one.rule.as_str();
                ["step/unreachable", "path/no-outcome", "task/never-visible"].contains(&rule)
            });
            assert_eq!(about_walkthroughs.count(), 0, "{name}");
            assert_eq!(response.counts.unwrap().undecided, 0, "{name}");
        }
    }
}

#[apply(on_one_database)]
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
