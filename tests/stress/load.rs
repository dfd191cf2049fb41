//! More load than a server can carry, and abuse: memory stays bounded, normal clients
//! are served, and refused calls get a proper answer.
//!
//! The short form is the default. `EXPERTISE_TEST_LOAD=full` runs for minutes, and is meant for
//! a build of the profile `dist` (`EXPERTISE_TEST_BINARY`).

mod costly;
mod limits;
mod memory;
mod overload;
mod unread;
mod waiting;

use std::env;

use bytes::Bytes;
use futures_util::future::join_all;
use tonic::Status;
use tonic_types::StatusExt;

use crate::{
    kit::{
        client::RpcRequest,
        failure::Failure,
        http2::{Http2Connection, Http2Response, framed_message},
        server::Setting,
    },
    machine::{self, MachineLock},
    service::{Database, Service},
};

/// The attribute of a test on servers of its own, on SQLite and on PostgreSQL. It measures, so that
/// it needs the machine for itself and is slow.
macro_rules! on_both_databases {
    ($(#[$attribute:meta])* async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* async fn $test $($rest)+
        $crate::load::tests_on! {
            $test, exclusive, ignore = "slow: it runs alone", on_sqlite: Sqlite, on_postgres: Postgres
        }
    };
}

pub(crate) use on_both_databases;

/// The same for what no statement decides, on SQLite.
macro_rules! measured_on_one_database {
    ($(#[$attribute:meta])* async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* async fn $test $($rest)+
        $crate::load::tests_on! {
            $test, exclusive, ignore = "slow: it runs alone", on_sqlite: Sqlite
        }
    };
}

pub(crate) use measured_on_one_database;

/// The same for a test that measures nothing and runs in parallel with others.
macro_rules! on_one_database {
    ($(#[$attribute:meta])* async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* async fn $test $($rest)+
        $crate::load::tests_on! { $test, shared, cfg(all()), on_sqlite: Sqlite }
    };
}

pub(crate) use on_one_database;

macro_rules! tests_on {
    ($test:ident, $machine:ident, $attribute:meta, $($name:ident: $database:ident),+) => {
        mod $test {
            use crate::{load::run_on, machine, service::Database};

            $(#[test]
            #[$attribute]
            fn $name() {
                run_on(Database::$database, stringify!($test), machine::$machine(), super::$test);
            })+
        }
    };
}

pub(crate) use tests_on;

/// What a module of tests imports.
mod prelude {
    pub(super) use super::{
        TestDatabase, call, call_at_once, done_at_once, done_within_memory, is_full, is_overloaded,
        measured_on_one_database, on_both_databases, on_one_database, short_or_full,
    };
    pub(super) use crate::{
        frame_peer::FramePeer,
        kit::{
            deadline::*,
            http2::{Http2Connection, Http2Response, framed_message as framed, prefix},
            prelude::*,
        },
        service::{MIB, Service},
    };
}

/// An empty database for a test.
pub struct TestDatabase {
    name: String,
    url: String,
}

fn run_on(
    database: Database,
    test: &str,
    _machine: MachineLock,
    body: impl AsyncFnOnce(TestDatabase),
) {
    // PostgreSQL takes names of 63 bytes.
    let name = format!("{database:?}_{}", &test[..test.len().min(50)]).to_lowercase();
    let url = database.make(&name);
    machine::raise_descriptor_limit();
    let runtime = machine::runtime();
    runtime.block_on(body(TestDatabase { name, url }));
    runtime.shutdown_background();
}

impl TestDatabase {
    /// Starts the server with its defaults.
    pub fn serve(&self) -> Service {
        self.serve_with(&[])
    }

    /// Starts the server with these settings.
    pub fn serve_with(&self, settings: &[Setting]) -> Service {
        let mut all = vec![("EXPERTISE_LOG_FORMAT", "json")];
        all.extend(settings);
        Service::start(&self.name, &self.url, &all)
    }
}

impl Service {
    /// An HTTP/2 connection.
    pub async fn connect(&self) -> Http2Connection {
        Http2Connection::to(self.address()).await
    }
}

/// A call as bytes.
#[derive(Clone)]
pub struct CallBytes {
    method: &'static str,
    message: Bytes,
}

/// The bytes of a call.
fn call<R: RpcRequest>(request: &R) -> CallBytes {
    CallBytes {
        method: R::PATH.trim_start_matches("/expertise.v1."),
        message: framed_message(request),
    }
}

/// Makes each call over a connection of its own, all at once.
async fn call_at_once(
    service: &Service,
    headers: &[(&'static str, &str)],
    calls: Vec<CallBytes>,
) -> Vec<Http2Response> {
    let mut calling = Vec::new();
    for CallBytes { method, message } in calls {
        let connection = service.connect().await;
        calling.push(async move { connection.try_call(method, headers, message).await });
    }
    let responses = join_all(calling).await.into_iter();
    responses.map(|it| it.expect("a response")).collect()
}

/// Restarts the server, so that its peak is that of these calls, makes them at once, and asserts
/// that the memory is what was promised. The responses of calls that were done, of which there is
/// one at least; the others were refused because the server or its database had no room.
async fn done_within_memory(
    service: &mut Service,
    account: &str,
    calls: Vec<CallBytes>,
) -> Vec<Http2Response> {
    service.terminate();
    service.restart();
    done_at_once(service, account, calls).await
}

/// The same without the restart.
async fn done_at_once(
    service: &Service,
    account: &str,
    calls: Vec<CallBytes>,
) -> Vec<Http2Response> {
    let (count, method) = (calls.len(), calls[0].method);
    let responses = call_at_once(service, &[("x-account-id", account)], calls).await;
    let (done, refused): (Vec<_>, Vec<_>) = responses
        .into_iter()
        .partition(|it| it.status().code() == tonic::Code::Ok);
    let done_count = done.len();
    service.print(&format!(
        "{done_count} of {count} {method}; {}",
        service.memory()
    ));
    for response in refused {
        let status = response.status();
        match status.code() {
            // The database may be out of connections.
            code @ tonic::Code::Unavailable => {
                Failure::from(status).is(code, "STORE_UNAVAILABLE");
            }
            _ => is_overloaded(&status),
        }
    }
    assert!(done_count > 0, "no {method} was done");
    service.stayed_within_its_promise();
    done
}

/// Whether the full form runs.
pub fn is_full() -> bool {
    env::var("EXPERTISE_TEST_LOAD").is_ok_and(|form| form == "full")
}

/// One of two, by the form of the run.
pub fn short_or_full<T>(short: T, full: T) -> T {
    if is_full() { full } else { short }
}

/// Asserts that a refusal says that the server is full, and when to retry.
#[track_caller]
pub fn is_overloaded(status: &Status) {
    Failure::from(status.clone()).is(tonic::Code::ResourceExhausted, "OVERLOADED");
    let retry = status.get_details_retry_info();
    assert!(retry.is_some_and(|info| info.retry_delay.is_some()));
}
