//! The guides in `examples/guides`.

use super::*;
use crate::import_task::example_guides;

on_both_databases![the_example_guides_have_no_error];

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
