//! The service in a process of its own, on either database.

use std::{env, io::Write, net::Ipv4Addr, process::ExitStatus, time::Duration};

use expertise::proto::v1::{CreateTaskRequest, Task};

use super::{
    caller::Caller,
    cluster::{Cluster, Stop},
    draft,
    process::ServerProcess,
    relay::Relay,
    scratch::Scratch,
};

/// Settings of a server.
type Settings = [(&'static str, &'static str)];

/// The database of a scenario, and the server on it.
pub struct Service {
    name: &'static str,
    database: String,
    /// The address at which the server finds it.
    url: String,
    settings: Vec<(&'static str, &'static str)>,
    process: Option<ServerProcess>,
    // Dropped after the server, which uses them.
    _relay: Option<Relay>,
    cluster: Option<Cluster>,
}

/// How long bytes between server and database take in either direction, where
/// they take their time.
const DELAY: Duration = Duration::from_millis(1);

impl Service {
    /// On a file of its own.
    pub fn on_sqlite(name: &'static str, settings: &Settings) -> Self {
        let file = Scratch::of_this_run().path(&format!("{name}.db"));
        let database = format!("sqlite:{}", file.display());
        Self {
            name,
            url: database.clone(),
            database,
            settings: settings.to_vec(),
            process: None,
            _relay: None,
            cluster: None,
        }
        .started()
    }

    /// On a cluster of its own that would survive a crash of the machine too.
    /// `None` where there is no PostgreSQL.
    pub fn on_postgres(name: &'static str, settings: &Settings) -> Option<Self> {
        let durable = ["fsync=on", "full_page_writes=on"];
        let Some(cluster) = Cluster::start(&format!("{name}.cluster"), &durable) else {
            postgres_is_missing();
            return None;
        };
        let service = Self {
            name,
            database: cluster.url(),
            url: cluster.url(),
            settings: settings.to_vec(),
            process: None,
            _relay: None,
            cluster: Some(cluster),
        };
        Some(service.started())
    }

    /// The same, but what server and database say to each other takes its time,
    /// so that callers go away in the middle of it.
    pub fn on_slow_postgres(name: &'static str, settings: &Settings) -> Option<Self> {
        let mut service = Self::on_postgres(name, settings)?;
        let port = service.cluster.as_ref().expect("a cluster").port();
        let relay = Relay::before((Ipv4Addr::LOCALHOST, port).into(), DELAY);
        service.url = format!("postgres://postgres@{}/postgres", relay.address());
        service._relay = Some(relay);
        service.kill();
        Some(service.started())
    }

    fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Starts the server.
    pub fn start(&mut self) {
        let mut settings = vec![("EXPERTISE_DATABASE_URL", self.url.as_str())];
        settings.extend(&self.settings);
        self.process = Some(ServerProcess::start(self.name, &settings));
    }

    /// The server, which runs.
    pub fn process(&self) -> &ServerProcess {
        self.process.as_ref().expect("it runs")
    }

    /// The address of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// A connection to the server.
    pub fn caller(&self) -> Caller {
        Caller::at(self.process().address())
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Asks the server to end, and waits until it has.
    pub fn terminate(&mut self) -> ExitStatus {
        let process = self.process.take().expect("it runs");
        process.signal(rustix::process::Signal::TERM);
        process.wait()
    }

    /// Crashes the database under the server and starts it again.
    pub fn crash_database(&mut self) {
        let cluster = self.cluster.as_mut().expect("a cluster");
        cluster.stop(Stop::Immediate);
        cluster.start_again();
    }

    /// Makes the task that all writers share.
    pub async fn shared_task(&self) -> Task {
        let request = CreateTaskRequest {
            task: Some(draft::task("shared".to_owned())),
            ..CreateTaskRequest::default()
        };
        let response = self.caller().tasks().create_task(request).await;
        response.expect("it is made").into_inner().task.expect("it")
    }
}

fn postgres_is_missing() {
    let required = env::var("EXPERTISE_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "EXPERTISE_REQUIRE_POSTGRES=1, but there is no PostgreSQL"
    );
    let notice = "\n*** No PostgreSQL here: the faults were tried on SQLite only. ***\n\n";
    // Not `eprint!`, which the test runner captures.
    let _ = std::io::stderr().write_all(notice.as_bytes());
}

/// A number from the environment, or this one.
pub fn number(variable: &str, otherwise: u64) -> u64 {
    let given = env::var(variable).ok();
    given.map_or(otherwise, |number| number.parse().expect(variable))
}
