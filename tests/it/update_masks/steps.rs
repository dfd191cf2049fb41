//! Update masks of steps.

use crate::kit::prelude::*;

on_both_databases![
    no_mask_updates_the_populated_fields,
    a_mask_leaves_everything_else_alone,
    masked_fields_that_are_unset_return_to_nothing,
    a_masked_title_that_is_unset_is_refused,
    a_masked_question_that_an_observation_needs_is_refused,
    a_star_returns_absent_fields_to_their_defaults,
    a_star_without_a_title_is_refused,
    the_merged_step_is_what_is_checked,
    fields_that_are_not_honored_are_listed,
    sending_back_what_was_read_changes_nothing,
    an_update_that_changes_nothing_keeps_etag_and_modified_ts,
];

async fn stored(client: &Client) -> Step {
    let task = client.given_task(task("Guide")).await;
    client.given_step(full_step(&task)).await
}

fn with_version_of(step: Step, updated: &Step) -> Step {
    Step {
        etag: updated.etag.clone(),
        modified_ts: updated.modified_ts,
        ..step
    }
}

async fn no_mask_updates_the_populated_fields(client: Client) {
    let before = stored(&client).await;
    let update = Step {
        title: "Renamed".to_owned(),
        tags: vec!["new".to_owned()],
        ..step_of(&before.guid)
    };
    let after = client.updated_step(update, &[]).await;
    let expected = Step {
        title: "Renamed".to_owned(),
        tags: vec!["new".to_owned()],
        ..with_version_of(before, &after)
    };
    assert_eq!(after, expected);
    assert_eq!(client.get_step(&after.guid).await.accepted(), after);
}

async fn a_mask_leaves_everything_else_alone(client: Client) {
    let before = stored(&client).await;
    let update = Step {
        title: "Renamed".to_owned(),
        body: Some("new".to_owned()),
        published: Some(9),
        ..step_of(&before.guid)
    };
    let after = client.updated_step(update, &["body"]).await;
    let expected = with_version_of(before, &after).with_body("new");
    assert_eq!(after, expected);
}

async fn masked_fields_that_are_unset_return_to_nothing(client: Client) {
    let before = stored(&client).await;
    let mask = [
        "body",
        "cost",
        "dependencies",
        "instructions",
        "looping",
        "parts",
        "published",
        "skills",
        "tags",
        "translations",
    ];
    let after = client.updated_step(step_of(&before.guid), &mask).await;
    let expected = Step {
        body: None,
        cost: Some(0),
        dependencies: None,
        dependency_shorthand: None,
        instructions: Vec::new(),
        looping: None,
        parts: Vec::new(),
        published: Some(1),
        skills: Vec::new(),
        tags: Vec::new(),
        translations: Default::default(),
        ..with_version_of(before, &after)
    };
    assert_eq!(after, expected);
}

async fn a_masked_title_that_is_unset_is_refused(client: Client) {
    let before = stored(&client).await;
    let updated = client.update_step(step_of(&before.guid), &["title"]).await;
    let failure = updated.refused();
    failure.violates(&[("step.title", "FIELD_REQUIRED")]);
}

async fn a_masked_question_that_an_observation_needs_is_refused(client: Client) {
    let before = stored(&client).await;
    let mask = ["feedback_config"];
    let updated = client.update_step(step_of(&before.guid), &mask).await;
    let failure = updated.refused();
    failure.violates(&[("step.feedback_config", "FIELD_REQUIRED")]);
}

async fn a_star_returns_absent_fields_to_their_defaults(client: Client) {
    let before = stored(&client).await;
    let update = Step {
        title: "Bare".to_owned(),
        feedback_config: before.feedback_config.clone(),
        ..step_of(&before.guid)
    };
    let after = client.updated_step(update, &["*"]).await;
    assert_eq!((after.cost, after.published), (Some(0), Some(1)));
    assert_eq!((&after.body, &after.looping), (&None, &None));
    assert_eq!(after.dependencies, None);
    assert!(after.translations.is_empty());
    assert!(after.parts.is_empty() && after.tags.is_empty());
}

async fn a_star_without_a_title_is_refused(client: Client) {
    let before = stored(&client).await;
    let update = Step {
        feedback_config: before.feedback_config.clone(),
        ..step_of(&before.guid)
    };
    let failure = client.update_step(update, &["*"]).await.refused();
    failure.violates(&[("step.title", "FIELD_REQUIRED")]);
}

async fn the_merged_step_is_what_is_checked(client: Client) {
    let observation = stored(&client).await;
    let update = step_of(&observation.guid).with_cost(2);
    let failure = client.update_step(update, &["cost"]).await.refused();
    failure.violates(&[("step.cost", "FIELD_OUT_OF_RANGE")]);
}

async fn fields_that_are_not_honored_are_listed(client: Client) {
    let before = stored(&client).await;
    let mut config = before.feedback_config.clone();
    config[0].values[0].link = unknown_guid();
    let update = Step {
        title: "Renamed".to_owned(),
        link: unknown_guid(),
        subtask_pid: Some(3),
        feedback_config: config,
        ..step_of(&before.guid)
    };
    let mask = ["title", "r_data", "account_id", "subtask_id"];
    let response = client.update_step(update, &mask).await.accepted();
    assert_eq!(
        response.ignored_paths,
        [
            "step.account_id",
            "step.feedback_config.values.link",
            "step.link",
            "step.r_data",
            "step.subtask_id",
            "step.subtask_pid",
        ]
    );
    assert_eq!(response.step.unwrap().title, "Renamed");
}

async fn sending_back_what_was_read_changes_nothing(client: Client) {
    let before = stored(&client).await;
    for mask in [&[][..], &["*"]] {
        let response = client.update_step(before.clone(), mask).await.accepted();
        assert_eq!(response.step.unwrap(), before);
    }
}

async fn an_update_that_changes_nothing_keeps_etag_and_modified_ts(client: Client) {
    let before = stored(&client).await;
    let same = Step {
        body: before.body.clone(),
        instructions: before.instructions.clone(),
        looping: before.looping.clone(),
        translations: before.translations.clone(),
        ..step_of(&before.guid)
    };
    for mask in [&[][..], &["body", "looping"], &["translations"]] {
        assert_eq!(client.updated_step(same.clone(), mask).await, before);
    }
}
