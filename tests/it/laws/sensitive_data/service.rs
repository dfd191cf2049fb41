//! The service with everything logged.

use std::fs;

use prost::Message;

use super::{
    caller::Caller,
    marks::{self, PASSWORD, SECRET},
};
use crate::{
    databases::Database,
    kit::{
        postgres::Cluster,
        runtime::in_a_runtime,
        scratch::Scratch,
        server::{TestServer, http_get, with_metrics},
    },
    ops::collector::Collector,
};

/// The kind of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Header,
    Jwt,
}

/// The service in its own process.
pub struct Service {
    process: TestServer,
    url: String,
    mode: Mode,
    collector: Collector,
    pub cluster: Option<Cluster>,
}

impl Service {
    /// Starts it with everything logged.
    pub fn start(name: &str, database: Database, mode: Mode, format: &str) -> Self {
        let (cluster, url) = match database {
            Database::Sqlite => {
                let file = Scratch::of_this_run().path(&format!("{name}.db"));
                (None, format!("sqlite:{}", file.display()))
            }
            Database::Postgres => {
                let cluster = Cluster::start(&format!("{name}.cluster"), &["fsync=off"]);
                let url = cluster.url();
                let url = url.replace("postgres@", &format!("postgres:{PASSWORD}@"));
                (Some(cluster), url)
            }
        };
        let collector = Collector::start();
        let mut settings = with_metrics(&url)
            .set("EXPERTISE_OTLP_ENDPOINT", collector.url())
            // Named crates too: the caps on their levels must hold.
            .set(
                "EXPERTISE_LOG",
                "trace,sqlx=trace,sea_orm=trace,h2=trace,hyper=trace,rustls=trace",
            )
            .set("EXPERTISE_LOG_FORMAT", format);
        if mode == Mode::Jwt {
            settings = settings.jwt("EXPERTISE_JWT_SECRET", SECRET);
        }
        let process = TestServer::start_blocking(&settings);
        Self {
            process,
            url,
            mode,
            collector,
            cluster,
        }
    }

    /// A caller with its own account.
    pub fn caller(&self) -> Caller {
        Caller::of(self.process.address(), self.mode)
    }

    /// The address of the database.
    pub fn database(&self) -> &str {
        &self.url
    }

    /// Ends the service. Asserts that its log holds a line for each call, and that log,
    /// metrics and spans hold no mark.
    pub fn end_and_expect_no_mark(self, calls: usize) {
        let metrics = self.metrics();
        assert!(metrics.contains("grpc_server_handled_total"), "{metrics}");
        let found = marks::found(&metrics, &[]);
        assert!(found.is_empty(), "{found:?} in the metrics: {metrics}");
        let path = self.process.log_path().to_owned();
        assert!(self.process.terminate().success());
        let log = fs::read_to_string(path).expect("the log");
        let lines = log.lines().filter(|line| line.contains("duration_us"));
        let lines = lines.count();
        assert!(lines >= calls, "{lines} lines of {calls} calls");
        for line in log.lines() {
            let found = marks::found(line, &[]);
            assert!(
                found.is_empty(),
                "{found:?} in the log: {line}\n{}",
                call_of(line, &log)
            );
        }
        let sent = self.collector.requests();
        assert!(!sent.is_empty());
        for request in sent {
            for shown in [
                String::from_utf8_lossy(&request.encode_to_vec()).into_owned(),
                format!("{request:?}"),
            ] {
                let found = marks::found(&shown, &[]);
                assert!(found.is_empty(), "{found:?} in a span: {shown}");
            }
        }
    }

    fn metrics(&self) -> String {
        in_a_runtime(http_get(self.process.metrics_address(), "/metrics")).1
    }
}

/// The line that says which call a line of the log is about.
fn call_of<'a>(line: &str, log: &'a str) -> &'a str {
    let mut ids = line.split(|it: char| !it.is_ascii_hexdigit() && it != '-');
    let id = ids.find(|word| uuid::Uuid::try_parse(word).is_ok());
    let is_its_end =
        |line: &&str| line.contains("duration_us") && id.is_some_and(|id| line.contains(id));
    log.lines().find(is_its_end).unwrap_or("no call is known")
}
