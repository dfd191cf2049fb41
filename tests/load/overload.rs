//! More calls than the server can serve.

use std::time::{Duration, Instant};

use expertise::proto::v1::*;
use tonic::transport::Endpoint;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    harness::{
        cores,
        prelude::*,
        sample,
        volley::{Calls, Pace, Volley},
        wire::framed,
    },
    memory::is_overloaded,
};

on_both_databases![four_times_the_load_is_served_as_well_as_one_time];

const DEADLINE: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 16;
/// What a busy machine may take from the end of an answer to its line in the log.
const SLACK: Duration = Duration::from_millis(500);

/// What is called: a guide is opened, one of its steps is looked at, another guide is
/// begun.
async fn calls(world: &World) -> Calls {
    let task = world.given_task(task("Busy")).await;
    let mut guid = String::new();
    for n in 0..20 {
        let step = Step {
            body: Some("x".repeat(1024)),
            ..note(&task, &format!("Step {n}"))
        };
        guid = world.given_step(step).await.guid;
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
        account: world.account().to_owned(),
        timeout: DEADLINE,
        kinds: vec![
            ("TaskService/GetTask", framed(&open)),
            ("StepService/ListSteps", framed(&steps)),
            ("StepService/GetStep", framed(&GetStepRequest { guid })),
            ("TaskService/CreateTask", framed(&write)),
        ],
    }
}

async fn four_times_the_load_is_served_as_well_as_one_time(place: Place) {
    let (service, parted) = match is_full() {
        true => cores::parted(|| place.serve()),
        false => (place.serve(), None),
    };
    let world = service.world();
    let calls = calls(&world).await;
    let mut volley = Volley::open(service.process().address(), CONNECTIONS, calls).await;
    let at_once = Pace::AtOnce(64 / CONNECTIONS);
    let time = short_or_full(Duration::from_secs(1), Duration::from_secs(15));
    volley.fire(at_once, time / 2).await;
    let alone = volley.fire(at_once, time).await;
    assert_eq!(alone.refused, 0, "it is not asked for too much yet");
    let peak = f64::from(alone.served) / time.as_secs_f64();

    let time = short_or_full(Duration::from_secs(2), Duration::from_secs(60));
    let health = tokio::spawn(health(service.process().address(), time));
    let one = tokio::spawn(one_of_many(world, time));
    let each = 4.0 * peak / CONNECTIONS as f64;
    let offered = volley.fire(Pace::ASecond(each), time).await;
    let goodput = f64::from(offered.served) / time.as_secs_f64();
    let health = health.await.expect("health answers");
    let refusals = one.await.expect("proper answers");
    service.note(&format!(
        "{peak:.0} a second at most; of four times that {goodput:.0} a second served, \
         {offered:?}; health in {health:?} (p99), {parted:?}; {}",
        service.memory()
    ));
    let (least, patience) = short_or_full((0.1, BOUND), (0.8, PROMPT));
    assert!(
        goodput >= least * peak,
        "{goodput:.0} of {peak:.0} a second"
    );
    assert!(offered.refused > 0, "it takes everything");
    assert!(!is_full() || refusals > 0, "nobody else is refused");
    assert!(health <= patience, "{health:?}");
    nothing_succeeded_late(&service.process().log());
}

/// A client among the others, whose answers are looked at. How many were refusals.
async fn one_of_many(world: World, time: Duration) -> usize {
    let begun = Instant::now();
    let mut refusals = 0;
    while begun.elapsed() < time {
        match world.create_task(task("One of many")).await {
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

/// What health may take.
const PROMPT: Duration = Duration::from_millis(100);

/// Asks for the health again and again; what the slowest in a hundred took.
async fn health(server: std::net::SocketAddr, time: Duration) -> Duration {
    let endpoint = Endpoint::from_shared(format!("http://{server}")).expect("an address");
    let mut client = HealthClient::new(endpoint.connect_lazy());
    let begun = Instant::now();
    let mut took = Vec::new();
    while begun.elapsed() < time {
        let asked = Instant::now();
        let answer = client.check(HealthCheckRequest::default()).await;
        assert_eq!(answer.expect("health").into_inner().status, 1);
        took.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took.sort();
    took[took.len() * 99 / 100]
}

/// As the server itself says in its log.
fn nothing_succeeded_late(log: &str) {
    let mut calls = 0;
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        if line["message"] == "call" && line["code"] == "OK" {
            let took = Duration::from_micros(line["duration_us"].as_u64().expect("a number"));
            assert!(took <= DEADLINE + SLACK, "{line}");
            calls += 1;
        }
    }
    assert!(calls > 0, "no call is logged");
}
