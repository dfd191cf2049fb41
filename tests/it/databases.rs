//! The databases that the tests run on, the server that each has, and the attributes of tests.

use std::{
    env,
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::time::timeout;

use crate::{
    command::Cli,
    kit::{
        child::binary,
        client::Client,
        deadline::TEST_TIMEOUT,
        postgres::{self, shared_cluster},
        runtime::runtime,
        scratch::Scratch,
        server::{Settings, TestServer},
    },
};

pub mod properties;
pub mod statement_log;
mod tables;

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
            let settings = Settings::new(url)
                .set("EXPERTISE_REQUEST_TIMEOUT", time_limit)
                // No test reads the lines that it logs for each call.
                .set("EXPERTISE_LOG", "warn");
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

/// The attribute of a test that runs on both databases:
///
/// ```ignore
/// #[apply(on_both_databases)]
/// async fn a_deleted_step_is_gone(client: Client) { … }
/// ```
///
/// becomes `a_deleted_step_is_gone::sqlite` and `a_deleted_step_is_gone::postgres`, each with an
/// account of its own. An `fn(cli: Cli)` tests commands in the same way. An `async fn(url: String)` gets a
/// database of its own.
macro_rules! on_both_databases {
    ($($test:tt)+) => {
        tests! {
            cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here"), $($test)+
        }
    };
}

/// The same for slow tests, which only run with `--include-ignored`.
macro_rules! slow_on_both_databases {
    ($($test:tt)+) => {
        tests! { ignore = "slow", ignore = "slow", $($test)+ }
    };
}

/// The attribute of a test of something that no statement decides, such as how a request is
/// decoded. It runs once, on SQLite.
macro_rules! on_one_database {
    ($($test:tt)+) => {
        tests! { cfg(all()), cfg(any()), $($test)+ }
    };
}

/// The attribute of a property, an `async fn(Client, Case)` that holds for every case of a
/// strategy, on both databases:
///
/// ```ignore
/// #[apply(property_on_both_databases)]
/// #[cases(24, vec(change(), 1..10))]
/// async fn links_stay_consistent(client: Client, changes: Vec<Change>) { … }
/// ```
///
/// So many cases are tried unless `PROPTEST_CASES` says otherwise.
macro_rules! property_on_both_databases {
    ($($property:tt)+) => {
        tests! {
            cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here"), $($property)+
        }
    };
}

/// The same on SQLite alone.
macro_rules! property_on_one_database {
    ($($property:tt)+) => {
        tests! { cfg(all()), cfg(any()), $($property)+ }
    };
}

/// Both tests of a function, with an attribute for each. `cfg(all())` always holds, and `cfg(any())` never.
macro_rules! tests {
    (@ $of_sqlite:meta, $of_postgres:meta, $test:ident, $database:ident, $run:block) => {
        mod $test {
            use $crate::databases::Database;

            fn run_on($database: Database) $run

            #[test]
            #[$of_sqlite]
            fn sqlite() {
                run_on(Database::Sqlite);
            }

            #[test]
            #[$of_postgres]
            fn postgres() {
                run_on(Database::Postgres);
            }
        }
    };
    (
        $of_sqlite:meta, $of_postgres:meta,
        $(#[doc = $doc:expr])* #[cases($cases:expr, $strategy:expr)]
        async fn $property:ident $($rest:tt)+
    ) => {
        $(#[doc = $doc])* async fn $property $($rest)+

        tests! { @ $of_sqlite, $of_postgres, $property, database, {
            use super::*;
            $crate::databases::properties::check(database, $strategy, $cases, super::$property);
        }}
    };
    ($of_sqlite:meta, $of_postgres:meta, $(#[$attribute:meta])* async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* async fn $test $($rest)+

        tests! { @ $of_sqlite, $of_postgres, $test, database, {
            $crate::databases::DatabaseTest::run_on(super::$test, database);
        }}
    };
    ($of_sqlite:meta, $of_postgres:meta, $(#[$attribute:meta])* fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* fn $test $($rest)+

        tests! { @ $of_sqlite, $of_postgres, $test, database, {
            $crate::databases::DatabaseTest::run_on(super::$test, database);
        }}
    };
}
