//! The floor: a bare server that answers the same calls with the same messages.
//!
//! Each call is one hand-written prepared statement over sqlx for what it must
//! read or write durably. Nothing is checked, nobody is asked who they are, and
//! what is asked for and not there is a panic. The tables are its own: what an
//! answer can depend on is in the row, the body with the rest.

mod answer;
mod create;
mod import;
mod read;
mod row;
pub mod schema;
pub mod sql;
mod update;

use std::{env, io::Write};

use expertise::proto::v1::{
    step_service_server::StepServiceServer, task_service_server::TaskServiceServer,
};
use tokio::{net::TcpListener, runtime::Runtime};
use tonic::transport::{Server, server::TcpIncoming};

pub use answer::ACCOUNT;
use schema::Database;

/// As the service has them, so that a large request costs no more round trips.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// How a step is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creating {
    /// By what is sent to the database at once.
    Bare,
    /// By one transaction of six statements over SeaORM, as a service is written
    /// that does nothing about the cost of each.
    SixStatements,
}

/// The services, on a database.
#[derive(Clone)]
pub struct Floor {
    database: Database,
    creating: Creating,
}

/// Serves until it is killed. Settings are those of `expertise`.
pub fn serve(creating: Creating) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let url = env::var("EXPERTISE_DATABASE_URL").expect("a database");
        let address = env::var("EXPERTISE_LISTEN").expect("an address");
        let floor = Floor {
            database: Database::open(&url).await,
            creating,
        };
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        say(&format!("floor 0.0.0 listening on {address}\n"));
        Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .add_service(StepServiceServer::new(floor.clone()))
            .add_service(TaskServiceServer::new(floor))
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await
            .expect("it serves");
    });
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
