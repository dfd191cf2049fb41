//! Starts servers, on SQLite files or on a PostgreSQL of this run.

use std::{
    env, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use expertise::proto::v1::{
    step_service_client::StepServiceClient, task_service_client::TaskServiceClient,
    translation_service_client::TranslationServiceClient,
};
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use tonic::{
    Request, Status,
    metadata::AsciiMetadataValue,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};

use super::{
    cluster::Cluster,
    command::binary,
    floor::ACCOUNT,
    load::{self, LoadSpec, Measured, Requests},
    scratch::Scratch,
    server::{Settings, TestServer},
    usage::{self, Processes},
};

/// Larger than any message here.
const MESSAGE_LIMIT: usize = 72 << 20;

/// Settings of PostgreSQL that differ from its defaults: no checkpoint runs during the
/// measurement. `fsync` is on by default.
pub const POSTGRES_SETTINGS: [&str; 2] = ["max_wal_size=16GB", "checkpoint_timeout=1h"];

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// Makes databases of one kind, and starts servers on them.
pub struct Testbed {
    cluster: Option<Cluster>,
    service: PathBuf,
    floor: PathBuf,
    /// The program of another build of the service.
    other_build: Option<PathBuf>,
}

/// The program of a server.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// The service.
    Service,
    /// The service, of another build.
    OtherBuild,
    /// The floor: the minimal server that the service is compared with.
    Floor,
}

impl Testbed {
    /// `None` if PostgreSQL is not installed. Programs are copied: one that runs from the file that
    /// the linker has written is up to a tenth slower than a copy of it.
    pub fn of(kind: Kind, other_build: Option<PathBuf>) -> Option<Self> {
        let cluster = match kind {
            Kind::Sqlite => None,
            Kind::Postgres => Some(Cluster::start_if_installed("postgres", &POSTGRES_SETTINGS)?),
        };
        let copy = |program: &Path, name: &str| {
            let copy = Scratch::of_this_run().path(&format!("{name}-of-{}", kind.name()));
            fs::copy(program, &copy).expect("a copy of a program");
            copy
        };
        let this = env::current_exe().expect("this program");
        Some(Self {
            cluster,
            service: copy(&binary(), "service"),
            floor: copy(&this, "floor"),
            other_build: other_build.map(|other| copy(&other, "other-build")),
        })
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self.cluster {
            None => Kind::Sqlite,
            Some(_) => Kind::Postgres,
        }
    }

    /// Makes an empty database and returns its URL.
    pub fn make_database(&self, name: &str) -> String {
        match &self.cluster {
            Some(cluster) => cluster.make_database(name),
            None => format!("sqlite:{}", Scratch::of_this_run().path(name).display()),
        }
    }

    /// Does at once what a database does by itself after a while. Without statistics PostgreSQL
    /// plans for empty tables; SQLite reads more slowly from a long write-ahead log.
    pub async fn run_maintenance(&self, database: &str) {
        match self.kind() {
            Kind::Sqlite => {
                let connection = SqliteConnection::connect(database).await;
                let mut connection = connection.expect("a database");
                let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
                connection.execute(checkpoint).await.map(drop)
            }
            Kind::Postgres => {
                let connection = PgConnection::connect(database).await;
                let mut connection = connection.expect("a database");
                connection.execute("VACUUM ANALYZE").await.map(drop)
            }
        }
        .expect("the statement runs");
    }

    /// Starts a server on a database.
    pub fn serve(&self, program: Program, name: &str, database: &str) -> Server {
        let settings = Settings::new(database);
        let process = TestServer::start_program(self.command(program), &settings)
            .unwrap_or_else(|log| panic!("{name} did not start: {log}"));
        let cluster = self.cluster.as_ref();
        Server {
            processes: Processes {
                server: process.id(),
                database: cluster.and_then(|cluster| usage::postmaster(&cluster.data())),
            },
            process,
        }
    }

    /// The command that starts a program.
    fn command(&self, program: Program) -> Command {
        match program {
            Program::Service => Command::new(&self.service),
            Program::OtherBuild => {
                Command::new(self.other_build.as_ref().expect("the option --against"))
            }
            Program::Floor => {
                let mut command = Command::new(&self.floor);
                command.arg(super::FLOOR);
                command
            }
        }
    }
}

/// A running server.
pub struct Server {
    process: TestServer,
    processes: Processes,
}

type AddAccount = fn(Request<()>) -> Result<Request<()>, Status>;
type Authenticated = InterceptedService<Channel, AddAccount>;

impl Server {
    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// Its process.
    pub fn process(&self) -> &TestServer {
        &self.process
    }

    /// Generates load on it.
    pub async fn load(&self, requests: &Arc<Requests>, spec: LoadSpec) -> Measured {
        load::load(self.address(), requests, spec, &self.processes).await
    }

    /// A client of TaskService.
    pub fn tasks(&self) -> TaskServiceClient<Authenticated> {
        TaskServiceClient::new(self.channel())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }

    /// A client of StepService.
    pub fn steps(&self) -> StepServiceClient<Authenticated> {
        StepServiceClient::new(self.channel())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }

    /// A client of TranslationService.
    pub fn translations(&self) -> TranslationServiceClient<Authenticated> {
        TranslationServiceClient::new(self.channel()).max_decoding_message_size(MESSAGE_LIMIT)
    }

    fn channel(&self) -> Authenticated {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address()));
        let channel = endpoint.expect("an address").connect_lazy();
        let add_account: AddAccount = |mut request| {
            let account = AsciiMetadataValue::from_static(ACCOUNT);
            request.metadata_mut().insert("x-account-id", account);
            Ok(request)
        };
        InterceptedService::new(channel, add_account)
    }
}
