//! The database away: stopped, silent, read-only, without a free connection, without
//! room on its disk. The server runs on and serves again by itself. Meanwhile calls get
//! one of few errors, each of which keeps its promise.

mod exhausted;
mod full;
mod read_only;
mod restart;
mod silent;
mod standby;
mod undecided;

use std::time::{Duration, Instant};

use prost::Message;
use tonic::Code;

use crate::{
    kit::{
        client::Client,
        http2::{Http2Connection, framed_message},
        server::Setting,
    },
    service::{LOG_WARNINGS, Service},
    variables::number_from_env,
};

/// What a module of tests imports.
mod prelude {
    pub(super) use crate::machine;
    pub use crate::{
        health::Health,
        kit::{
            deadline::until,
            postgres::{Cluster, Stop, shared_cluster},
            prelude::*,
            relay::Relay,
            sql::SqlConnection,
        },
        writers::Writers,
    };
}

/// Ends the sessions of the service in the same database.
const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE application_name = 'expertise' AND datname = current_database()";

/// A server on this database that logs little.
fn serve(name: &str, url: &str, more: &[Setting]) -> Service {
    let mut settings = vec![LOG_WARNINGS];
    settings.extend(more);
    Service::start(name, url, &settings)
}

/// How often the long form of a test repeats the outage; once in the short form.
fn rounds() -> usize {
    number_from_env("EXPERTISE_TEST_OUTAGE_ROUNDS").map_or(1, |rounds| rounds as usize)
}

/// The deadline of calls that must end in time.
const DEADLINE: Duration = Duration::from_secs(1);
/// What a busy machine may add to a time-out.
const SLACK: Duration = Duration::from_secs(3);

/// The code of a response, and how long it took.
#[derive(Debug)]
struct TimedCode {
    code: Code,
    took: Duration,
}

/// Makes a call with a deadline. Tonic's client would cancel it at the deadline; this one
/// leaves that to the server.
async fn call_with_deadline(
    client: &Client,
    method: &str,
    message: &impl Message,
    deadline: Duration,
) -> TimedCode {
    let connection = Http2Connection::to(client.address()).await;
    let timeout = format!("{}m", deadline.as_millis());
    let headers = [
        ("x-account-id", client.account()),
        ("grpc-timeout", &timeout),
    ];
    let started = Instant::now();
    let response = connection.try_call(method, &headers, framed_message(message));
    TimedCode {
        code: response.await.expect("a response").status().code(),
        took: started.elapsed(),
    }
}

impl TimedCode {
    /// Asserts that the call was refused, and by [`DEADLINE`].
    #[track_caller]
    fn is_refused_in_time(&self) {
        let is_refused = matches!(self.code, Code::DeadlineExceeded | Code::Unavailable);
        assert!(is_refused, "{self:?}");
        assert!(self.took < DEADLINE + SLACK, "{self:?}");
    }
}
