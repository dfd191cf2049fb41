//! Analyses and conversions that take much processor time: it is bounded, and others are served
//! meanwhile.

use std::{fmt::Display, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::{CallBytes, prelude::*};
use crate::{
    health::{Health, time_p99},
    kit::server::http_get,
};

/// An observation of a document.
fn asks(name: &str, keys: impl IntoIterator<Item = String>) -> Step {
    let values = keys.into_iter().map(|key| answer(&key, "v")).collect();
    observation_asking(question(name, &[]).with(|it| it.values = values))
}

fn needs(nodes: Vec<DependencyNode>) -> Step {
    document_step(StepType::Information, "Step").depending_on(all_of(nodes))
}

fn compares(
    name: &str,
    operator: &str,
    targets: impl IntoIterator<Item = String>,
) -> DependencyNode {
    comparison(Condition {
        variable: name.to_owned(),
        operator: operator.to_owned(),
        targets: targets.into_iter().map(|target| text(&target)).collect(),
        path: String::new(),
    })
}

fn numbered(text: impl Display, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{text}{number}"))
}

fn one(text: impl Into<String>) -> [String; 1] {
    [text.into()]
}

/// Guides of at most a megabyte, each of which took seconds or gigabytes.
fn costly_guides() -> Vec<(&'static str, TaskDocument)> {
    let long_keys = || numbered("k", 10).map(|key| key + &"x".repeat(990));
    let unknown_answers = || needs(vec![compares("n", "=", numbered("t", 1_000))]);
    let mut findings = vec![asks("n", long_keys())];
    findings.extend((0..80).map(|_| unknown_answers()));

    let keys = |observation: usize| numbered(format!("k{observation} "), 1_000);
    let mut comparisons: Vec<Step> = (0..60).map(|n| asks("n", keys(n))).collect();
    let unequal = vec![compares("n", "!=", one("z")); 1_000];
    comparisons.extend((0..20).map(|_| needs(unequal.clone())));

    let mut contradiction: Vec<DependencyNode> = numbered("k", 998)
        .map(|key| compares("n", "!=", one(key)))
        .collect();
    contradiction.extend(["k998", "k999"].map(|key| compares("n", "=", one(key))));
    let mut contradictions = vec![asks("n", numbered("k", 1_000))];
    contradictions.extend((0..19).map(|_| needs(contradiction.clone())));

    let translated = |step: usize| {
        let tags = (0..100).map(move |tag| format!("de-x-{:x}", 100 * step + tag));
        let mut step = document_step(StepType::Information, "Step");
        step.translations = tags.map(|tag| (tag, StepTranslation::default())).collect();
        step
    };
    let mut languages: Vec<Step> = (0..500).map(translated).collect();
    languages.extend((0..5_000).map(|_| document_step(StepType::Information, "Step")));

    let shadowing = |n| {
        let own = document("Own", vec![asks("components.7.n", one("a"))]);
        answer_with(&format!("k{n}"), "v", own)
    };
    let mut shadows: Vec<Step> = (0..50).map(|n| asks("n", keys(n))).collect();
    shadows.push(observation_asking(linked_question(
        (0..500).map(shadowing).collect(),
    )));

    vec![
        ("findings", document("Findings", findings)),
        ("comparisons", document("Comparisons", comparisons)),
        ("contradictions", document("Contradictions", contradictions)),
        ("languages", document("Languages", languages)),
        ("shadows", document("Shadows", shadows)),
    ]
}

/// Their validations and previews.
fn costly_calls() -> impl Iterator<Item = (String, CallBytes)> {
    costly_guides().into_iter().flat_map(|(name, guide)| {
        let validate = call(&validation_of_document(guide.clone()));
        let preview = call(&preview_of_document(guide));
        assert!(validate.message.len() <= 1_200_000, "{name}");
        [
            (format!("{name}, validated"), validate),
            (format!("{name}, previewed"), preview),
        ]
    })
}

/// Checks health until it is told to stop. Returns how often it was answered.
async fn check_health(service: &Service) -> (watch::Sender<()>, tokio::task::JoinHandle<usize>) {
    let (stop, mut stopped) = watch::channel(());
    let health = Health::of(service.address());
    let checking = tokio::spawn(async move {
        let mut answered = 0;
        loop {
            tokio::select! {
                _ = stopped.changed() => return answered,
                _ = health.status() => answered += 1,
            }
        }
    });
    (stop, checking)
}

#[apply(measured_on_one_database)]
async fn costly_analyses_leave_room_for_others(database: TestDatabase) {
    let service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "300s")]);
    let client = service.client();
    let at_once = short_or_full(2, 32);
    // A debug build is many times slower.
    let cpu_limit = short_or_full(Duration::from_secs(30), Duration::from_secs(2));
    for (name, one) in costly_calls() {
        let before = service.process().processor_time();
        let (stop, checking) = check_health(&service).await;
        let account = [("x-account-id", client.account())];
        let responses = call_at_once(&service, &account, vec![one; at_once]).await;
        drop(stop);
        let checks = checking.await.expect("the checks end");
        let used = service.process().processor_time() - before;
        // Those that many shadow have too many keys for a preview.
        let answers = [Code::Ok, Code::InvalidArgument];
        let done = responses.iter().map(Http2Response::status);
        let done = done.filter(|it| answers.contains(&it.code())).count();
        service.print(&format!(
            "{name}: {done} answered, {used:?}, {checks} checks; {}",
            service.memory()
        ));
        assert!(done > 0, "{name}: {:?}", responses[0].status);
        // Health checks take processor time, too.
        assert!(used < cpu_limit * at_once as u32, "{name}: {used:?}");
        assert!(checks > 10, "{name}: {checks}");
        service.stayed_within_its_promise();
    }
}

/// A guide of 1.8 MB, whose 420,000 elements take long to convert.
fn dense_guide() -> TaskDocument {
    let objects = serde_json::json!({ "a": vec![serde_json::json!({}); 70] });
    let dense = document_step(StepType::Information, "Dense");
    let dense = dense.with_instructions(vec![object(objects); 100]);
    document("Dense", vec![dense; 60])
}

#[apply(on_both_databases)]
async fn conversions_of_large_guides_leave_room_for_others(database: TestDatabase) {
    let service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "300s")]);
    let client = service.client();
    let task = client.imported(dense_guide()).await.guid;
    let revision = client.kept_revision(&task).await.revision.to_string();
    let revision_request = GetRevisionRequest {
        task: task.clone(),
        revision: revision.clone(),
        ..GetRevisionRequest::default()
    };
    let comparison = CompareRevisionsRequest {
        task: task.clone(),
        base: revision,
        ..CompareRevisionsRequest::default()
    };
    let calls = [
        call(&ExportTaskRequest { guid: task.clone() }),
        call(&revision_request),
        call(&list_steps_of(&task).with(|it| it.page_size = 100)),
        call(&comparison),
        call(&import_of(dense_guide())),
    ];
    let other = service.client();
    let read = other
        .given_task(crate::kit::sample::task("Other"))
        .await
        .guid;
    // A debug build takes longer.
    let (callers, time, health_max, read_max) = short_or_full(
        (2, 3, Duration::from_secs(1), Duration::from_secs(2)),
        (
            16,
            20,
            Duration::from_millis(50),
            Duration::from_millis(150),
        ),
    );
    let time = Duration::from_secs(time);
    let (stop, stopped) = watch::channel(());
    let mut calling = JoinSet::new();
    for CallBytes { method, message } in calls {
        for _ in 0..callers {
            let connection = service.connect().await;
            let (account, stopped) = (client.account().to_owned(), stopped.clone());
            let message = message.clone();
            calling.spawn(async move {
                let account = [("x-account-id", account.as_str())];
                let mut done = 0;
                // It fails when it is told to stop.
                while stopped.has_changed().is_ok() {
                    let call = connection.try_call(method, &account, message.clone());
                    let answer = call.await.expect("a response").status();
                    match answer.code() {
                        Code::Ok => done += 1,
                        _ => is_overloaded(&answer),
                    }
                }
                (method, done)
            });
        }
    }
    let health = Health::of(service.address());
    let (health, read) = tokio::join!(
        health.check_time_p99(time),
        time_p99(time, || async {
            other.get_task(&read).await.accepted();
        })
    );
    drop(stop);
    let mut served = std::collections::BTreeMap::new();
    for (method, done) in calling.join_all().await {
        *served.entry(method).or_default() += done;
    }
    service.print(&format!(
        "{served:?}; p99 of health {health:?}, of another account's reads {read:?}; {}",
        service.memory()
    ));
    assert!(served.values().all(|done: &u32| *done > 0), "{served:?}");
    assert!(
        health <= health_max && read <= read_max,
        "{health:?} {read:?}"
    );
    service.stayed_within_its_promise();
}

#[apply(measured_on_one_database)]
async fn analyses_end_with_their_deadlines(database: TestDatabase) {
    let service = database.serve_with(&[("EXPERTISE_METRICS_LISTEN", "127.0.0.1:0")]);
    let client = service.client();
    for (name, one) in costly_calls() {
        let headers = [("x-account-id", client.account()), ("grpc-timeout", "100m")];
        call_at_once(&service, &headers, vec![one; 30]).await;
        // The permit of a call is held until its work has stopped.
        let before = service.process().processor_time();
        until(&name, async || {
            let metrics = service.process().metrics_address();
            let (_, text) = http_get(metrics, "/metrics").await;
            text.contains("\nexpertise_calls_in_work 0\n").then_some(())
        })
        .await;
        let used = service.process().processor_time() - before;
        service.print(&format!("{name}: {used:?} after the deadlines"));
        let limit = short_or_full(Duration::from_secs(3), Duration::from_millis(500));
        assert!(used < limit, "{name}: {used:?}");
    }
}
