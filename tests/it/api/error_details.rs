//! Errors: their codes, reasons and details, their order and their limits.

use crate::prelude::*;

/// All texts of the error.
fn words(failure: &Failure) -> String {
    format!("{} {:?}", failure.message, failure.details)
}

#[apply(on_one_database)]
async fn at_most_fifty_violations_are_reported_and_the_cut_is_said(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let with_invalid_tags =
        |count: usize| information_step(&task, "tagged").with_tags(vec!["\0".to_owned(); count]);
    let failure = client.create_step(with_invalid_tags(3)).await.refused();
    assert_eq!(failure.violations().len(), 3);
    assert_eq!(failure.metadata().get("violations_shown"), None);

    let failure = client.create_step(with_invalid_tags(321)).await.refused();
    let violations = failure.violations();
    // Short paths and descriptions may still reach 4 KiB before they are fifty.
    assert!((20..=50).contains(&violations.len()), "{violations:?}");
    for (index, (field, _)) in violations.iter().enumerate() {
        assert_eq!(*field, format!("step.tags[{index}]"));
    }
    let metadata = failure.metadata();
    assert_eq!(metadata["violations_shown"], violations.len().to_string());
    assert_eq!(metadata["violations_total"], "321");

    let steps = vec![information_step(&Task::default(), "\0"); 60];
    let failure = client.import(document("Many", steps)).await.refused();
    let metadata = failure.metadata();
    assert_eq!(
        metadata["violations_shown"],
        failure.violations().len().to_string()
    );
    assert_eq!(metadata["violations_total"], "60");
    assert_eq!(client.all_tasks().await.len(), 1);
}

#[apply(on_one_database)]
async fn long_paths_do_not_overflow_the_details(client: Client) {
    let rows = (0..100).map(|n| (format!("{n}{}", "🔧".repeat(500)), task_translation("")));
    let sent = task("Overflowing").with_translations(rows.collect());
    let request = create_task_request(sent);
    let status = client.call(request).await.unwrap_err();
    assert!(status.details().len() < 6_000, "{}", status.details().len());
    assert!(status.message().len() < 2_000, "{}", status.message());
    let failure = Failure::from(status);
    failure.is(Code::InvalidArgument, "FIELD_INVALID");
    assert!(!failure.violations().is_empty());
}

#[apply(on_one_database)]
async fn no_error_repeats_long_input(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let secret = "s3cret".repeat(1_000);
    let sent = information_step(&task, &secret)
        .with_tags(vec![secret.clone()])
        .with_shorthand(secret.clone());
    let failure = client.create_step(sent).await.refused();
    assert!(!words(&failure).contains(&secret), "{failure:?}");
}

#[apply(on_one_database)]
async fn a_missing_choice_names_what_may_be_chosen(client: Client) {
    let request = ValidateTaskRequest::default();
    let failure = client.call(request).await.refused();
    let description = failure.description_of("source");
    assert_eq!(description, "needs `guid` or `document`");
    let empty = all_of(vec![DependencyNode::default()]);
    let sent = task("Guide").with_dependencies(empty);
    let failure = client.create_task(sent).await.refused();
    let description = failure.description_of("task.dependencies.nodes[0]");
    assert_eq!(description, "needs `condition` or `group`");
}

#[apply(on_one_database)]
async fn an_unknown_name_is_answered_with_the_allowed_ones(client: Client) {
    let sent = task("Guide").with_roles(vec![4]);
    let failure = client.create_task(sent).await.refused();
    let description = failure.description_of("task.roles[0]");
    for level in ["ACCESS_LEVEL_USER (0)", "ACCESS_LEVEL_USER3 (8)"] {
        assert!(description.contains(level), "{level}: {description}");
    }
    let rules = ["step/unreachabel", "nothing/alike"]
        .map(|rule| Suppression::default().with(|it| it.rule = rule.to_owned()));
    let options = ValidationOptions::default().with(|it| it.suppress = rules.to_vec());
    let request =
        validation_of_document(document("Guide", Vec::new())).with(|it| it.options = Some(options));
    let failure = client.call(request).await.refused();
    for (path, expected) in [
        (
            "options.suppress[0].rule",
            "is not the id of a rule; did you mean `step/unreachable`?",
        ),
        (
            "options.suppress[1].rule",
            "is not the id of a rule: see ListRules",
        ),
    ] {
        assert_eq!(failure.description_of(path), expected);
    }
}
