//! Starts servers on SQLite files, or on a PostgreSQL for this run.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use prost::Message;
use tokio::sync::OnceCell;

use super::{
    Database,
    cpu::{self, CpuTime},
    kit::{
        postgres::{Cluster, is_installed},
        scratch::Scratch,
        server::{Settings, TestServer},
        sql::SqlConnection,
    },
    load::{Client, frame},
};

/// Keeps checkpoints out of the measurement. `fsync` is on by default.
const POSTGRES_SETTINGS: [&str; 2] = ["max_wal_size=16GB", "checkpoint_timeout=1h"];

/// Creates databases of one kind and starts servers on them.
pub struct Testbed {
    cluster: Option<Cluster>,
}

impl Testbed {
    /// `None` if PostgreSQL is not installed.
    pub fn start(database: Database) -> Option<Self> {
        let cluster = match database {
            Database::Sqlite => None,
            Database::Postgres if !is_installed() => return None,
            Database::Postgres => Some(Cluster::start("postgres", &POSTGRES_SETTINGS)),
        };
        Some(Self { cluster })
    }

    pub fn database(&self) -> Database {
        match self.cluster {
            None => Database::Sqlite,
            Some(_) => Database::Postgres,
        }
    }

    /// Starts a copy of a binary on a new database. A binary where the linker wrote it is up to a
    /// tenth slower than its copy.
    pub fn serve(&self, binary: &Path, name: &str) -> Server {
        let scratch = Scratch::of_this_run();
        let copy = scratch.path(&format!("{name}-on-{}", self.database().name()));
        fs::copy(binary, &copy).expect("a copy of the binary");
        let url = match &self.cluster {
            None => scratch.sqlite_url(name),
            Some(cluster) => cluster.make_database(name),
        };
        let process = TestServer::start_program(Command::new(copy), &Settings::new(&url))
            .unwrap_or_else(|log| panic!("{} does not start: {log}", binary.display()));
        let postmaster = self.cluster.as_ref().map(|cluster| {
            let text = fs::read_to_string(cluster.data().join("postmaster.pid"));
            let text = text.expect("a running PostgreSQL");
            let id = text
                .lines()
                .next()
                .and_then(|line| line.trim().parse().ok());
            id.expect("a process id")
        });
        Server {
            process,
            url,
            postmaster,
            client: OnceCell::new(),
        }
    }
}

/// A running server.
pub struct Server {
    process: TestServer,
    url: String,
    postmaster: Option<u32>,
    /// For calls that prepare a measurement.
    client: OnceCell<Client>,
}

impl Server {
    pub fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// CPU time of the server and its database so far.
    pub fn cpu_time(&self) -> CpuTime {
        CpuTime {
            server: cpu::process_time(self.process.id()),
            database: self.postmaster.map(cpu::process_tree_time),
        }
    }

    /// Makes a call.
    pub async fn call<Answer: Message + Default>(
        &self,
        path: &str,
        request: &impl Message,
    ) -> Answer {
        let connect = || Client::connect(self.address());
        let client = self.client.get_or_init(connect).await;
        let frames = client.call(path, frame(request)).await.concat();
        // After the compression flag and the length.
        Answer::decode(&frames[5..]).expect("the response of this rpc")
    }

    /// Does what a database would do by itself after a while. Without statistics PostgreSQL plans
    /// for empty tables, and SQLite reads slowly from a long write-ahead log.
    pub async fn run_maintenance(&self) {
        let statement = match self.postmaster {
            None => "PRAGMA wal_checkpoint(TRUNCATE)",
            Some(_) => "VACUUM ANALYZE",
        };
        SqlConnection::open(&self.url)
            .await
            .execute(statement)
            .await;
    }
}
