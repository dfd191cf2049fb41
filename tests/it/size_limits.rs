//! What would not fit into the largest message is not stored, and not read to be returned.

use prost::Message;

use crate::kit::{
    prelude::*,
    store_server,
    stored_sizes::{stored_sizes, stored_sizes_are_those_of_the_content},
};

/// The largest message that is stored here, in bytes.
const LIMIT: usize = 64 * 1024;
const ACCOUNT: &str = "limits";

on_own_databases![
    a_task_too_large_to_return_is_refused,
    a_step_too_large_to_return_is_refused,
    a_task_takes_no_more_steps_than_it_can_be_returned_with,
    a_guide_too_large_to_export_can_be_read_step_by_step,
    a_guide_whose_texts_exceed_a_message_is_not_analysed,
    a_list_of_findings_says_which_guides_are_too_large_and_goes_on,
    a_guide_with_one_large_step_is_analysed_while_the_whole_fits,
    stored_sizes_follow_renames_and_automatic_translations,
    stored_sizes_follow_bodies_that_automatic_translations_replace,
    stored_sizes_are_close_upper_bounds_of_messages,
];

/// A client of a store with a small limit. Messages have the usual one, so that it is the
/// store that refuses.
async fn client(url: &str) -> Client {
    let store = store_server::open_with_limit(url, 2, LIMIT).await;
    store_server::serve_store(store, ACCOUNT).await
}

/// Conditions whose texts have so many bytes.
fn conditions_of(bytes: usize) -> DependencyGroup {
    let long = "x".repeat(1_000);
    all_of((0..bytes / 1_000).map(|_| when(&long, "=", "y")).collect())
}

async fn a_task_too_large_to_return_is_refused(url: String) {
    let client = client(&url).await;
    let too_large = || conditions_of(LIMIT - 5_000);
    let new = task("Large").with_dependencies(too_large());
    let failure = client.create_task(new).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(
        failure.message,
        "the task would be too large to return: its texts and elements take more than 65536 bytes"
    );
    assert_eq!(client.all_tasks().await, []);
    let small = client.given_task(task("Small")).await;
    let update = task_of(&small.guid).with_dependencies(too_large());
    let failure = client.update_task(update, &[]).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.get_task(&small.guid).await.accepted(), small);
}

async fn a_step_too_large_to_return_is_refused(url: String) {
    let client = client(&url).await;
    let task = client.given_task(task("Guide")).await;
    let half = "x".repeat(LIMIT / 2);
    let small = information_step(&task, "Half").with_body(&half);
    let small = client.given_step(small).await;
    let row = |body: &str| step_translation("Titel").with_body(body);
    let (large, step) = (half.repeat(2), information_step(&task, "Large"));
    for too_large in [
        step.clone().with_body(&large),
        step.clone().translated("de", row(&large)),
        step.clone().translated("de", row(&half)).with_body(&half),
        step.clone()
            .with_tags(vec!["x".repeat(1_000); LIMIT / 1_000]),
    ] {
        let update = too_large.clone().with_guid(&small.guid);
        for failure in [
            client.create_step(too_large).await.refused(),
            client.update_step(update, &[]).await.refused(),
        ] {
            failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
            assert_eq!(failure.metadata()["limit_bytes"], LIMIT.to_string());
        }
    }
    // With the body that it has.
    let update = step_of(&small.guid).translated("de", row(&half));
    let failure = client.update_step(update, &[]).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.steps_with_bodies(&task.guid).await, [small]);
}

/// This holds for a step that is created without locks and, as a subtask step, under them.
async fn a_task_takes_no_more_steps_than_it_can_be_returned_with(url: String) {
    let client = client(&url).await;
    let full = task("Full").with_dependencies(conditions_of(LIMIT - 10_000));
    let task = client.given_task(full).await;
    let mut count = 0;
    let refused = loop {
        match client.create_step(information_step(&task, "Step")).await {
            Ok(_) => count += 1,
            Err(refused) => break Err::<(), _>(refused),
        }
        assert!(count < LIMIT / 38, "no step was refused");
    };
    let failure = refused.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let refused = client.create_step(subtask(&task, &task)).await.refused();
    refused.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.step_order(&task.guid).await.len(), count);
}

async fn a_guide_too_large_to_export_can_be_read_step_by_step(url: String) {
    let client = client(&url).await;
    let task = client.given_task(task("Guide")).await;
    let body = "x".repeat(LIMIT / 4);
    for _ in 0..5 {
        let step = information_step(&task, "Step").with_body(&body);
        client.given_step(step).await;
    }
    let failure = client.export(&task.guid).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    for step in client.step_order(&task.guid).await {
        let step = client.get_step(&step).await.accepted();
        assert_eq!(step.body, Some(body.clone()));
    }
}

/// A rename changes subtask steps unread, and a translation changes sizes by a difference.
async fn stored_sizes_follow_renames_and_automatic_translations(url: String) {
    let client = client(&url).await;
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("x")).await;
    client.given_step(subtask(&guide, &other)).await;
    let renamed = task_of(&other.guid).named("x".repeat(100));
    client.updated_task(renamed, &["name"]).await;
    let work = client.translation_work(&["fr", "de"]).await;
    let items = work.iter().map(|item| automatic(item, "un texte"));
    client.write_translations(items.collect()).await.accepted();
    let store = store_server::open(&url, 1).await;
    stored_sizes_are_those_of_the_content(&store, &url, ACCOUNT).await;
}

async fn a_guide_whose_texts_exceed_a_message_is_not_analysed(url: String) {
    let client = client(&url).await;
    let task = client.given_task(task("Guide")).await;
    for _ in 0..3 {
        let step = information_step(&task, "Step").depending_on(conditions_of(30_000));
        client.given_step(step).await;
    }
    let failure = client.validate(validation_of(&task.guid)).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(
        failure.message,
        "what is read of the guide, all but bodies, is larger than 65536 bytes: split it into \
         several guides, or raise EXPERTISE_MAX_MESSAGE_BYTES of the server \
         (EXPERTISE_MAX_INFLIGHT_BYTES must be five times as large)"
    );
    let failure = client.export(&task.guid).await.refused();
    assert_eq!(
        failure.message,
        "the guide would be too large to return: its texts and elements take more than 65536 \
         bytes: list its steps page by page with ListSteps"
    );
}

/// One step may be far larger than the others, in whichever task of the guide it is.
async fn a_guide_with_one_large_step_is_analysed_while_the_whole_fits(url: String) {
    let client = client(&url).await;
    let large = |task: &Task| information_step(task, "Large").depending_on(conditions_of(30_000));
    let inner = client.given_task(task("Inner")).await;
    client.given_step(large(&inner)).await;
    client.given_step(information_step(&inner, "Small")).await;
    let outer = client.given_task(task("Outer")).await;
    for _ in 0..3 {
        client.given_step(information_step(&outer, "Small")).await;
    }
    client.given_step(large(&outer)).await;
    for task in [&inner, &outer] {
        client.validate(validation_of(&task.guid)).await.accepted();
    }
    let small = client.given_task(task("Small")).await;
    client.given_step(subtask(&small, &inner)).await;
    client.validate(validation_of(&small.guid)).await.accepted();
    client.given_step(subtask(&outer, &inner)).await;
    let failure = client.validate(validation_of(&outer.guid)).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
}

/// The second body is too large to be read and compared with the next one.
async fn stored_sizes_follow_bodies_that_automatic_translations_replace(url: String) {
    let (store, client) = store_server::serve(&url, 2).await;
    let guide = client.given_task(task("Guide")).await;
    let step = information_step(&guide, "Step").with_body("body");
    let step = client.given_step(step).await;
    let work = client.translation_work(&["fr"]).await;
    let work = work.iter().find(|work| work.guid == step.guid);
    let work = work.expect("work on the step");
    for bytes in [10, 2_000_000, 20] {
        let item = AutomaticTranslation {
            body: Some("x".repeat(bytes)),
            ..automatic(work, "un texte")
        };
        assert_eq!(client.written(item).await, TranslationResult::Written);
        stored_sizes_are_those_of_the_content(&store, &url, "store-server").await;
    }
}

/// Steps that have much of one field each.
fn steps_with_much_of_one_field(task: &Task) -> Vec<Step> {
    const COUNT: usize = 40;
    let names: Vec<String> = (0..COUNT).map(|n| format!("{n:060}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let texts = || {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let empty = || information_step(task, "Step");
    let members = || {
        let members = names
            .iter()
            .map(|name| ((*name).to_owned(), serde_json::json!([name, {"it": name}])));
        vec![object(serde_json::Value::Object(members.collect()))]
    };
    let asking = || vec![question(names[0], &names)];
    let observation = step(task, StepType::Observation, "Step");
    let translated = |translation: StepTranslation| Step {
        translations: [("de".to_owned(), translation)].into(),
        feedback_config: vec![question("Colour", &["red", "blue"])],
        ..observation.clone()
    };
    let short = || step_translation("kurz");
    let looping = |array, iterations| Looping {
        alias: "x".repeat(60),
        array: Some(value(array)),
        iterations: Some(value(iterations)),
    };
    vec![
        empty(),
        empty().titled("𝄞".repeat(200)),
        empty().with_body("x".repeat(9_000)),
        empty().depending_on(conditions_of(9_000)),
        Step {
            instructions: members(),
            ..empty()
        },
        Step {
            looping: Some(looping(serde_json::json!(names), serde_json::json!(1))),
            ..empty()
        },
        Step {
            looping: Some(looping(serde_json::json!([]), serde_json::json!(names))),
            ..empty()
        },
        Step {
            parts: texts(),
            ..empty()
        },
        Step {
            skills: texts(),
            ..empty()
        },
        empty().with_tags(texts()),
        Step {
            feedback_config: asking(),
            ..observation.clone()
        },
        translated(step_translation(&"𝄞".repeat(200))),
        translated(StepTranslation {
            body: Some("x".repeat(9_000)),
            ..short()
        }),
        translated(StepTranslation {
            instructions: members(),
            ..short()
        }),
        translated(StepTranslation {
            feedback_config: asking(),
            ..short()
        }),
    ]
}

/// Texts are counted exactly and their framing is rounded up, so that what is stored can
/// be returned and what can be returned is stored.
async fn stored_sizes_are_close_upper_bounds_of_messages(url: String) {
    let (_store, client) = store_server::serve(&url, 2).await;
    let long = "𝄞".repeat(200);
    let texts = [("de".to_owned(), task_translation(&long))];
    client.given_task(task(&long)).await;
    client
        .given_task(task("Needs").with_dependencies(conditions_of(9_000)))
        .await;
    client
        .given_task(task("Translated").with_translations(texts.into()))
        .await;
    let guide = client.given_task(task("Guide")).await;
    for step in steps_with_much_of_one_field(&guide) {
        client.given_step(step).await;
    }
    let [tasks, steps] = stored_sizes(&url, "store-server").await;
    let mut sizes = Vec::new();
    for (guid, stored) in tasks {
        let task = client.get_task(&guid.to_string()).await.accepted();
        let without_steps = Task {
            steps: Vec::new(),
            ..task
        };
        sizes.push((
            stored,
            without_steps.encoded_len(),
            format!("{without_steps:?}"),
        ));
    }
    for (guid, stored) in steps {
        let step = client.get_step(&guid.to_string()).await.accepted();
        sizes.push((stored, step.encoded_len(), format!("{step:?}")));
    }
    assert_eq!(sizes.len(), 19);
    for (stored, encoded, resource) in sizes {
        let stored = usize::try_from(stored).unwrap();
        // What has elements counts with the room that it has in memory.
        let room = [
            ("Struct {", 320),
            ("ListValue {", 64),
            ("DependencyGroup {", 176),
        ]
        .map(|(name, bytes)| resource.matches(name).count() * bytes);
        let close = encoded..=encoded + encoded / 2 + 600 + room.iter().sum::<usize>();
        assert!(
            close.contains(&stored),
            "{stored} for {encoded}: {resource}"
        );
    }
}

async fn a_list_of_findings_says_which_guides_are_too_large_and_goes_on(url: String) {
    let client = client(&url).await;
    let large = client.given_task(task("Large")).await;
    for _ in 0..3 {
        let step = information_step(&large, "Step").depending_on(conditions_of(30_000));
        client.given_step(step).await;
    }
    let small = client.given_task(task("Small")).await;
    let of_small = client.validated(validation_of(&small.guid)).await.findings;
    let first = client
        .findings(ListFindingsRequest::default())
        .await
        .accepted();
    let [finding] = first.findings.as_slice() else {
        panic!("{first:#?}");
    };
    assert_eq!(finding.rule, "analysis/too-large");
    assert_eq!(finding.task, large.guid);
    assert_eq!(fact(finding, "limit"), Some(text("bytes")));
    let request = ListFindingsRequest {
        page_token: first.next_page_token,
        ..ListFindingsRequest::default()
    };
    let second = client.findings(request).await.accepted();
    assert_eq!(
        (second.findings, second.next_page_token),
        (of_small, String::new())
    );
}

fn fact(finding: &Finding, name: &str) -> Option<prost_types::Value> {
    finding.facts.as_ref()?.fields.get(name).cloned()
}
