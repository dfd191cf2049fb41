//! More calls than the server can serve.

use std::{
    sync::Arc,
    thread::available_parallelism,
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use super::{CallBytes, prelude::*};
use crate::{health::Health, kit::sample};

const DEADLINE: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 16;
/// Calls under way on a connection: fewer than the server allows.
const MAX_STREAMS: usize = 250;
/// Callers that measure the capacity, each of which waits for its response.
const CALLERS: usize = 64;
/// How often new calls begin.
const TICK: Duration = Duration::from_millis(5);
/// The most time from a response to its line in the log, on a busy machine.
const MAX_LOG_DELAY: Duration = Duration::from_millis(500);

/// Connections of one account that make calls.
struct Load {
    connections: Vec<Http2Connection>,
    account: String,
    /// They are made in turn.
    calls: Vec<CallBytes>,
}

impl Load {
    /// Makes the n-th call; whether it was served. Without the deadline of the client's own the
    /// log shows what was served too late.
    async fn call(&self, n: usize) -> bool {
        let CallBytes { method, message } = &self.calls[n % self.calls.len()];
        let timeout = format!("{}m", DEADLINE.as_millis());
        let headers = [
            ("x-account-id", self.account.as_str()),
            ("grpc-timeout", &timeout),
        ];
        let connection = &self.connections[n % CONNECTIONS];
        let response = connection.try_call(method, &headers, message.clone()).await;
        response.expect("a response").status().code() == Code::Ok
    }

    /// Has [`CALLERS`] call for some time. Whether each call was served.
    async fn run_callers(self: &Arc<Self>, time: Duration) -> Vec<bool> {
        let end = Instant::now() + time;
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let load = Arc::clone(self);
            callers.spawn(async move {
                let mut served = Vec::new();
                let mut n = caller;
                while Instant::now() < end {
                    served.push(load.call(n).await);
                    // Another kind of call on the same connection.
                    n += CONNECTIONS + 1;
                }
                served
            });
        }
        callers.join_all().await.concat()
    }

    /// Begins so many calls a second for some time, without waiting for responses. Whether each was served.
    async fn run_at(self: &Arc<Self>, per_second: f64, time: Duration) -> Vec<bool> {
        let begun = Instant::now();
        let room = Arc::new(Semaphore::new(CONNECTIONS * MAX_STREAMS));
        let mut running = JoinSet::new();
        let mut served = Vec::new();
        let mut started = 0;
        while begun.elapsed() < time {
            let due = (begun.elapsed().as_secs_f64() * per_second) as usize;
            while started < due {
                // What has no room is sent later, or never.
                let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                    break;
                };
                let (load, n) = (Arc::clone(self), started);
                running.spawn(async move {
                    let served = load.call(n).await;
                    drop(permit);
                    served
                });
                started += 1;
            }
            sleep(TICK).await;
            while let Some(ended) = running.try_join_next() {
                served.push(ended.expect("a response"));
            }
        }
        served.extend(running.join_all().await);
        served
    }
}

/// The calls: a task is read with its steps, then one of the steps, and another task is
/// created.
async fn calls(client: &Client) -> Vec<CallBytes> {
    let task = client.given_task(task("Busy")).await;
    let mut guid = String::new();
    for n in 0..20 {
        let step = information_step(&task, &format!("Step {n}")).with_body("x".repeat(1024));
        guid = client.given_step(step).await.guid;
    }
    let open = GetTaskRequest {
        guid: task.guid.clone(),
    };
    let steps = list_steps_of(&task.guid).with(|it| it.expand = vec!["body".to_owned()]);
    vec![
        call(&open),
        call(&steps),
        call(&GetStepRequest { guid }),
        call(&create_task_request(sample::task("Written"))),
    ]
}

#[apply(on_both_databases)]
async fn a_part_of_four_times_the_load_is_served_in_time(database: TestDatabase) {
    let service = database.serve();
    let client = service.client();
    let mut load = Load {
        connections: Vec::new(),
        account: client.account().to_owned(),
        calls: calls(&client).await,
    };
    for _ in 0..CONNECTIONS {
        load.connections.push(service.connect().await);
    }
    let load = Arc::new(load);
    let time = short_or_full(Duration::from_secs(1), Duration::from_secs(15));
    load.run_callers(time / 2).await;
    let alone = load.run_callers(time).await;
    assert!(!alone.contains(&false), "this is not too much yet");
    let peak = alone.len() as f64 / time.as_secs_f64();

    let time = short_or_full(Duration::from_secs(2), Duration::from_secs(60));
    let health = Health::of(service.address());
    let health = tokio::spawn(async move { health.check_time_p99(time).await });
    let other = tokio::spawn(call_beside_the_load(client, time));
    let offered = load.run_at(4.0 * peak, time).await;
    let served = offered.iter().filter(|served| **served).count();
    let goodput = served as f64 / time.as_secs_f64();
    let health = health.await.expect("health is answered");
    let refusals = other.await.expect("proper responses");
    service.print(&format!(
        "{peak:.0} a second at most; of four times that {goodput:.0} a second served, \
         {served} of {}; health in {health:?} (p99); {}",
        offered.len(),
        service.memory()
    ));
    // On few cores, making and refusing tens of thousands of calls takes most of the processor time. If
    // refused calls waited, or calls were served too late, almost no call would meet its deadline.
    let has_few_cores = available_parallelism().map_or(1, usize::from) < 8;
    let least = short_or_full(0.3, if has_few_cores { 0.2 } else { 0.8 });
    assert!(
        goodput >= least * peak,
        "{goodput:.0} of {peak:.0} a second"
    );
    // Debug builds take longer.
    let health_max = short_or_full(Duration::from_secs(1), Duration::from_millis(100));
    assert!(served < offered.len(), "nothing is refused");
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
        sleep(Duration::from_millis(20)).await;
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
