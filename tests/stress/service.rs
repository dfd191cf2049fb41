//! A server with its database, which tests start, stop and crash.

use std::{
    net::SocketAddr,
    path::Path,
    process::ExitStatus,
    time::{Duration, Instant},
};

use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::kit::{
    client::Client,
    deadline::until,
    postgres::{Cluster, Stop, free_port, shared_cluster},
    relay::Relay,
    scratch::Scratch,
    server::{Setting, Settings, TestServer},
    sql::SqlConnection,
};

/// Settings of a server that logs little.
pub const LOG_WARNINGS: Setting<'static> = ("EXPERTISE_LOG", "warn");

pub const MIB: u64 = 1024 * 1024;
/// An idle server, by the formula of docs/operations.md, "Size".
const IDLE_BYTES: u64 = 27 * MIB;
/// What SQLite takes in addition.
const SQLITE_BYTES: u64 = 8 * MIB;
/// The default of `EXPERTISE_MAX_INFLIGHT_BYTES`.
const MAX_INFLIGHT_BYTES: u64 = 512 * MIB;
/// The default of `EXPERTISE_MAX_MESSAGE_BYTES`.
const MAX_MESSAGE_BYTES: u64 = 72 * MIB;
/// Address space that a server may have: allocators reserve far more than they use.
const MAX_ADDRESS_SPACE_BYTES: u64 = 4 * 1024 * MIB;

/// A server and its database. Both end with this. It has the same address after a restart.
pub struct Service {
    name: String,
    database: String,
    /// The address at which the server finds the database.
    database_of_server: String,
    settings: Settings,
    // Dropped before what it uses.
    process: Option<TestServer>,
    database_relay: Option<Relay>,
    cluster: Option<Cluster>,
}

impl Service {
    /// On the database at this URL.
    pub fn start(name: &str, database: &str, settings: &[Setting]) -> Self {
        let mut service = Self::new(name, database, settings);
        service.restart();
        service
    }

    /// On a SQLite file of its own.
    pub fn on_sqlite(name: &str, settings: &[Setting]) -> Self {
        Self::start(name, &Scratch::of_this_run().sqlite_url(name), settings)
    }

    /// On a cluster of its own that would survive a crash of the machine too.
    pub fn on_own_postgres(name: &str, settings: &[Setting]) -> Self {
        let cluster = durable_cluster(name);
        let mut service = Self::new(name, &cluster.url(), settings);
        service.cluster = Some(cluster);
        service.restart();
        service
    }

    /// The same with this delay between server and database in either direction, so
    /// that clients go away in the middle of a transaction.
    pub fn on_slow_postgres(name: &str, delay: Duration, settings: &[Setting]) -> Self {
        let cluster = durable_cluster(name);
        let relay = Relay::with_delay(cluster.port(), delay);
        let mut service = Self::new(name, &cluster.url(), settings);
        service.database_of_server = relay.url(&cluster.url());
        service.cluster = Some(cluster);
        service.database_relay = Some(relay);
        service.restart();
        service
    }

    fn new(name: &str, database: &str, settings: &[Setting]) -> Self {
        Self {
            name: name.to_owned(),
            database: database.to_owned(),
            database_of_server: database.to_owned(),
            settings: Settings::new(database)
                .set("EXPERTISE_LISTEN", format!("127.0.0.1:{}", free_port()))
                .set_all(settings),
            process: None,
            database_relay: None,
            cluster: None,
        }
    }

    /// Starts the server again after its end.
    pub fn restart(&mut self) {
        let settings = self.settings.clone();
        let settings = settings.set("EXPERTISE_DATABASE_URL", &self.database_of_server);
        self.process = Some(TestServer::start_blocking(&settings));
    }

    /// The server, which runs.
    pub fn process(&self) -> &TestServer {
        self.process.as_ref().expect("it runs")
    }

    pub fn address(&self) -> SocketAddr {
        self.process().address()
    }

    /// The address of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Changes the delay between server and database, if there is one.
    pub fn delay_database(&self, delay: Duration) {
        if let Some(relay) = &self.database_relay {
            relay.delay(delay);
        }
    }

    /// A client with a connection and an account of its own.
    pub fn client(&self) -> Client {
        Client::at(self.address())
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Asks the server to end, and waits until it has.
    pub fn terminate(&mut self) -> ExitStatus {
        self.process.take().expect("it runs").terminate()
    }

    /// Crashes the database under the server and starts it again.
    pub fn crash_database(&mut self) {
        let cluster = self.cluster.as_mut().expect("a cluster");
        cluster.stop(Stop::Immediate);
        cluster.start_again();
    }

    /// Prints a figure of this run.
    pub fn print(&self, what: &str) {
        println!("{}: {what}", self.name);
    }

    /// The memory of the server, as text.
    pub fn memory(&self) -> String {
        let process = self.process();
        format!(
            "now {} MiB, peak {} MiB of {} MiB promised, address space {} MiB",
            process.resident() / MIB,
            process.resident_peak() / MIB,
            self.promised_memory() / MIB,
            process.virtual_peak() / MIB,
        )
    }

    /// The most memory that docs/operations.md promises for the settings of this server.
    pub fn promised_memory(&self) -> u64 {
        let bytes = |setting, default| {
            let value = self.settings.get(setting);
            value.map_or(default, |value| value.parse().expect("bytes"))
        };
        let of_database = match self.database.starts_with("sqlite:") {
            true => SQLITE_BYTES,
            false => 0,
        };
        IDLE_BYTES
            + of_database
            + bytes("EXPERTISE_MAX_INFLIGHT_BYTES", MAX_INFLIGHT_BYTES)
            + 6 * bytes("EXPERTISE_MAX_MESSAGE_BYTES", MAX_MESSAGE_BYTES)
    }

    /// Asserts that the server never held more memory than promised.
    #[track_caller]
    pub fn stayed_within_its_promise(&self) {
        self.stayed_within(self.promised_memory());
    }

    /// Asserts that the server never held as much memory as this, nor reserved far
    /// more than it needs.
    #[track_caller]
    pub fn stayed_within(&self, resident: u64) {
        assert!(
            self.process().resident_peak() < resident,
            "{}",
            self.memory()
        );
        let reserved = self.process().virtual_peak();
        assert!(reserved < MAX_ADDRESS_SPACE_BYTES, "{}", self.memory());
    }

    /// Waits until the server holds less memory than this, and fails when it does not
    /// in time. How long that took.
    pub async fn sinks_below(&self, bytes: u64, timeout: Duration) -> Duration {
        let started = Instant::now();
        while self.process().resident() >= bytes {
            assert!(started.elapsed() < timeout, "{}", self.memory());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        started.elapsed()
    }
}

fn durable_cluster(name: &str) -> Cluster {
    let durable = ["fsync=on", "full_page_writes=on"];
    Cluster::start(&format!("{name}.cluster"), &durable)
}

/// A database that a test runs on.
#[derive(Clone, Copy, Debug)]
pub enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    /// The URL of an empty database of this name.
    pub fn make(self, name: &str) -> String {
        match self {
            Self::Sqlite => Scratch::of_this_run().sqlite_url(name),
            Self::Postgres => shared_cluster().make_database(name),
        }
    }
}

/// Asserts that a SQLite file is not corrupt.
pub async fn assert_sqlite_integrity(file: &Path) {
    let options = SqliteConnectOptions::new().filename(file);
    let connection = SqliteConnection::connect_with(&options).await;
    let mut connection = connection.expect("the file");
    let result: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .expect("a result");
    assert_eq!(result, "ok");
    let broken = sqlx::query("PRAGMA foreign_key_check")
        .fetch_all(&mut connection)
        .await
        .expect("a result");
    assert!(broken.is_empty(), "{} references are broken", broken.len());
    connection.close().await.expect("it is closed");
}

/// Waits until no transaction of a server is open.
pub async fn no_transaction_is_left_open(database: &str) {
    let mut connection = SqlConnection::open(database).await;
    let open = match database.starts_with("sqlite:") {
        // Needs the lock of writes, and that no transaction reads from the log.
        true => "PRAGMA wal_checkpoint(TRUNCATE)",
        false => {
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'expertise' AND state LIKE 'idle in transaction%'"
        }
    };
    until("no transaction is left open", async || {
        (connection.number(open).await == 0).then_some(())
    })
    .await;
}
