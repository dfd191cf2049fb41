//! More calls than the server can serve.

use std::time::{Duration, Instant};

use super::{
    cores::on_separate_cores,
    prelude::*,
    request_generator::{Calls, Rate, RequestGenerator},
};
use crate::{health::Health, kit::sample};

on_both_databases![measuring: four_times_the_load_is_served_as_well_as_one_time];

const DEADLINE: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 16;
/// The most time that a health check may take.
const MAX_HEALTH_TIME: Duration = Duration::from_millis(100);
/// The most time from a response to its line in the log, on a busy machine.
const MAX_LOG_DELAY: Duration = Duration::from_millis(500);

/// The calls: a task is read with its steps, then one of the steps, and another task is
/// created.
async fn calls(client: &Client) -> Calls {
    let task = client.given_task(task("Busy")).await;
    let mut guid = String::new();
    for n in 0..20 {
        let step = Step {
            body: Some("x".repeat(1024)),
            ..information_step(&task, &format!("Step {n}"))
        };
        guid = client.given_step(step).await.guid;
    }
    let open = GetTaskRequest {
        guid: task.guid.clone(),
    };
    let steps = ListStepsRequest {
        task: task.guid,
        expand: vec!["body".to_owned()],
        ..ListStepsRequest::default()
    };
    let write = CreateTaskRequest {
        task: Some(sample::task("Written")),
        ..CreateTaskRequest::default()
    };
    Calls {
        account: client.account().to_owned(),
        timeout: DEADLINE,
        kinds: vec![
            ("TaskService/GetTask", framed(&open)),
            ("StepService/ListSteps", framed(&steps)),
            ("StepService/GetStep", framed(&GetStepRequest { guid })),
            ("TaskService/CreateTask", framed(&write)),
        ],
    }
}

async fn four_times_the_load_is_served_as_well_as_one_time(database: TestDatabase) {
    let (service, cores) = match is_full() {
        true => on_separate_cores(|| database.serve()),
        false => (database.serve(), None),
    };
    let client = service.client();
    let calls = calls(&client).await;
    let mut generator = RequestGenerator::open(service.address(), CONNECTIONS, calls).await;
    let parallel = Rate::Parallel(64 / CONNECTIONS);
    let time = short_or_full(Duration::from_secs(1), Duration::from_secs(15));
    generator.run(parallel, time / 2).await;
    let alone = generator.run(parallel, time).await;
    assert_eq!(alone.refused, 0, "this is not too much yet");
    let peak = f64::from(alone.served) / time.as_secs_f64();

    let time = short_or_full(Duration::from_secs(2), Duration::from_secs(60));
    let health = Health::of(service.address());
    let health = tokio::spawn(async move { health.check_time_p99(time).await });
    let other = tokio::spawn(call_beside_the_load(client, time));
    let each = 4.0 * peak / CONNECTIONS as f64;
    let offered = generator.run(Rate::PerSecond(each), time).await;
    let goodput = f64::from(offered.served) / time.as_secs_f64();
    let health = health.await.expect("health is answered");
    let refusals = other.await.expect("proper responses");
    service.print(&format!(
        "{peak:.0} a second at most; of four times that {goodput:.0} a second served, \
         {offered:?}; health in {health:?} (p99), {cores:?}; {}",
        service.memory()
    ));
    let (least, health_max) = short_or_full((0.1, WAIT_TIMEOUT), (0.8, MAX_HEALTH_TIME));
    assert!(
        goodput >= least * peak,
        "{goodput:.0} of {peak:.0} a second"
    );
    assert!(offered.refused > 0, "nothing is refused");
    assert!(!is_full() || refusals > 0, "no other client is refused");
    assert!(health <= health_max, "{health:?}");
    no_call_succeeded_late(&service.process().log());
}

/// Makes calls beside the load, whose responses are checked. How many were refusals.
async fn call_beside_the_load(client: Client, time: Duration) -> usize {
    let started = Instant::now();
    let mut refusals = 0;
    while started.elapsed() < time {
        match client.create_task(task("Beside the load")).await {
            Ok(_) => {}
            Err(status) => {
                is_overloaded(&status);
                refusals += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    refusals
}

/// Asserts by the log of the server that no call succeeded after its deadline.
fn no_call_succeeded_late(log: &str) {
    let mut calls = 0;
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        if line["message"] == "call" && line["code"] == "OK" {
            let took = Duration::from_micros(line["duration_us"].as_u64().expect("a number"));
            assert!(took <= DEADLINE + MAX_LOG_DELAY, "{line}");
            calls += 1;
        }
    }
    assert!(calls > 0, "no call is logged");
}
