//! Mask paths that are refused.

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

const PATH_1: &str = "update_mask.paths[1]";

#[apply(on_one_database)]
async fn a_path_that_names_no_field_of_a_task_is_refused_at_its_place(client: Client) {
    for (paths, reason) in [
        // No field of the message.
        (
            &[
                "nome",
                "Name",
                "task.name",
                "",
                " name",
                "title",
                "translationsde",
            ][..],
            "MASK_PATH_UNKNOWN",
        ),
        // Below a field other than translations.
        (
            &["dependencies.operator", "name.x", "created_ts.seconds"],
            "MASK_PATH_UNKNOWN",
        ),
        // An index of a list.
        (
            &["roles.0", "roles[0]", "dependencies.nodes[0].condition"],
            "MASK_PATH_UNKNOWN",
        ),
        // Too deep into translations.
        (
            &[
                "translations.de.title",
                "translations.de.name.x",
                "translations.de.",
                "translations.`de`name",
            ],
            "MASK_PATH_UNKNOWN",
        ),
        // No language.
        (
            &[
                "translations.",
                "translations.d_e",
                "translations.`de",
                "translations.``",
            ],
            "FIELD_INVALID",
        ),
    ] {
        for path in paths {
            refusal(&client, &["name", path])
                .await
                .violates(&[(PATH_1, reason)]);
        }
    }
}

#[apply(on_one_database)]
async fn a_path_that_names_no_field_of_a_step_is_refused_at_its_place(client: Client) {
    for path in [
        "name",
        "step.title",
        "feedbackConfig",
        "looping.alias",
        "r_data.x",
        "tags.0",
        "instructions[0]",
        "feedback_config[0].name",
        "feedback_config.0.name",
        "translations.de.name",
        "translations.de.feedback_config.name",
        "translations.de.instructions[0]",
    ] {
        let failure = step_refusal(&client, &["title", path]).await;
        failure.violates(&[(PATH_1, "MASK_PATH_UNKNOWN")]);
    }
}

#[apply(on_one_database)]
async fn a_star_with_other_paths_is_refused(client: Client) {
    for (mask, star) in [
        (["*", "name"], "update_mask.paths[0]"),
        (["name", "*"], "update_mask.paths[1]"),
    ] {
        let failure = refusal(&client, &mask).await;
        failure.violates(&[(star, "FIELD_INVALID")]);
    }
    refusal(&client, &["*", "*"]).await.violates(&[
        ("update_mask.paths[0]", "FIELD_INVALID"),
        ("update_mask.paths[1]", "FIELD_INVALID"),
    ]);
}

#[apply(on_one_database)]
async fn every_bad_path_is_reported(client: Client) {
    let failure = refusal(&client, &["x", "name", "roles.0"]).await;
    failure.violates(&[
        ("update_mask.paths[0]", "MASK_PATH_UNKNOWN"),
        ("update_mask.paths[2]", "MASK_PATH_UNKNOWN"),
    ]);
}

#[apply(on_one_database)]
async fn a_mask_has_1000_paths_at_most(client: Client) {
    let failure = refusal(&client, &["name"; 1_001]).await;
    failure.violates(&[("update_mask.paths", "TOO_MANY_ELEMENTS")]);
    let failure = step_refusal(&client, &["title"; 1_001]).await;
    failure.violates(&[("update_mask.paths", "TOO_MANY_ELEMENTS")]);
    let task = client.given_task(full_task()).await;
    let renamed = task_of(&task.guid).named("Renamed");
    let renamed = client.updated_task(renamed, &["name"; 1_000]).await;
    assert_eq!(renamed.name, "Renamed");
}

#[apply(on_one_database)]
async fn the_path_that_was_probably_meant_is_named(client: Client) {
    for (path, meant) in [
        (
            "translation.de",
            "; perhaps `translations.LANGUAGE` is meant.",
        ),
        (
            // In camel case, and misspelt.
            "dependencySorthand",
            "; perhaps `dependency_shorthand` is meant, which an update ignores.",
        ),
        (
            "productId",
            "; perhaps `product_id` is meant, which an update ignores.",
        ),
        ("Published", "; perhaps `published` is meant."),
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
        description.contains("perhaps `feedback_config` is meant"),
        "{description}"
    );
}

#[apply(on_one_database)]
async fn an_unknown_path_is_answered_with_the_known_ones(client: Client) {
    let descriptions = |failure: Failure| failure.description().to_owned();
    let task = descriptions(refusal(&client, &["nome"]).await);
    let meant = "is not a path that this mask may name; perhaps `name` is meant. ";
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
