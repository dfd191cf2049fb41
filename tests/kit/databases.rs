//! The databases that the tests run on, and the server that each has.

use std::{
    env,
    path::PathBuf,
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
    postgres,
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

/// A test that runs on both databases: of calls, or of commands.
pub trait DatabaseTest<Argument> {
    /// Runs it with its own account.
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
                let server = start(&url);
                if let (_, Some(log)) = postgres_of_this_run() {
                    statement_log::watch(&url, CALLS, log);
                }
                server
            }),
        }
    }
}

/// The PostgreSQL of this run, started at the first call: the URL of a database in it,
/// and its log where it is private.
fn postgres_of_this_run() -> &'static (String, Option<PathBuf>) {
    static POSTGRES: OnceLock<(String, Option<PathBuf>)> = OnceLock::new();
    POSTGRES.get_or_init(|| postgres::database_and_log(&statement_log::SETTINGS))
}

/// The URL of a new database in the PostgreSQL of this run. `name` is what it is called
/// in a private one. It is empty, unless `EXPERTISE_TEST_DISTRIBUTE=1` asks for tables that Citus
/// distributes.
pub fn postgres(name: &str) -> String {
    let (url, log) = postgres_of_this_run();
    let name = match log {
        Some(_) => name.to_owned(),
        // On a server that runs share, later ones delete databases whose names begin like this.
        None => format!("expertise_test_{}", uuid::Uuid::now_v7().simple()),
    };
    let url = postgres::make_database_in(url, &name);
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
