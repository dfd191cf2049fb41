//! Small requests that ask for much: analyses, large tasks, imports of many steps, and streams
//! that are begun and never ended. What they take is bounded, and others are served meanwhile.

use std::{fmt::Display, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::prelude::*;
use crate::{
    frame_peer,
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
    for (name, guide) in costly_guides() {
        let validate = framed(&validation_of_document(guide.clone()));
        let preview = framed(&preview_of_document(guide));
        assert!(validate.len() <= 1_200_000, "{name}: {}", validate.len());
        for (method, request) in [
            ("AnalysisService/ValidateTask", validate),
            ("AnalysisService/PreviewTask", preview),
        ] {
            let before = service.process().processor_time();
            let (stop, checking) = check_health(&service).await;
            let account = client.account();
            let requests = vec![request; at_once];
            let responses = call_at_once(&service, account, method, &[], requests)
                .await
                .join_all()
                .await;
            drop(stop);
            let checks = checking.await.expect("the checks end");
            let used = service.process().processor_time() - before;
            // Those that many shadow have too many keys for a preview.
            let answers = [Code::Ok, Code::InvalidArgument];
            let done = responses
                .iter()
                .filter(|it| answers.contains(&it.status().code()))
                .count();
            service.print(&format!(
                "{name} {method}: {done} answered, {used:?}, {checks} checks; {}",
                service.memory()
            ));
            assert!(done > 0, "{name} {method}: {:?}", responses[0].status);
            // Health checks take processor time, too.
            assert!(
                used < cpu_limit * u32::try_from(at_once).expect("a number"),
                "{name} {method}: {used:?}"
            );
            assert!(checks > 10, "{name} {method}: {checks}");
            service.stayed_within_its_promise();
        }
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
    let calls = [
        (
            "TaskService/ExportTask",
            framed(&ExportTaskRequest { guid: task.clone() }),
        ),
        (
            "RevisionService/GetRevision",
            framed(&GetRevisionRequest {
                task: task.clone(),
                revision: revision.clone(),
                ..GetRevisionRequest::default()
            }),
        ),
        (
            "StepService/ListSteps",
            framed(&ListStepsRequest {
                task: task.clone(),
                page_size: 100,
                ..ListStepsRequest::default()
            }),
        ),
        (
            "RevisionService/CompareRevisions",
            framed(&CompareRevisionsRequest {
                task: task.clone(),
                base: revision,
                ..CompareRevisionsRequest::default()
            }),
        ),
        (
            "TaskService/ImportTask",
            framed(&ImportTaskRequest {
                document: Some(dense_guide()),
                ..ImportTaskRequest::default()
            }),
        ),
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
    for (method, request) in calls {
        for _ in 0..callers {
            let connection = service.connect().await;
            let (account, stopped) = (client.account().to_owned(), stopped.clone());
            let request = request.clone();
            calling.spawn(async move {
                let account = [("x-account-id", account.as_str())];
                let mut done = 0;
                // It fails when it is told to stop.
                while stopped.has_changed().is_ok() {
                    let call = connection.try_call(method, &account, request.clone());
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
    let calls = costly_guides().into_iter().flat_map(|(name, guide)| {
        let validate = framed(&validation_of_document(guide.clone()));
        let preview = framed(&preview_of_document(guide));
        [
            (name, "AnalysisService/ValidateTask", validate),
            (name, "AnalysisService/PreviewTask", preview),
        ]
    });
    for (name, method, request) in calls {
        let requests = vec![request; 30];
        let timeout = &[("grpc-timeout", "100m")];
        call_at_once(&service, client.account(), method, timeout, requests)
            .await
            .join_all()
            .await;
        // The permit of a call is held until its work has stopped.
        let before = service.process().processor_time();
        until(name, async || {
            let metrics = service.process().metrics_address();
            let (_, text) = http_get(metrics, "/metrics").await;
            text.contains("\nexpertise_calls_in_work 0\n").then_some(())
        })
        .await;
        let used = service.process().processor_time() - before;
        service.print(&format!("{name} {method}: {used:?} after the deadlines"));
        let limit = short_or_full(Duration::from_secs(3), Duration::from_millis(500));
        assert!(used < limit, "{name} {method}: {used:?}");
    }
}

#[apply(on_both_databases)]
async fn large_tasks_at_once_stay_within_memory(database: TestDatabase) {
    // They take turns, which is slow in a debug build.
    let mut service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "600s")]);
    let client = service.client();
    let account = client.account().to_owned();
    let long = |n: usize| compares("n", "=", one(format!("{n}{}", "x".repeat(60_000))));
    let conditions = all_of((0..short_or_full(300, 1_000)).map(long).collect());
    let large = client
        .given_task(task("Large").with_dependencies(conditions))
        .await;
    let guid = large.guid.clone();
    let update = UpdateTaskRequest {
        task: Some(task_of(&guid).with_published(0)),
        update_mask: field_mask(&["published"]),
        ..UpdateTaskRequest::default()
    };
    let of_task = ListReferencesRequest::default().with(|it| it.task = guid.clone());
    let of_variable = ListReferencesRequest::default().with(|it| it.variable = "n".to_owned());
    for (method, request) in [
        (
            "TaskService/GetTask",
            framed(&GetTaskRequest { guid: guid.clone() }),
        ),
        (
            "TaskService/ListTasks",
            framed(&ListTasksRequest::default()),
        ),
        (
            "TaskService/ExportTask",
            framed(&ExportTaskRequest { guid: guid.clone() }),
        ),
        ("AnalysisService/ListReferences", framed(&of_task)),
        ("AnalysisService/ListReferences", framed(&of_variable)),
        (
            "AnalysisService/ValidateTask",
            framed(&validation_of(&guid)),
        ),
        ("TaskService/UpdateTask", framed(&update)),
    ] {
        service.terminate();
        service.restart();
        let requests = vec![request; short_or_full(16, 32)];
        let responses = call_at_once(&service, &account, method, &[], requests)
            .await
            .join_all()
            .await;
        let done = responses.iter().filter(|it| it.status().code() == Code::Ok);
        let done = done.count();
        service.print(&format!("{method}: {done} done; {}", service.memory()));
        assert!(done > 0, "{method}: {:?}", responses[0].status);
        service.stayed_within_its_promise();
    }
}

#[apply(on_both_databases)]
async fn large_conditions_elsewhere_take_no_memory(database: TestDatabase) {
    let mut service = database.serve();
    let client = service.client();
    let long = |n: usize| {
        comparison(Condition {
            variable: "n".to_owned(),
            operator: "=".to_owned(),
            targets: vec![text(&format!("{n}{}", "x".repeat(50_000)))],
            path: "components.7".to_owned(),
        })
    };
    for _ in 0..short_or_full(5, 20) {
        let conditions = all_of((0..400).map(long).collect());
        client
            .given_task(task("Large").with_dependencies(conditions))
            .await;
    }
    let guide = client.given_guide(vec![asks("n", numbered("k", 2))]).await;
    let account = client.account().to_owned();
    service.terminate();
    service.restart();
    let requests = vec![framed(&validation_of(&guide.guid)); 4];
    let method = "AnalysisService/ValidateTask";
    let responses = call_at_once(&service, &account, method, &[], requests)
        .await
        .join_all()
        .await;
    assert!(responses.iter().all(|it| it.status().code() == Code::Ok));
    service.stayed_within(100 * MIB);
}

#[apply(on_both_databases)]
async fn imports_of_many_steps_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "600s")]);
    let client = service.client();
    let steps = short_or_full(60, 290);
    let managed = |n: usize| {
        let inner = document(
            "Inner",
            vec![document_step(StepType::Information, "s"); steps],
        );
        answer_with(&format!("k{n}"), "v", inner)
    };
    let values = (0..1_000).map(managed).collect();
    let guide = document("Guide", vec![observation_asking(linked_question(values))]);
    let account = client.account().to_owned();
    let request = framed(&ImportTaskRequest {
        document: Some(guide),
        ..ImportTaskRequest::default()
    });
    let method = "TaskService/ImportTask";
    let responses = call_at_once(&service, &account, method, &[], vec![request; 3])
        .await
        .join_all()
        .await;
    service.print(&service.memory());
    service.stayed_within_its_promise();
    let mut done = responses.iter().filter(|it| it.status().code() == Code::Ok);
    let imported = done.next().expect("an import");
    let imported = imported
        .message::<ImportTaskResponse>()
        .task
        .expect("a task");
    service.terminate();
    service.restart();
    let request = framed(&ImportTaskRequest {
        document: Some(document_of(&imported.guid, Vec::new())),
        absent_steps: AbsentSteps::Keep.into(),
        ..ImportTaskRequest::default()
    });
    let responses = call_at_once(&service, &account, method, &[], vec![request; 8])
        .await
        .join_all()
        .await;
    let done = responses
        .iter()
        .filter(|it| it.status().code() == Code::Ok)
        .count();
    service.print(&format!("{done} of 8 again; {}", service.memory()));
    assert!(done > 0, "{:?}", responses[0].status);
    service.stayed_within_its_promise();
}

/// A step of half a megabyte takes sixteen in an import, as each list of its instruction has two
/// bytes.
#[apply(on_both_databases)]
async fn imports_into_guides_of_many_elements_stay_within_memory(database: TestDatabase) {
    let mut service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "600s")]);
    let client = service.client();
    let account = client.account().to_owned();
    let lists = serde_json::json!({ "a": vec![serde_json::json!([]); 250_000] });
    let mut guides = Vec::new();
    for (steps, fits) in [(20, true), (short_or_full(40, 150), false)] {
        let guide = client.given_task(task("Guide")).await;
        let dense = step(&guide, StepType::Information, "Dense");
        let dense = dense.with_instructions(vec![object(lists.clone())]);
        for _ in 0..steps {
            client.given_step(dense.clone()).await;
        }
        guides.push((guide.guid, fits));
    }
    for (guide, fits) in guides {
        service.terminate();
        service.restart();
        let request = framed(&ImportTaskRequest {
            document: Some(document_of(&guide, Vec::new())),
            absent_steps: AbsentSteps::Keep.into(),
            ..ImportTaskRequest::default()
        });
        let method = "TaskService/ImportTask";
        let responses = call_at_once(&service, &account, method, &[], vec![request; 3])
            .await
            .join_all()
            .await;
        service.print(&format!("fits: {fits}; {}", service.memory()));
        let done = responses.iter().filter(|it| it.status().code() == Code::Ok);
        assert_eq!(done.count() > 0, fits, "{:?}", responses[0].status());
        for response in &responses {
            let code = response.status().code();
            assert!([Code::Ok, Code::ResourceExhausted].contains(&code));
        }
        service.stayed_within_its_promise();
    }
}

#[apply(measured_on_one_database)]
async fn streams_without_end_take_no_memory(database: TestDatabase) {
    let service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "5s")]);
    let before = service.process().resident_peak();
    let padding = "x".repeat(250_000);
    let padded: &[(&str, &str)] = &[("x-pad", &padding)];
    let body = [&prefix(0, 60_000)[..], &vec![0; 59_000]].concat();
    let check = "/grpc.health.v1.Health/Check";
    let reflect = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let streams = 250;
    for (method, headers, data) in [
        (check, padded, &[][..]),
        (check, &[], &body[..]),
        (check, &[], &[]),
        (reflect, padded, &[]),
        (reflect, &[], &body),
        (reflect, &[], &[]),
    ] {
        let mut peers = Vec::new();
        for _ in 0..short_or_full(4, 20) {
            let mut peer = FramePeer::with_preface(service.address()).await;
            for stream in (0..streams).map(frame_peer::stream) {
                let mut bytes = frame_peer::call(stream, method, headers);
                for piece in data.chunks(16_000) {
                    bytes.extend(frame_peer::data(stream, piece));
                }
                // The server may have closed the connection.
                let _ = peer.send(&bytes).await;
            }
            peers.push(peer);
        }
        for peer in &peers {
            until_true("the streams end", || {
                let received = peer.received();
                received.streams >= streams as usize || received.ended
            })
            .await;
        }
        service.print(&format!("{method}: {}", service.memory()));
        let grown = service.process().resident_peak() - before;
        assert!(grown < 100 * MIB, "{method}: {} MiB", grown / MIB);
    }
}
