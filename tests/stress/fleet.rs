//! Several server processes on one database. They return the same data, can start concurrently, and
//! accept each other's page tokens, request ids and etags.

mod histories;
mod shared_state;
mod start;

use crate::{
    kit::{client::Client, postgres::shared_cluster},
    service::Service,
};

/// The attribute of a test that gets a client of each of two servers.
macro_rules! on_two_servers {
    ($(#[$attribute:meta])* async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* async fn $test $($rest)+

        mod $test {
            use crate::{fleet::Pair, machine};

            #[test]
            #[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
            fn directly() {
                let _machine = machine::shared();
                // PostgreSQL takes names of 63 bytes.
                let name = stringify!($test);
                let pair = Pair::start(&name[..name.len().min(60)]);
                machine::runtime().block_on(async { super::$test(pair.clients()).await });
            }
        }
    };
}

use on_two_servers;

/// What a module of tests imports.
mod prelude {
    pub(super) use super::on_two_servers;
    pub use crate::kit::prelude::*;
}

/// Two servers on one database.
struct Pair {
    servers: [Service; 2],
}

impl Pair {
    /// Starts them on their own empty database.
    fn start(name: &str) -> Self {
        let url = shared_cluster().make_database(name);
        let server = |which: &str| {
            let settings = [("EXPERTISE_DATABASE_MAX_CONNECTIONS", "8")];
            Service::start(&format!("{name}-{which}"), &url, &settings)
        };
        Self {
            servers: [server("one"), server("other")],
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
