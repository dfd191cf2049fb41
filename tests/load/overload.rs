//! More calls than the server can serve.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use expertise::proto::v1::*;
use tokio::task::JoinSet;
use tonic::{Code, transport::Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::harness::{
    cores,
    prelude::*,
    sample,
    wire::{Call, framed},
};

on_both_databases![four_times_the_load_is_served_as_well_as_one_time];

const DEADLINE: Duration = Duration::from_secs(2);
const GRPC_TIMEOUT: (&str, &str) = ("grpc-timeout", "2S");
const CONNECTIONS: usize = 16;
/// How often new calls begin.
const TICK: Duration = Duration::from_millis(5);
/// What a busy machine may take from the end of an answer to its line in the log.
const SLACK: Duration = Duration::from_millis(500);

/// What is called: a small write after three reads.
struct Target {
    connections: Vec<Connection>,
    account: String,
    read: Bytes,
    write: Bytes,
}

/// What calls came to.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    served: u32,
    overloaded: u32,
    late: u32,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.served += other.served;
        self.overloaded += other.overloaded;
        self.late += other.late;
    }
}

impl Target {
    async fn of(service: &Service) -> Arc<Self> {
        let world = service.world();
        let task = world.given_task(task("Busy")).await;
        let step = world.given_step(note(&task, "Read")).await;
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(service.connect().await);
        }
        Arc::new(Self {
            connections,
            account: world.account().to_owned(),
            read: framed(&GetStepRequest { guid: step.guid }),
            write: framed(&CreateTaskRequest {
                task: Some(sample::task("Written")),
                ..CreateTaskRequest::default()
            }),
        })
    }

    async fn call(&self, n: usize) -> Tally {
        let (method, message) = match n % 4 {
            0 => ("TaskService/CreateTask", &self.write),
            _ => ("StepService/GetStep", &self.read),
        };
        let call = Call {
            method,
            account: &self.account,
            headers: &[GRPC_TIMEOUT],
        };
        let connection = &self.connections[n / 4 % CONNECTIONS];
        let answer = connection.call(call, message.clone()).await;
        let status = answer.expect("an answer").status;
        let mut tally = Tally::default();
        match status.code() {
            Code::Ok => tally.served = 1,
            Code::DeadlineExceeded => tally.late = 1,
            _ => {
                crate::memory::is_overloaded(&status);
                tally.overloaded = 1;
            }
        }
        tally
    }

    /// Calls as fast as answers come, from so many callers.
    async fn closed(self: &Arc<Self>, callers: usize, time: Duration) -> Tally {
        let mut calling = JoinSet::new();
        for first in 0..callers {
            let target = Arc::clone(self);
            calling.spawn(async move {
                let begun = Instant::now();
                let mut tally = Tally::default();
                let mut n = first;
                while begun.elapsed() < time {
                    tally.add(target.call(n).await);
                    n += 1;
                }
                tally
            });
        }
        sum(calling).await
    }

    /// Begins so many calls a second, whether or not others are answered.
    async fn open(self: &Arc<Self>, rate: f64, time: Duration) -> Tally {
        let begun = Instant::now();
        let mut calling = JoinSet::new();
        let mut tally = Tally::default();
        let mut next = 0;
        while begun.elapsed() < time {
            let due = (begun.elapsed().as_secs_f64() * rate) as usize;
            for n in next..due {
                let target = Arc::clone(self);
                calling.spawn(async move { target.call(n).await });
            }
            next = due;
            while let Some(ended) = calling.try_join_next() {
                tally.add(ended.expect("a call"));
            }
            tokio::time::sleep(TICK).await;
        }
        // What is begun in time counts.
        tally.add(sum(calling).await);
        tally
    }
}

async fn sum(mut calling: JoinSet<Tally>) -> Tally {
    let mut tally = Tally::default();
    while let Some(ended) = calling.join_next().await {
        tally.add(ended.expect("a call"));
    }
    tally
}

async fn four_times_the_load_is_served_as_well_as_one_time(place: Place) {
    let service = place.serve();
    let target = Target::of(&service).await;
    let time = short_or_full(Duration::from_secs(1), Duration::from_secs(15));
    // Connections to the database are opened before they are moved.
    target.closed(64, time / 4).await;
    let parted = is_full().then(cores::part).flatten();
    target.closed(64, time / 4).await;
    let alone = target.closed(64, time).await;
    let peak = f64::from(alone.served) / time.as_secs_f64();

    let time = short_or_full(Duration::from_secs(2), Duration::from_secs(60));
    let health = tokio::spawn(health(service.process().address(), time));
    let offered = target.open(4.0 * peak, time).await;
    let goodput = f64::from(offered.served) / time.as_secs_f64();
    let health = health.await.expect("health answers");
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
    assert!(offered.overloaded > 0, "it takes everything");
    assert!(health <= patience, "{health:?}");
    nothing_succeeded_late(&service.process().log());
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

/// As the server itself says in its log: the clients of the test are too busy to
/// see when an answer came.
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
