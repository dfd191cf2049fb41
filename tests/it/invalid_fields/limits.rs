//! Texts and lists at their limit, and one past it.

use crate::kit::prelude::*;

on_both_databases![
    lists_hold_1000_elements,
    elements_have_1000_code_points,
    a_questions_texts_have_1000_code_points,
    a_loops_alias_has_1000_code_points,
];

on_one_database![
    a_name_of_201_code_points_is_refused,
    a_title_of_401_code_points_is_refused,
];

async fn a_name_of_201_code_points_is_refused(client: Client) {
    for character in ["x", "🔧"] {
        let created = client.create_task(task(&character.repeat(201))).await;
        let failure = created.refused();
        failure.violates(&[("task.name", "FIELD_TOO_LONG")]);
    }
}

async fn a_title_of_401_code_points_is_refused(client: Client) {
    let task = client.given_task(task("Guide")).await;
    for character in ["x", "🔧"] {
        let created = client
            .create_step(information_step(&task, &character.repeat(401)))
            .await;
        let failure = created.refused();
        failure.violates(&[("step.title", "FIELD_TOO_LONG")]);
    }
}

async fn lists_hold_1000_elements(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sized = |count: usize| {
        let list = vec!["x".to_owned(); count];
        Step {
            parts: list.clone(),
            skills: list.clone(),
            tags: list,
            instructions: vec![object(serde_json::json!({"a": 1})); count],
            ..information_step(&task, "sized")
        }
    };
    let created = client.given_step(sized(1_000)).await;
    assert_eq!(created.parts.len(), 1_000);
    assert_eq!(created.instructions.len(), 1_000);
    let failure = client.create_step(sized(1_001)).await.refused();
    failure.violates(&[
        ("step.instructions", "TOO_MANY_ELEMENTS"),
        ("step.parts", "TOO_MANY_ELEMENTS"),
        ("step.skills", "TOO_MANY_ELEMENTS"),
        ("step.tags", "TOO_MANY_ELEMENTS"),
    ]);
}

async fn elements_have_1000_code_points(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sized = |length: usize| {
        let list = vec!["fine".to_owned(), "🔧".repeat(length)];
        Step {
            parts: list.clone(),
            skills: list.clone(),
            tags: list,
            ..information_step(&task, "sized")
        }
    };
    let created = client.given_step(sized(1_000)).await;
    assert_eq!(created.tags, sized(1_000).tags);
    let failure = client.create_step(sized(1_001)).await.refused();
    failure.violates(&[
        ("step.parts[1]", "FIELD_TOO_LONG"),
        ("step.skills[1]", "FIELD_TOO_LONG"),
        ("step.tags[1]", "FIELD_TOO_LONG"),
    ]);
}

async fn a_questions_texts_have_1000_code_points(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sized = |length: usize| {
        let text = "ü".repeat(length);
        Step {
            feedback_config: vec![question(&text, &[]).with_values(vec![answer(&text, &text)])],
            ..step(&task, StepType::Observation, "sized")
        }
    };
    let created = client.given_step(sized(1_000)).await;
    let (kept, sent) = (
        &created.feedback_config[0],
        &sized(1_000).feedback_config[0],
    );
    assert_eq!((&kept.name, &kept.values), (&sent.name, &sent.values));
    let failure = client.create_step(sized(1_001)).await.refused();
    failure.violates(&[
        ("step.feedback_config[0].name", "FIELD_TOO_LONG"),
        ("step.feedback_config[0].values[0].key", "FIELD_TOO_LONG"),
        ("step.feedback_config[0].values[0].value", "FIELD_TOO_LONG"),
    ]);
}

async fn a_loops_alias_has_1000_code_points(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sized = |length: usize| Step {
        looping: Some(Looping {
            alias: "ü".repeat(length),
            ..Looping::default()
        }),
        ..information_step(&task, "sized")
    };
    let created = client.given_step(sized(1_000)).await;
    assert_eq!(created.looping, sized(1_000).looping);
    let failure = client.create_step(sized(1_001)).await.refused();
    failure.violates(&[("step.looping.alias", "FIELD_TOO_LONG")]);
}
