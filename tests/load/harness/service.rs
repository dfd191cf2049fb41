//! The server of a test, and the form of a run.

use std::{
    env,
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use super::{
    absent::report_missing, cluster::Cluster, process::ServerProcess, scratch::Scratch,
    wire::Connection, world::World,
};

/// A mebibyte.
pub const MIB: u64 = 1024 * 1024;

/// Address space that a server may have, of which allocators reserve a lot.
const ADDRESS_SPACE: u64 = 4 * 1024 * MIB;

/// Far beyond what anything here takes: a wait that long has hung.
pub const BOUND: Duration = Duration::from_secs(120);

/// Whether the real numbers are taken.
pub fn is_full() -> bool {
    env::var("EXPERTISE_LOAD").is_ok_and(|form| form == "full")
}

/// One of two, by the form of the run.
pub fn short_or_full<T>(short: T, full: T) -> T {
    if is_full() { full } else { short }
}

/// A database that tests run on.
#[derive(Clone, Copy, Debug)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// Where a test runs.
pub struct Place {
    name: String,
    url: String,
}

impl Database {
    /// Runs a test when no other one does. Without PostgreSQL that is said.
    pub fn run(self, name: &str, test: impl AsyncFnOnce(Place)) {
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // A short name tells the databases of PostgreSQL apart.
        let name = format!("{self:?}_{}", &name[..name.len().min(50)]).to_lowercase();
        let Some(url) = self.url(&name) else { return };
        raise_descriptors();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(test(Place { name, url }));
        runtime.shutdown_background();
    }

    fn url(self, name: &str) -> Option<String> {
        static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
        match self {
            Self::Sqlite => {
                let file = Scratch::of_this_run().path(&format!("{name}.db"));
                Some(format!("sqlite:{}", file.display()))
            }
            Self::Postgres => {
                // The cluster does not outlive the run, so it need not survive a crash.
                let cluster = CLUSTER.get_or_init(|| Cluster::start("postgres", &["fsync=off"]));
                if cluster.is_none() {
                    report_missing("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
                }
                Some(cluster.as_ref()?.make_database(name))
            }
        }
    }
}

impl Place {
    /// Starts the server with its defaults.
    pub fn serve(&self) -> Service {
        self.serve_with(&[])
    }

    /// Starts the server with these settings.
    pub fn serve_with(&self, settings: &[(&str, &str)]) -> Service {
        let mut all = vec![
            ("EXPERTISE_DATABASE_URL", self.url.as_str()),
            ("EXPERTISE_LOG_FORMAT", "json"),
        ];
        all.extend(settings);
        Service {
            process: ServerProcess::start(&self.name, &all),
            name: self.name.clone(),
        }
    }
}

/// A server that runs.
pub struct Service {
    process: ServerProcess,
    name: String,
}

impl Service {
    pub fn process(&self) -> &ServerProcess {
        &self.process
    }

    /// A fresh account.
    pub fn world(&self) -> World {
        World::at(self.process.address())
    }

    /// A connection below the clients.
    pub async fn connect(&self) -> Connection {
        Connection::open(self.process.address()).await
    }

    /// Says a figure of this run, for whoever runs it by hand.
    pub fn note(&self, what: &str) {
        println!("{}: {what}", self.name);
    }

    /// What memory it holds and held, in MiB.
    pub fn memory(&self) -> String {
        format!(
            "now {} MiB, peak {} MiB, address space {} MiB",
            self.process.resident() / MIB,
            self.process.peak() / MIB,
            self.process.virtual_peak() / MIB,
        )
    }

    /// Asserts that it never held more than this, nor reserved what it did not
    /// need.
    #[track_caller]
    pub fn stayed_within(&self, resident: u64) {
        assert!(self.process.peak() < resident, "{}", self.memory());
        let reserved = self.process.virtual_peak();
        assert!(reserved < ADDRESS_SPACE, "{}", self.memory());
    }

    /// Waits until it holds less than this, and fails when it does not in time.
    pub async fn sinks_below(&self, bytes: u64, bound: Duration) -> Duration {
        let begun = Instant::now();
        while self.process.resident() >= bytes {
            assert!(begun.elapsed() < bound, "{}", self.memory());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        begun.elapsed()
    }
}

/// A thousand connections take more descriptors than many shells allow.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Waits until something holds.
///
/// # Panics
/// When it does not for minutes.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < BOUND, "not yet: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
