//! The service beside PostGraphile 4, which serves tables of PostgreSQL over GraphQL: the
//! same reads and writes on the same PostgreSQL, in turn.
//!
//! PostGraphile serves the floor's tables. It reads the same columns and inserts the same
//! row, and does none of the service's other work. h2load calls both, one request again
//! and again, as PostGraphile speaks HTTP/1.1 only.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};

use super::super::{
    compare::{Timing, median},
    fixture::{Fixture, IdSource},
    floor::{ACCOUNT, CreateMode},
    kit::{
        child::{EndSignal, SupervisedChild},
        deadline::poll_for,
        postgres::free_port,
    },
    load::Requests,
    requests,
    scratch::Scratch,
    table::Figure,
    testbed::{Kind, Program, Server, Testbed},
};

/// The name of this comparison on the command line.
pub const NAME: &str = "postgraphile";
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The columns of a step that both read.
const COLUMNS: &str = "guid task kind productId title cost published dependencies feedbackConfig \
                       instructions looping parts skills tags subtaskId subtaskPid link rData \
                       translations etag dirtyRecord createdTs modifiedTs";

/// Measures each call; only for PostgreSQL.
pub async fn measure(testbed: &Testbed, program: &Path, timing: Timing) -> Vec<Figure> {
    if testbed.kind() != Kind::Postgres {
        return Vec::new();
    }
    let service = Fixture::create(
        testbed,
        Program::Service,
        "postgraphile_service",
        IdSource::Server,
    );
    let (service, of_service) = service.await;
    let database = testbed.make_database("postgraphile");
    let floor = Program::Floor(CreateMode::OneStatement);
    let rows = Fixture::create_in(
        testbed,
        floor,
        "postgraphile-floor",
        database.clone(),
        IdSource::Numbered,
    );
    let (_, rows) = rows.await;
    let postgraphile = PostGraphile::start(program, &database).await;
    let cases = [
        (
            "GetStep, body of 1 KB",
            requests::get_step(&of_service.steps),
            get_step(&rows.steps[0]),
        ),
        (
            "ListSteps, 100 of 1 KB, no bodies",
            requests::list_steps(&of_service.long),
            list_steps(&rows.long[0]),
        ),
        (
            "CreateStep, all on one task",
            requests::create_step(&of_service.empty[..1]),
            create_step(&rows.empty[0]),
        ),
    ];
    let mut figures = Vec::new();
    for (call, request, query) in cases {
        let (mut service_rates, mut postgraphile_rates) = (Vec::new(), Vec::new());
        for _ in 0..timing.rounds {
            service_rates.push(rate_of_requests(&service, &request, timing));
            postgraphile_rates.push(postgraphile.rate_of(&query, timing));
        }
        let service_rate = median(service_rates);
        let postgraphile_rate = median(postgraphile_rates);
        figures.push(Figure::new(
            format!("{call}, the service and PostGraphile 4"),
            testbed.kind(),
            "more".to_owned(),
            format!("{service_rate:.0} and {postgraphile_rate:.0} calls/s"),
            service_rate > postgraphile_rate,
        ));
    }
    figures
}

/// A running PostGraphile.
struct PostGraphile {
    _child: SupervisedChild,
    port: u16,
}

impl PostGraphile {
    async fn start(program: &Path, database: &str) -> Self {
        let connection = PgConnection::connect(database).await;
        let ids = "ALTER TABLE steps ALTER guid SET DEFAULT gen_random_uuid()";
        let set = connection.expect("a database").execute(ids).await;
        set.expect("the statement runs");
        let port = free_port();
        let log = fs::File::create(Scratch::of_this_run().path("postgraphile.log"));
        let log = log.expect("a file");
        let mut command = Command::new(program);
        command
            .args(["--connection", database, "--schema", "public"])
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--max-pool-size", "16", "--disable-query-log"])
            .env("NODE_ENV", "production")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        let child = SupervisedChild::spawn(&mut command, EndSignal::Kill);
        let serves = || TcpStream::connect(("127.0.0.1", port)).ok();
        let serves = poll_for(START_TIMEOUT, serves);
        serves.expect("PostGraphile serves");
        Self {
            _child: child,
            port,
        }
    }

    /// Sends a query again and again, and returns the calls per second.
    fn rate_of(&self, query: &Value, timing: Timing) -> f64 {
        let url = format!("http://127.0.0.1:{}/graphql", self.port);
        let body = Scratch::of_this_run().path("query.json");
        fs::write(&body, query.to_string()).expect("a file");
        let file = format!("@{}", body.display());
        let answer = Command::new("curl")
            .args(["-sS", "-H", "content-type: application/json", "-d", &file])
            .arg(&url)
            .output()
            .expect("curl runs");
        let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
        assert_eq!(answer.get("errors"), None, "PostGraphile answers");
        h2load(
            &["--h1", "-H", "content-type: application/json"],
            &body,
            &url,
            timing,
        )
    }
}

/// Sends the first of the requests again and again, and returns the calls per second.
fn rate_of_requests(server: &Server, requests: &Requests, timing: Timing) -> f64 {
    let body = Scratch::of_this_run().path("request");
    fs::write(&body, requests.request(0)).expect("a file");
    let account = format!("x-account-id: {ACCOUNT}");
    let headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
    let options = [&headers[..], &["-H", &account]].concat();
    let url = format!("http://{}{}", server.address(), requests.path());
    h2load(&options, &body, &url, timing)
}

/// Runs h2load, and returns the calls per second that it prints.
fn h2load(options: &[&str], body: &Path, url: &str, timing: Timing) -> f64 {
    let seconds = timing.turn.as_secs_f64();
    let output = Command::new("h2load")
        .args(["-t", "1", "-m", "1", "-c", &timing.connections.to_string()])
        .args(["-D", &format!("{seconds}"), "--warm-up-time", "1"])
        .args(options)
        .arg("-d")
        .arg(body)
        .arg(url)
        .output()
        .expect("h2load runs (Debian's nghttp2-client)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(" 0 failed, 0 errored"), "{text}");
    let rate = text
        .split(" req/s")
        .next()
        .and_then(|text| text.rsplit(' ').next());
    rate.and_then(|rate| rate.parse().ok())
        .unwrap_or_else(|| panic!("{text}"))
}

fn get_step(guid: &str) -> Value {
    json!({"query": format!(
        "{{ stepByAccountIdAndGuid(accountId: \"{ACCOUNT}\", guid: \"{guid}\") {{ {COLUMNS} body }} }}"
    )})
}

fn list_steps(task: &str) -> Value {
    json!({"query": format!(
        "{{ allSteps(condition: {{accountId: \"{ACCOUNT}\", task: \"{task}\"}}, first: 100, \
         orderBy: POSITION_ASC) {{ nodes {{ {COLUMNS} }} pageInfo {{ hasNextPage endCursor }} }} }}"
    )})
}

fn create_step(task: &str) -> Value {
    let step = super::super::fixture::step(0);
    let (title, body) = (json!(step.title), json!(step.body));
    json!({"query": format!(
        "mutation {{ createStep(input: {{step: {{accountId: \"{ACCOUNT}\", task: \"{task}\", \
         position: \"1\", kind: 3, productId: \"1204\", title: {title}, body: {body}, cost: 2, \
         published: 1, etag: \"e\", dirtyRecord: true, createdTs: \"1\", modifiedTs: \"1\"}}}}) \
         {{ step {{ {COLUMNS} body }} }} }}"
    )})
}
