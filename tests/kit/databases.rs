//! The databases that the tests run on, and the server in this process that each has.

use std::{
    env,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use expertise::{
    config::{Config, DatabaseUrl},
    server::Server,
    store::migrate_distributed,
};
use tokio::time::timeout;

use super::{
    client::Client, command::Cli, deadline::TEST_TIMEOUT, postgres, scratch::Scratch,
    server_process::ServerProcess, statement_log,
};

/// The database that most tests call, whose statements are checked.
const CALLS: &str = "calls";

/// A database that the tests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file in the run's directory.
    Sqlite,
    /// See [`postgres`].
    Postgres,
}

/// A test that runs on both databases: of calls to a server in this process, or of
/// commands for a server in a process of its own.
pub trait DatabaseTest<Argument> {
    /// Runs it with an account of its own.
    fn run_on(self, database: Database);
}

impl<T, F> DatabaseTest<Client> for T
where
    T: FnOnce(Client) -> F,
    F: Future<Output = ()>,
{
    fn run_on(self, database: Database) {
        let server = database.server();
        let test = async { timeout(TEST_TIMEOUT, self(Client::at(server))).await };
        runtime().block_on(test).expect("the test ends");
        database.check_statements();
    }
}

impl<T: FnOnce(Cli)> DatabaseTest<Cli> for T {
    fn run_on(self, database: Database) {
        static ACCOUNTS: AtomicUsize = AtomicUsize::new(1);
        let number = ACCOUNTS.fetch_add(1, Ordering::Relaxed);
        self(Cli {
            server: database.server_process().clone(),
            account: format!("cli-{number}"),
        });
    }
}

impl Database {
    /// Fails when a statement that PostgreSQL has logged reaches beyond its account.
    pub fn check_statements(self) {
        match self {
            Self::Sqlite => {}
            Self::Postgres => statement_log::assert_statements_stay_within_an_account(),
        }
    }

    /// The server on this database, started at the first call.
    pub fn server(self) -> SocketAddr {
        static SQLITE: OnceLock<SocketAddr> = OnceLock::new();
        static POSTGRES: OnceLock<SocketAddr> = OnceLock::new();
        match self {
            Self::Sqlite => *SQLITE.get_or_init(|| start(config(&self.url()))),
            Self::Postgres => *POSTGRES.get_or_init(|| {
                let url = self.url();
                let server = start(config(&url));
                if let (_, Some(log)) = postgres_of_this_run() {
                    statement_log::watch(&url, CALLS, log);
                }
                server
            }),
        }
    }

    /// The URL of the database that [`server`](Self::server) uses.
    pub fn url(self) -> String {
        static POSTGRES: OnceLock<String> = OnceLock::new();
        match self {
            Self::Sqlite => Scratch::of_this_run().sqlite_url("expertise"),
            Self::Postgres => POSTGRES.get_or_init(|| postgres(CALLS)).clone(),
        }
    }

    /// The URL of a server in a process of its own, started at the first call.
    fn server_process(self) -> &'static String {
        static SQLITE: OnceLock<String> = OnceLock::new();
        static POSTGRES: OnceLock<String> = OnceLock::new();
        let (server, name) = match self {
            Self::Sqlite => (&SQLITE, "sqlite-server"),
            Self::Postgres => (&POSTGRES, "postgres-server"),
        };
        let start = || {
            let database = match self {
                Self::Sqlite => "sqlite::memory:".to_owned(),
                Self::Postgres => postgres("commands"),
            };
            let process = ServerProcess::start(name, &[("EXPERTISE_DATABASE_URL", &database)]);
            let url = format!("http://{}", process.address());
            // It serves until the run ends.
            std::mem::forget(process);
            url
        };
        server.get_or_init(start)
    }
}

/// The PostgreSQL of this run, started at the first call: the URL of a database in it,
/// and its log where it is private.
fn postgres_of_this_run() -> &'static (String, Option<PathBuf>) {
    static POSTGRES: OnceLock<(String, Option<PathBuf>)> = OnceLock::new();
    POSTGRES.get_or_init(|| postgres::database_and_log(&statement_log::SETTINGS))
}

/// The URL of a new database in the PostgreSQL of this run. `name` is what it is called
/// in a private one. Its tables are distributed if that is asked for.
pub fn postgres(name: &str) -> String {
    let url = empty_postgres(name);
    if is_distributed() {
        let database = DatabaseUrl::parse(&url).expect("the URL of a database");
        let created = postgres::in_a_runtime(migrate_distributed(&database));
        created.unwrap_or_else(|error| panic!("{url}: {error}"));
    }
    url
}

/// Whether the tests run on tables that Citus distributes, as `EXPERTISE_TEST_DISTRIBUTE=1` asks.
pub fn is_distributed() -> bool {
    env::var_os("EXPERTISE_TEST_DISTRIBUTE").is_some()
}

/// The same without any table.
pub fn empty_postgres(name: &str) -> String {
    let (url, log) = postgres_of_this_run();
    let name = match log {
        Some(_) => name.to_owned(),
        // On a server that runs share, later ones delete databases whose names begin like this.
        None => format!("expertise_test_{}", uuid::Uuid::now_v7().simple()),
    };
    postgres::make_database_in(url, &name)
}

/// The settings of a server that most tests call. On a busy machine a call with a large
/// body takes longer than the default allows.
fn config(database_url: &str) -> Config {
    Config {
        request_timeout: TEST_TIMEOUT,
        ..Config::for_tests(database_url)
    }
}

/// A runtime on the current thread.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Starts a server in this process, on threads of its own, as no test's runtime
/// outlives its test.
pub fn start(config: Config) -> SocketAddr {
    let database = config.database.to_string();
    let (started, address) = mpsc::channel();
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime for the server");
        runtime.block_on(async {
            let server = match Server::bind(config).await {
                Ok(server) => server,
                Err(error) => {
                    let _ = started.send(Err(format!("{database}: {error:?}")));
                    return;
                }
            };
            let address = server.local_addr();
            let sender = started.clone();
            let on_open = || drop(sender.send(Ok(address)));
            if let Err(error) = server.serve(on_open, std::future::pending()).await {
                let _ = started.send(Err(format!("{database}: {error:?}")));
            }
        });
    };
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(serve)
        .expect("a thread for the server");
    match address.recv() {
        Ok(Ok(address)) => address,
        Ok(Err(reason)) => panic!("the server does not start: {reason}"),
        Err(_) => panic!("the server panicked at its start"),
    }
}
