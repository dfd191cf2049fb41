//! Memory for large messages, and for small ones that ask for much: bounded while they are handled,
//! and released afterwards.

use std::time::Duration;

use bytes::Bytes;

use super::{CallBytes, prelude::*};
use crate::kit::server::Setting;

/// For calls that take turns, which is slow in a debug build.
const PATIENT: Setting = ("EXPERTISE_REQUEST_TIMEOUT", "600s");
/// What a server may hold after large messages, and how soon.
const AFTERWARDS: (u64, Duration) = (200 * MIB, Duration::from_secs(30));

/// How many clients send bodies of so many bytes at once.
fn bodies() -> (usize, usize) {
    short_or_full((48, 2_000_000), (64, 16_000_000))
}

/// Settings of a server that refuses some of these bodies.
fn settings_for_bodies() -> &'static [Setting<'static>] {
    const SMALL: [Setting; 2] = [
        ("EXPERTISE_MAX_INFLIGHT_BYTES", "25165824"),
        ("EXPERTISE_MAX_MESSAGE_BYTES", "25165824"),
    ];
    short_or_full(&SMALL, &[])
}

/// A body that a database cannot compress much. One above 16 MB has characters of four
/// bytes, so that it keeps the limit of code points.
fn body(bytes: usize) -> String {
    let mut seed = 1_u64;
    let (first, width) = match bytes {
        ..=16_000_000 => ('a', 1),
        _ => ('🌀', 4),
    };
    let letter = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let letter = u32::from(first) + (seed >> 33) as u32 % 26;
        char::from_u32(letter).expect("a letter")
    };
    (0..bytes / width).map(letter).collect()
}

#[track_caller]
fn has_body(step: Option<Step>, body: &str) {
    let found = step.expect("a step").body;
    assert!(found.as_deref() == Some(body), "another body");
}

#[apply(on_both_databases)]
async fn large_writes_at_once_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(settings_for_bodies());
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let (clients, bytes) = bodies();
    let body = body(bytes);
    let step = information_step(&task, "Large").with_body(&body);
    let calls = vec![call(&create_step_request(step)); clients];
    let mut done = done_within_memory(&mut service, client.account(), calls.clone()).await;
    // What one batch leaves behind must not add up.
    for _ in 1..short_or_full(2, 3) {
        done.extend(done_at_once(&service, client.account(), calls.clone()).await);
    }
    service.sinks_below(AFTERWARDS.0, AFTERWARDS.1).await;
    let made = done
        .iter()
        .filter_map(|it| it.message::<CreateStepResponse>().step);
    let mut made: Vec<String> = made.map(|step| step.guid).collect();
    let mut listed = client.step_order(&task.guid).await;
    made.sort();
    listed.sort();
    assert_eq!(made, listed);
    for guid in made {
        has_body(client.get_step(&guid).await.ok(), &body);
    }
}

#[apply(on_both_databases)]
async fn large_reads_at_once_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(settings_for_bodies());
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let (clients, bytes) = bodies();
    let body = body(bytes);
    let step = information_step(&task, "Large").with_body(&body);
    let guid = client.given_step(step).await.guid;
    let calls = vec![call(&GetStepRequest { guid }); clients];
    for response in done_within_memory(&mut service, client.account(), calls).await {
        has_body(response.message::<GetStepResponse>().step, &body);
    }
    service.sinks_below(AFTERWARDS.0, AFTERWARDS.1).await;
}

/// Pages with the largest body that a step may have.
#[apply(on_both_databases)]
async fn large_pages_at_once_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve();
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let body = body(63_600_000);
    let step = information_step(&task, "Large").with_body(&body);
    client.given_step(step).await;
    let request = list_steps_of(&task.guid).with(|it| it.expand = vec!["body".to_owned()]);
    let calls = vec![call(&request); 7];
    for response in done_within_memory(&mut service, client.account(), calls).await {
        has_body(response.message::<ListStepsResponse>().steps.pop(), &body);
    }
    service.sinks_below(AFTERWARDS.0, AFTERWARDS.1).await;
}

/// Many small requests at once, each for a large step of its own: almost as many as there are slots
/// for writes.
#[apply(on_both_databases)]
async fn small_writes_of_large_steps_at_once_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(&[PATIENT]);
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let body = body(29_000_000);
    let mut steps = Vec::new();
    for _ in 0..14 {
        let row = step_translation("Groß").with_body(&body);
        let step = information_step(&task, "Large").with_body(&body);
        let step = client.given_step(step.translated("de", row)).await;
        steps.push(step.guid);
    }
    let update = |guid: &String| {
        call(&UpdateStepRequest {
            step: Some(step_of(guid).titled("Changed")),
            update_mask: field_mask(&["title"]),
            validate_only: false,
        })
    };
    let calls = steps.iter().map(update).collect();
    for response in done_within_memory(&mut service, client.account(), calls).await {
        let step = response.message::<UpdateStepResponse>().step;
        let step = step.expect("a step");
        assert_eq!(step.title, "Changed");
        let translated = step.translations["de"].body.as_deref();
        assert!(translated == Some(&*body), "another translated body");
        has_body(Some(step), &body);
    }
    let delete = |guid: &String| {
        call(&DeleteStepRequest {
            guid: guid.clone(),
            etag: String::new(),
        })
    };
    let calls: Vec<CallBytes> = steps.iter().map(delete).collect();
    let done = done_within_memory(&mut service, client.account(), calls).await;
    // It reads no body, but SQLite copies each to the deleted steps within the process.
    service.stayed_within(150 * MIB);
    assert_eq!(done.len(), steps.len(), "all were deleted");
    assert_eq!(client.step_order(&task.guid).await, [""; 0]);
}

/// Messages that are small and take a hundred times their size when they are decoded.
#[apply(measured_on_one_database)]
async fn small_messages_of_many_elements_at_once_stay_within_memory(database: TestDatabase) {
    // The elements of one request take little less than three times the largest message.
    let accepted = short_or_full(350_000, 1_050_000);
    let service = database.serve_with(settings_for_bodies());
    let client = service.client();
    let empty_elements = |count: usize| {
        let message = [0x0a, 0].repeat(count);
        CallBytes {
            method: "TranslationService/WriteTranslations",
            message: Bytes::from([&prefix(0, message.len()), &message[..]].concat()),
        }
    };
    let calls = [empty_elements(accepted), empty_elements(2 * accepted)];
    let calls = calls.iter().cycle().take(bodies().0).cloned().collect();
    let (mut decoded, mut refused) = (0, 0);
    for response in call_at_once(&service, &[("x-account-id", client.account())], calls).await {
        match Failure::from(response.status()).reason() {
            "TOO_MANY_ELEMENTS" => decoded += 1,
            "MESSAGE_TOO_LARGE" => refused += 1,
            _ => is_overloaded(&response.status()),
        }
    }
    service.print(&format!(
        "{decoded} were decoded, {refused} refused; {}",
        service.memory()
    ));
    assert!(decoded > 0 && refused > 0, "{decoded} {refused}");
    service.stayed_within_its_promise();
    service.sinks_below(AFTERWARDS.0, AFTERWARDS.1).await;
}

/// Conditions on an observation, with targets of so many bytes.
fn large_conditions(count: usize, bytes: usize, path: &str) -> DependencyGroup {
    let long = |n: usize| {
        comparison(Condition {
            variable: "n".to_owned(),
            operator: "=".to_owned(),
            targets: vec![text(&format!("{n}{}", "x".repeat(bytes)))],
            path: path.to_owned(),
        })
    };
    all_of((0..count).map(long).collect())
}

#[apply(on_both_databases)]
async fn large_tasks_at_once_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(&[PATIENT]);
    let client = service.client();
    let conditions = large_conditions(short_or_full(300, 1_000), 60_000, "");
    let large = task("Large").with_dependencies(conditions);
    let guid = client.given_task(large).await.guid;
    let update = UpdateTaskRequest {
        task: Some(task_of(&guid).with_published(0)),
        update_mask: field_mask(&["published"]),
        ..UpdateTaskRequest::default()
    };
    let references = ListReferencesRequest::default();
    for one in [
        call(&GetTaskRequest { guid: guid.clone() }),
        call(&ListTasksRequest::default()),
        call(&ExportTaskRequest { guid: guid.clone() }),
        call(&references.clone().with(|it| it.task = guid.clone())),
        call(&references.with(|it| it.variable = "n".to_owned())),
        call(&validation_of(&guid)),
        call(&update),
    ] {
        let calls = vec![one; short_or_full(16, 32)];
        done_within_memory(&mut service, client.account(), calls).await;
    }
}

#[apply(on_both_databases)]
async fn large_conditions_elsewhere_take_no_memory(database: TestDatabase) {
    let mut service = database.serve();
    let client = service.client();
    for _ in 0..short_or_full(5, 20) {
        let conditions = large_conditions(400, 50_000, "components.7");
        let large = task("Large").with_dependencies(conditions);
        client.given_task(large).await;
    }
    let asks = observation_asking(question("n", &["k0", "k1"]));
    let guide = client.imported(document("Guide", vec![asks])).await;
    let calls = vec![call(&validation_of(&guide.guid)); 4];
    let done = done_within_memory(&mut service, client.account(), calls).await;
    assert_eq!(done.len(), 4);
    service.stayed_within(100 * MIB);
}

/// An import that keeps all steps of a guide.
fn import_into(guide: &str) -> CallBytes {
    let document = document_of(guide, Vec::new());
    call(&import_of(document).with(|it| it.absent_steps = AbsentSteps::Keep.into()))
}

#[apply(on_both_databases)]
async fn imports_of_many_steps_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(&[PATIENT]);
    let client = service.client();
    let steps = document_step(StepType::Information, "s");
    let steps = vec![steps; short_or_full(60, 290)];
    let managed = |n: usize| answer_with(&format!("k{n}"), "v", document("Inner", steps.clone()));
    let values = (0..1_000).map(managed).collect();
    let guide = document("Guide", vec![observation_asking(linked_question(values))]);
    let calls = vec![call(&import_of(guide)); 3];
    let done = done_within_memory(&mut service, client.account(), calls).await;
    let imported = done[0].message::<ImportTaskResponse>().task;
    let calls = vec![import_into(&imported.expect("a task").guid); 8];
    done_within_memory(&mut service, client.account(), calls).await;
}

/// A step of half a megabyte takes sixteen in an import, as each list of its instruction has two
/// bytes.
#[apply(on_both_databases)]
async fn imports_into_guides_of_many_elements_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(&[PATIENT]);
    let client = service.client();
    let lists = serde_json::json!({ "a": vec![serde_json::json!([]); 250_000] });
    let mut guides = Vec::new();
    for steps in [20, short_or_full(40, 150)] {
        let guide = client.given_task(task("Guide")).await;
        let dense = step(&guide, StepType::Information, "Dense");
        let dense = dense.with_instructions(vec![object(lists.clone())]);
        for _ in 0..steps {
            client.given_step(dense.clone()).await;
        }
        guides.push(guide.guid);
    }
    let calls = vec![import_into(&guides[0]); 3];
    done_within_memory(&mut service, client.account(), calls).await;
    // The other one is too large.
    let calls = vec![import_into(&guides[1]); 3];
    for response in call_at_once(&service, &[("x-account-id", client.account())], calls).await {
        assert_eq!(response.status().code(), Code::ResourceExhausted);
    }
    service.stayed_within_its_promise();
}
