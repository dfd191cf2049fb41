//! Several servers on one database, each a process of its own: they return the
//! same data, start at the same moment, and accept page tokens, request ids and etags of one
//! another.

mod histories;
mod pooler;
mod shared_state;
mod start;

use crate::{
    kit::{client::Client, pgbouncer::PgBouncer, postgres::shared_cluster},
    service::Service,
};

/// Runs a test on two servers, directly on PostgreSQL and through PgBouncer.
macro_rules! on_two_servers {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::{fleet::{Pair, Path}, machine};

            fn run(name: &str, path: Path) {
                let _machine = machine::shared();
                let name = format!("{name}_{}", stringify!($test));
                // PostgreSQL takes names of 63 bytes.
                let pair = Pair::start(&name[..name.len().min(60)], path);
                machine::runtime().block_on(async { super::$test(pair.clients()).await });
            }

            #[test]
            #[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
            fn directly() {
                run("direct", Path::Direct);
            }

            #[test]
            #[cfg_attr(no_pgbouncer, ignore = "no PgBouncer here")]
            fn through_pgbouncer() {
                run("pooled", Path::ThroughPgBouncer);
            }
        }
    )+};
}

use on_two_servers;

/// What a module of tests imports.
mod prelude {
    pub(super) use super::on_two_servers;
    pub use crate::kit::prelude::*;
}

/// How the servers reach PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Direct,
    ThroughPgBouncer,
}

/// Two servers on one database.
struct Pair {
    servers: [Service; 2],
    _pgbouncer: Option<PgBouncer>,
}

impl Pair {
    /// Starts them on an empty database of their own.
    fn start(name: &str, path: Path) -> Self {
        let mut url = shared_cluster().make_database(name);
        let mut pgbouncer = None;
        if path == Path::ThroughPgBouncer {
            let started = start_pgbouncer(&url);
            started.url().clone_into(&mut url);
            pgbouncer = Some(started);
        }
        let server = |which: &str| {
            let settings = [("EXPERTISE_DATABASE_MAX_CONNECTIONS", "8")];
            Service::start(&format!("{name}-{which}"), &url, &settings)
        };
        Self {
            servers: [server("one"), server("other")],
            _pgbouncer: pgbouncer,
        }
    }

    /// A client of each server, both of one new account.
    fn clients(&self) -> [Client; 2] {
        let [one, other] = &self.servers;
        let one = one.client();
        let other = other.client().with_account(one.account());
        [one, other]
    }
}

/// A PgBouncer before this database.
fn start_pgbouncer(url: &str) -> PgBouncer {
    // Clients that use libpq send this parameter, so PgBouncer is often set to ignore it.
    PgBouncer::start(url, "ignore_startup_parameters = extra_float_digits")
}
