//! Where servers run: on files of this run, or on a PostgreSQL of this run.

use std::{env, net::SocketAddr, process::Command, sync::Arc};

use expertise::proto::v1::{
    step_service_client::StepServiceClient, task_service_client::TaskServiceClient,
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
    floor::{ACCOUNT, Creating},
    load::{self, Dose, Measured, Requests},
    process::ServerProcess,
    scratch::Scratch,
    watch::{self, Watched},
};

/// Larger than any message here.
const MESSAGE_LIMIT: usize = 72 << 20;

/// The settings of the PostgreSQL that are not its defaults, `fsync` being on by
/// default. Checkpoints would fall into one round and not into the other.
pub const POSTGRES_SETTINGS: [&str; 2] = ["max_wal_size=16GB", "checkpoint_timeout=1h"];

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Databases of a kind.
pub struct Ground {
    cluster: Option<Cluster>,
}

/// What runs.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// The service.
    Service,
    /// The floor.
    Floor(Creating),
}

impl Ground {
    /// `None` for PostgreSQL where there is none.
    pub fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Sqlite => Some(Self { cluster: None }),
            Kind::Postgres => {
                let cluster = Cluster::start("postgres", &POSTGRES_SETTINGS)?;
                Some(Self {
                    cluster: Some(cluster),
                })
            }
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self.cluster {
            None => Kind::Sqlite,
            Some(_) => Kind::Postgres,
        }
    }

    /// The PostgreSQL, where it is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Makes an empty database; its address.
    pub fn database(&self, name: &str) -> String {
        match &self.cluster {
            Some(cluster) => cluster.make_database(name),
            None => format!("sqlite:{}", Scratch::of_this_run().path(name).display()),
        }
    }

    /// Has a database do what it does by itself in time. PostgreSQL looks at what is
    /// in it; until then it plans for empty tables, and goes by those plans. SQLite
    /// moves what was written out of its log, through which it reads more slowly.
    pub async fn settle(&self, database: &str) {
        match self.kind() {
            Kind::Sqlite => {
                let connection = SqliteConnection::connect(database).await;
                let settled = connection
                    .expect("it")
                    .execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    .await;
                settled.expect("it settles");
            }
            Kind::Postgres => {
                let connection = PgConnection::connect(database).await;
                let settled = connection.expect("it").execute("VACUUM ANALYZE").await;
                settled.expect("it settles");
            }
        }
    }

    /// Starts a server on a database.
    pub fn serve(&self, program: Program, name: &str, database: &str) -> Server {
        let settings = [("EXPERTISE_DATABASE_URL", database)];
        let process = match program {
            Program::Service => ServerProcess::start(name, &settings),
            Program::Floor(_) => ServerProcess::start_program(command(program), name, &settings)
                .unwrap_or_else(|log| panic!("{name} did not start: {log}")),
        };
        let cluster = self.cluster.as_ref();
        Server {
            watched: Watched {
                server: process.id(),
                database: cluster.and_then(|cluster| watch::postmaster(&cluster.data())),
            },
            process,
        }
    }
}

/// What starts a program.
pub fn command(program: Program) -> Command {
    let floor = |how| {
        let mut command = Command::new(env::current_exe().expect("our own path"));
        command.arg(how);
        command
    };
    match program {
        Program::Service => Command::new(env!("CARGO_BIN_EXE_expertise")),
        Program::Floor(Creating::Bare) => floor(super::FLOOR),
        Program::Floor(Creating::SixStatements) => floor(super::SIX_STATEMENTS),
    }
}

/// A server that runs.
pub struct Server {
    process: ServerProcess,
    watched: Watched,
}

type Named = fn(Request<()>) -> Result<Request<()>, Status>;
type Authenticated = InterceptedService<Channel, Named>;

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// Its process.
    pub fn process(&self) -> &ServerProcess {
        &self.process
    }

    /// Calls it for as long as the dose says.
    pub async fn load(&self, requests: &Arc<Requests>, dose: Dose) -> Measured {
        load::load(self.address(), requests, dose, &self.watched).await
    }

    /// A client of its tasks.
    pub fn tasks(&self) -> TaskServiceClient<Authenticated> {
        TaskServiceClient::new(self.channel())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }

    /// A client of its steps.
    pub fn steps(&self) -> StepServiceClient<Authenticated> {
        StepServiceClient::new(self.channel())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }

    fn channel(&self) -> Authenticated {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address()));
        let channel = endpoint.expect("an address").connect_lazy();
        let named: Named = |mut request| {
            let account = AsciiMetadataValue::from_static(ACCOUNT);
            request.metadata_mut().insert("x-account-id", account);
            Ok(request)
        };
        InterceptedService::new(channel, named)
    }
}
