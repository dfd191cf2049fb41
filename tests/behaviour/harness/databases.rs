//! The databases the suite runs on, and the one server that each has.

use std::{
    env,
    io::Write,
    net::SocketAddr,
    sync::{OnceLock, mpsc},
    thread,
};

use expertise::{config::Config, server::Server};

use super::{cluster, pgbouncer, scratch::Scratch, statements, world::World};

/// A database the suite runs on.
#[derive(Clone, Copy, Debug)]
pub enum Database {
    /// A file in the run's directory.
    Sqlite,
    /// See [`cluster`].
    Postgres,
}

impl Database {
    /// Runs a behaviour in a runtime of its own, with an account of its own. Does
    /// nothing where the database is not there, which is said once a run.
    pub fn run<F: Future<Output = ()>>(self, behaviour: impl FnOnce(World) -> F) {
        let Some(server) = self.server() else { return };
        runtime().block_on(async { behaviour(World::at(server)).await });
        self.judge();
    }

    /// Judges what was asked of the database, where that can be known.
    pub fn judge(self) {
        match self {
            Self::Sqlite => {}
            Self::Postgres => statements::stay_within_an_account(),
        }
    }

    /// The server on this database, started at the first call.
    pub fn server(self) -> Option<SocketAddr> {
        static SQLITE: OnceLock<SocketAddr> = OnceLock::new();
        static POSTGRES: OnceLock<Option<SocketAddr>> = OnceLock::new();
        match self {
            Self::Sqlite => Some(*SQLITE.get_or_init(|| {
                let file = Scratch::of_this_run().path("expertise.db");
                start(Config::for_tests(&format!("sqlite:{}", file.display())))
            })),
            Self::Postgres => *POSTGRES.get_or_init(|| {
                let Some((url, log)) = cluster::database_and_log(&statements::LOGGED) else {
                    say_that_postgres_is_missing();
                    return None;
                };
                let config = Config::for_tests(&perhaps_through_pgbouncer(url.clone()));
                let server = start(config);
                if let Some(log) = log {
                    statements::watch(&url, &log);
                }
                Some(server)
            }),
        }
    }
}

/// A runtime for one test.
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
            let _ = started.send(Ok(server.local_addr()));
            server.serve(std::future::pending()).await;
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

/// `EXPERTISE_TEST_PGBOUNCER=1` has everything go through PgBouncer.
fn perhaps_through_pgbouncer(url: String) -> String {
    if env::var("EXPERTISE_TEST_PGBOUNCER").is_ok_and(|value| value == "1") {
        // The connection that was free longest is next, so that they do change.
        let pgbouncer = pgbouncer::PgBouncer::start(&url, "server_round_robin = 1");
        let pgbouncer = pgbouncer.expect("EXPERTISE_TEST_PGBOUNCER=1, but there is no pgbouncer");
        let url = pgbouncer.url().to_owned();
        // The watchdog ends it with the run.
        std::mem::forget(pgbouncer);
        url
    } else {
        url
    }
}

fn say_that_postgres_is_missing() {
    let notice = "\n*** No PostgreSQL here: the behaviours ran on SQLite only. ***\n\
                  *** Install it, or name a server in EXPERTISE_TEST_POSTGRES_URL. ***\n\n";
    // Not `eprint!`, which the test runner captures.
    let _ = std::io::stderr().write_all(notice.as_bytes());
}

#[test]
fn postgres_is_there_where_it_is_required() {
    let required = env::var("EXPERTISE_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
    assert!(
        !required || Database::Postgres.server().is_some(),
        "EXPERTISE_REQUIRE_POSTGRES=1, but there is no PostgreSQL"
    );
}
