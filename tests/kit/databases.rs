//! The databases that the tests run on, and the server that each has.

use std::{
    env,
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::time::timeout;

use super::{
    client::Client,
    command::{Cli, binary},
    deadline::TEST_TIMEOUT,
    postgres::{self, shared_cluster},
    scratch::Scratch,
    server::{Settings, TestServer},
    statement_log,
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

/// A test that runs on both databases: of calls, of commands, or of a database.
pub trait DatabaseTest<Argument> {
    /// Runs it with its own account or database.
    fn run_on(self, database: Database);
}

impl<T, F> DatabaseTest<Client> for T
where
    T: FnOnce(Client) -> F,
    F: Future<Output = ()>,
{
    fn run_on(self, database: Database) {
        let server = database.server();
        let test = async { timeout(TEST_TIMEOUT, self(Client::at(server.address()))).await };
        runtime().block_on(test).expect("the test ends");
        database.check_statements();
    }
}

impl<T: FnOnce(Cli)> DatabaseTest<Cli> for T {
    fn run_on(self, database: Database) {
        static ACCOUNTS: AtomicUsize = AtomicUsize::new(1);
        let number = ACCOUNTS.fetch_add(1, Ordering::Relaxed);
        self(Cli {
            server: database.server().url(),
            account: format!("cli-{number}"),
        });
    }
}

impl<T, F> DatabaseTest<String> for T
where
    T: FnOnce(String) -> F,
    F: Future<Output = ()>,
{
    fn run_on(self, database: Database) {
        let name = std::any::type_name::<T>().rsplit("::").next();
        let name = name.expect("the name of a function");
        let url = match database {
            Database::Sqlite => Scratch::of_this_run().sqlite_url(name),
            Database::Postgres => postgres(name),
        };
        runtime().block_on(self(url));
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

    /// The server on this database, which most tests share. It is started at the first call and
    /// ends with this process.
    pub fn server(self) -> &'static TestServer {
        static SQLITE: OnceLock<TestServer> = OnceLock::new();
        static POSTGRES: OnceLock<TestServer> = OnceLock::new();
        let start = |url: &str| {
            // On a busy machine a call with a large body takes longer than the default allows.
            let time_limit = format!("{}s", TEST_TIMEOUT.as_secs());
            let settings = Settings::new(url).set("EXPERTISE_REQUEST_TIMEOUT", time_limit);
            TestServer::start_blocking(&settings)
        };
        match self {
            Self::Sqlite => {
                SQLITE.get_or_init(|| start(&Scratch::of_this_run().sqlite_url("expertise")))
            }
            Self::Postgres => POSTGRES.get_or_init(|| {
                let url = postgres(CALLS);
                if server_of_others().is_some() {
                    return start(&url);
                }
                let log = format!("ALTER DATABASE {CALLS} SET log_statement = 'all'");
                postgres::execute(&url, &log);
                let server = start(&url);
                statement_log::watch(&url, CALLS, &shared_cluster().log_path());
                server
            }),
        }
    }
}

/// The PostgreSQL server to use instead of a private one.
fn server_of_others() -> Option<String> {
    env::var("EXPERTISE_TEST_POSTGRES_URL").ok()
}

/// The URL of a new database. `name` is what it is called in a private server. It is empty, unless
/// `EXPERTISE_TEST_DISTRIBUTE=1` asks for tables that Citus distributes.
pub fn postgres(name: &str) -> String {
    let url = match server_of_others() {
        Some(server) => {
            let name = format!("expertise_test_{}", uuid::Uuid::now_v7().simple());
            postgres::make_database(&server, &name)
        }
        None => shared_cluster().make_database(name),
    };
    if env::var_os("EXPERTISE_TEST_DISTRIBUTE").is_some() {
        let mut migrate = Command::new(binary());
        migrate.args(["migrate", "--distribute"]);
        migrate.env("EXPERTISE_DATABASE_URL", &url);
        let migrated = migrate.output().expect("it runs");
        assert!(migrated.status.success(), "{migrated:?}");
    }
    url
}

/// A runtime on the current thread.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}
