//! The errors about refused mask paths. `tests/calls.json` lists which paths are refused.

use crate::kit::prelude::*;

async fn refusal(client: &Client, mask: &[&str]) -> Failure {
    let task = client.given_task(full_task()).await;
    let update = task_of(&task.guid).named("Never");
    let failure = client.update_task(update, mask).await.refused();
    assert_eq!(client.get_task(&task.guid).await.accepted(), task);
    failure
}

async fn step_refusal(client: &Client, mask: &[&str]) -> Failure {
    let task = client.given_task(task("Guide")).await;
    let step = client.given_step(full_step(&task)).await;
    let failure = client.update_step(step.clone(), mask).await.refused();
    assert_eq!(client.get_step(&step.guid).await.accepted(), step);
    failure
}

#[apply(on_one_database)]
async fn the_path_that_was_probably_meant_is_named(client: Client) {
    for (path, meant) in [
        ("translation.de", "; did you mean `translations.LANGUAGE`?"),
        (
            // In camel case, and misspelled.
            "dependencySorthand",
            "; did you mean `dependency_shorthand`? An update ignores it.",
        ),
        (
            "productId",
            "; did you mean `product_id`? An update ignores it.",
        ),
        ("Published", "; did you mean `published`?"),
        ("name,roles", "send one path per element"),
    ] {
        let failure = refusal(&client, &[path]).await;
        failure.violates(&[("update_mask.paths[0]", "MASK_PATH_UNKNOWN")]);
        let description = failure.description();
        assert!(description.contains(meant), "{path}: {description}");
    }
    let failure = step_refusal(&client, &["translations.de.feedbackConfig"]).await;
    let description = failure.description();
    assert!(
        description.contains("did you mean `feedback_config`?"),
        "{description}"
    );
}

#[apply(on_one_database)]
async fn an_unknown_path_is_answered_with_the_known_ones(client: Client) {
    let descriptions = |failure: Failure| failure.description().to_owned();
    let task = descriptions(refusal(&client, &["nome"]).await);
    let meant = "is not a path that this mask may name; did you mean `name`? ";
    assert!(task.starts_with(meant), "{task}");
    let of_translation = descriptions(refusal(&client, &["translations.de.nome"]).await);
    assert!(of_translation.starts_with(meant), "{of_translation}");
    let unlike = descriptions(refusal(&client, &["owner"]).await);
    assert!(!unlike.contains("meant"), "{unlike}");
    for field in ["dependencies", "name", "published", "roles", "translations"] {
        assert!(task.contains(field), "{field}: {task}");
    }
    let step = descriptions(step_refusal(&client, &["nome"]).await);
    for field in ["body", "feedback_config", "subtask_pid", "title"] {
        assert!(step.contains(field), "{field}: {step}");
    }
    let translation = descriptions(step_refusal(&client, &["translations.de.nome"]).await);
    assert!(
        translation.ends_with("it may be body, feedback_config, instructions, locked, title"),
        "{translation}"
    );
}
