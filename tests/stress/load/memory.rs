//! Memory for large messages: bounded while they arrive, and released afterwards.

use std::time::Duration;

use bytes::Bytes;

use super::prelude::*;

/// How much is sent at once, and how much memory the server may have afterwards.
struct Amounts {
    clients: usize,
    bytes: usize,
    /// A server for large messages in small numbers, so that some are refused.
    settings: &'static [(&'static str, &'static str)],
    after: u64,
}

fn amounts() -> Amounts {
    short_or_full(
        Amounts {
            clients: 48,
            bytes: 2_000_000,
            settings: &[
                ("EXPERTISE_MAX_INFLIGHT_BYTES", "25165824"),
                ("EXPERTISE_MAX_MESSAGE_BYTES", "25165824"),
            ],
            after: 150 * MIB,
        },
        Amounts {
            clients: 64,
            bytes: 16_000_000,
            settings: &[],
            after: 200 * MIB,
        },
    )
}

/// The largest bodies that a step may have, for a few clients at once.
fn largest_bodies() -> Amounts {
    Amounts {
        clients: 7,
        bytes: 63_600_000,
        settings: &[],
        after: 200 * MIB,
    }
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

#[apply(on_both_databases)]
async fn large_writes_at_once_stay_within_memory(database: TestDatabase) {
    let amounts = amounts();
    let service = database.serve_with(amounts.settings);
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let body = body(amounts.bytes);
    let step = information_step(&task, "Large").with_body(body.clone());
    let request = framed(&CreateStepRequest {
        step: Some(step),
        ..CreateStepRequest::default()
    });
    service.print(&format!("before: {}", service.memory()));

    let mut made = Vec::new();
    for _ in 0..short_or_full(2, 3) {
        let method = "StepService/CreateStep";
        let account = client.account();
        let requests = vec![request.clone(); amounts.clients];
        let writing = call_at_once(&service, account, method, &[], requests);
        let responses = writing.await.join_all().await.into_iter();
        let steps = responses
            .filter(was_done)
            .filter_map(|response| response.message::<CreateStepResponse>().step);
        let written: Vec<String> = steps.map(|step| step.guid).collect();
        service.print(&format!("{} of {}", written.len(), amounts.clients));
        assert!(!written.is_empty(), "nothing was written");
        made.extend(written);
    }
    let peak = service.memory();
    let took = service.sinks_below(amounts.after, Duration::from_secs(30));
    let took = took.await;
    service.print(&format!("{peak}; after {took:?}: {}", service.memory()));
    service.stayed_within_its_promise();

    let listed = client.step_order(&task.guid).await;
    assert!(listed.len() == made.len() && made.iter().all(|guid| listed.contains(guid)));
    for guid in made {
        let read = client.get_step(&guid).await.accepted();
        assert!(read.body.as_deref() == Some(&*body), "as read");
    }
}

/// Whether a call was done; else it must have been refused as the server was full.
fn was_done(response: &Http2Response) -> bool {
    let done = response.status().code() == Code::Ok;
    if !done {
        is_overloaded(&response.status());
    }
    done
}

/// Whether a read was done. The database may also be out of connections.
fn was_read(response: &Http2Response) -> bool {
    response.status().code() != Code::Unavailable && was_done(response)
}

#[apply(on_both_databases)]
async fn large_reads_at_once_stay_within_memory(database: TestDatabase) {
    let read = Read {
        method: "StepService/GetStep",
        request: |step| {
            let guid = step.guid.clone();
            framed(&GetStepRequest { guid })
        },
        step: |response| response.message::<GetStepResponse>().step,
    };
    large_steps_at_once_stay_within_memory(database, amounts(), read).await;
}

#[apply(on_both_databases)]
async fn large_pages_at_once_stay_within_memory(database: TestDatabase) {
    let read = Read {
        method: "StepService/ListSteps",
        request: |step| {
            framed(&ListStepsRequest {
                task: step.task.clone(),
                expand: vec!["body".to_owned()],
                ..ListStepsRequest::default()
            })
        },
        step: |response| response.message::<ListStepsResponse>().steps.pop(),
    };
    large_steps_at_once_stay_within_memory(database, largest_bodies(), read).await;
}

/// A method that reads one step.
struct Read {
    method: &'static str,
    request: fn(&Step) -> Bytes,
    step: fn(&Http2Response) -> Option<Step>,
}

/// Many clients read one large step at once.
async fn large_steps_at_once_stay_within_memory(
    database: TestDatabase,
    amounts: Amounts,
    read: Read,
) {
    let service = database.serve_with(amounts.settings);
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let body = body(amounts.bytes);
    let step = information_step(&task, "Large").with_body(body.clone());
    let step = client.given_step(step).await;
    service.print(&format!("before: {}", service.memory()));
    let request = (read.request)(&step);
    let account = client.account();
    let requests = vec![request; amounts.clients];
    let reading = call_at_once(&service, account, read.method, &[], requests);
    let mut reading = reading.await;
    let mut responses = 0;
    while let Some(response) = reading.join_next().await {
        let response = response.expect("the call ends");
        if was_read(&response) {
            let step = (read.step)(&response).expect("a step");
            assert!(step.body.as_deref() == Some(&*body), "as read");
            responses += 1;
        }
    }
    service.print(&format!("{responses} were read; {}", service.memory()));
    assert!(responses > 0, "nothing was read");
    service.stayed_within_its_promise();
    service
        .sinks_below(amounts.after, Duration::from_secs(30))
        .await;
}

/// Bytes of each of the two bodies of a large step: its own, and that of its translation.
const LARGE_STEP_BODY_BYTES: usize = 29_000_000;
/// Writes of large steps at once: almost as many as there are slots for writes.
const LARGE_STEP_WRITES: usize = 14;

/// Many small requests at once, each for a large step of its own.
#[apply(on_both_databases)]
async fn small_writes_of_large_steps_at_once_stay_within_memory(database: TestDatabase) {
    // They take turns, which is slow in a debug build.
    let mut service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "600s")]);
    let client = service.client();
    let account = client.account().to_owned();
    let task = client.given_task(task("Large")).await;
    let body = body(LARGE_STEP_BODY_BYTES);
    let mut steps = Vec::new();
    for _ in 0..LARGE_STEP_WRITES {
        let row = step_translation("Groß").with_body(&body);
        let step = information_step(&task, "Large").with_body(&body);
        let step = client.given_step(step.translated("de", row)).await;
        steps.push(step.guid);
    }

    restart(&mut service);
    let update = |guid: &String| {
        framed(&UpdateStepRequest {
            step: Some(step_of(guid).titled("Changed")),
            update_mask: field_mask(&["title"]),
            validate_only: false,
        })
    };
    let requests = steps.iter().map(update).collect();
    let responses = call_and_print(&service, &account, "StepService/UpdateStep", requests).await;
    service.stayed_within_its_promise();
    let done: Vec<Http2Response> = responses.into_iter().filter(was_done).collect();
    service.print(&format!("{} of {LARGE_STEP_WRITES}", done.len()));
    assert!(!done.is_empty(), "nothing was written");
    for response in done {
        let step = response.message::<UpdateStepResponse>().step;
        let step = step.expect("a step");
        assert_eq!(step.title, "Changed");
        assert!(step.body.as_deref() == Some(&*body), "as answered");
        let translated = step.translations["de"].body.as_deref();
        assert!(translated == Some(&*body), "as answered");
    }

    restart(&mut service);
    let delete = |guid: &String| {
        framed(&DeleteStepRequest {
            guid: guid.clone(),
            etag: String::new(),
        })
    };
    let requests = steps.iter().map(delete).collect();
    let responses = call_and_print(&service, &account, "StepService/DeleteStep", requests).await;
    // It reads no body, but SQLite copies each to the deleted steps within the process.
    service.stayed_within(150 * MIB);
    assert!(responses.iter().all(was_done), "all were deleted");
    let client = service.client().with_account(&account);
    assert_eq!(client.step_order(&task.guid).await, [""; 0]);
}

/// Ends the server and starts it again, so that its peak is that of what follows.
fn restart(service: &mut Service) {
    service.terminate();
    service.restart();
}

/// Sends requests [at once](call_at_once), and prints the memory before and after.
async fn call_and_print(
    service: &Service,
    account: &str,
    method: &'static str,
    requests: Vec<Bytes>,
) -> Vec<Http2Response> {
    service.print(&format!("before {method}: {}", service.memory()));
    let calling = call_at_once(service, account, method, &[], requests).await;
    let responses = calling.join_all().await;
    service.print(&format!("after {method}: {}", service.memory()));
    responses
}

/// Messages that are small and take a hundred times their size when they are decoded.
#[apply(measured_on_one_database)]
async fn small_messages_of_many_elements_at_once_stay_within_memory(database: TestDatabase) {
    let amounts = amounts();
    // The elements of one request take little less than three times the largest message.
    let accepted = short_or_full(350_000, 1_050_000);
    let service = database.serve_with(amounts.settings);
    let client = service.client();
    client.given_task(task("Small")).await;
    let empty_elements = |count: usize| {
        let message = [0x0a, 0].repeat(count);
        Bytes::from([&prefix(0, message.len()), &message[..]].concat())
    };
    let requests = [empty_elements(accepted), empty_elements(2 * accepted)];
    let requests = requests.iter().cycle().take(amounts.clients).cloned();
    let method = "TranslationService/WriteTranslations";
    let calling = call_at_once(&service, client.account(), method, &[], requests.collect());
    let (mut decoded, mut refused) = (0, 0);
    for response in calling.await.join_all().await {
        let failure = Failure::from(response.status());
        match failure.reason() {
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
    service
        .sinks_below(amounts.after, Duration::from_secs(30))
        .await;
}
