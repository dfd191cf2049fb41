//! The list of rules, and options whose effect is not in the answer about one guide.

use super::named;
use crate::prelude::*;

const RULES: [(&str, Severity); 30] = {
    use Severity::{Error, Info, Warning};
    [
        ("condition/unknown-variable", Warning),
        ("condition/unknown-answer", Warning),
        ("condition/not-comparable", Warning),
        ("condition/several-bounds", Warning),
        ("condition/answered-later", Warning),
        ("condition/self", Error),
        ("condition/set-elsewhere", Info),
        ("condition/always-holds", Info),
        ("step/unreachable", Error),
        ("task/never-visible", Error),
        ("path/no-outcome", Warning),
        ("observation/duplicate-name", Warning),
        ("observation/unused", Info),
        ("observation/unused-answer", Info),
        ("observation/duplicate-text", Warning),
        ("observation/single-answer", Info),
        ("linked/always-shown", Warning),
        ("subtask/cycle", Error),
        ("subtask/unpublished", Warning),
        ("subtask/levels", Warning),
        ("subtask/too-deep", Warning),
        ("translation/missing", Warning),
        ("translation/outdated", Warning),
        ("translation/locked-outdated", Info),
        ("translation/answers", Warning),
        ("translation/unknown-language", Warning),
        ("task/no-steps", Warning),
        ("step/no-content", Info),
        ("step/unknown-published", Info),
        ("analysis/too-large", Info),
    ]
};

#[apply(on_one_database)]
async fn rules_are_listed_with_severities_and_descriptions(client: Client) {
    let rules = client.call(ListRulesRequest {}).await.accepted().rules;
    let listed = rules.iter().map(|rule| (rule.id.as_str(), rule.severity()));
    assert_eq!(listed.collect::<Vec<_>>(), RULES);
    for rule in &rules {
        assert!(!rule.description.is_empty(), "{}", rule.id);
    }
}

/// A guide with a finding of each severity.
fn flawed() -> TaskDocument {
    named(
        "Flawed",
        "
        ask light: on, off
        info Empty body=null
        info Typo ? .ligth = on
        solution Switch it off ? .light = on
        solution Switch it on ? .light = off
        end Done
        info After",
    )
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

#[apply(on_both_databases)]
async fn suppressed_ids_of_others_match_nothing(client: Client) {
    let foreign = client.other_account().imported(flawed()).await;
    let own = client.imported(flawed()).await;
    for (task, step, suppressed) in [
        (foreign.guid.as_str(), foreign.steps[1].as_str(), 0),
        (&unknown_guid(), &unknown_guid(), 0),
        (&own.guid.to_uppercase(), &own.steps[1].to_uppercase(), 3),
    ] {
        let by_task = Suppression::default().with(|it| it.task = task.to_owned());
        let by_step = Suppression::default().with(|it| it.step = step.to_owned());
        let request = ValidateTaskRequest {
            options: Some(
                ValidationOptions::default().with(|it| it.suppress = vec![by_task, by_step]),
            ),
            ..validation_of(&own.guid)
        };
        let response = client.validated(request).await;
        assert_eq!(counts(&response)[3], suppressed);
    }
}

#[apply(on_both_databases)]
async fn counts_are_those_of_the_whole_guide(client: Client) {
    let made = client.imported(flawed()).await;
    let first = validation_of(&made.guid).with(|it| it.page_size = 1);
    let response = client.validated(first).await;
    assert_eq!(response.findings.len(), 1);
    assert_eq!(counts(&response), [1, 1, 1, 0]);
}

/// 3,040 steps without their translations into 100 languages.
#[apply(on_one_database)]
async fn findings_beyond_300_000_are_counted_and_not_suppressed(client: Client) {
    let mut many = named("Many", &"info Look\n".repeat(3_040));
    let task = many.task.as_mut().expect("a task");
    for language in 0..100 {
        let name = task_translation("Viele");
        task.translations.insert(format!("de-x-{language}"), name);
    }
    let missing = Suppression::default()
        .with(|it| it.rule = "translation/missing".to_owned())
        .with(|it| it.path = "document.*".to_owned());
    let request = ValidateTaskRequest {
        options: Some(ValidationOptions::default().with(|it| it.suppress = vec![missing])),
        ..validation_of_document(many)
    };
    let response = client.validated(request).await;
    let [errors, warnings, infos, suppressed] = counts(&response);
    assert!((299_900..=300_000).contains(&suppressed), "{suppressed}");
    let all = errors + warnings + infos + suppressed;
    assert!((304_000..304_100).contains(&all), "{all}");
}
