//! The floor: a minimal server with the same messages as the service. It does only what any
//! such server must do. The service's speed is given as a ratio to the floor's.
//!
//! Most calls are one hand-written prepared statement over sqlx. Nothing is validated or
//! authenticated, and a missing row is a panic. The floor has its own tables, with the
//! body in the row of the step.

mod analysis;
mod create;
mod delete;
mod import;
mod read;
mod reimport;
mod row;
pub mod schema;
pub mod sql;
mod translate;
mod update;
mod values;

use std::{env, io::Write};

use expertise::proto::v1::{
    analysis_service_server::AnalysisServiceServer, step_service_server::StepServiceServer,
    task_service_server::TaskServiceServer, translation_service_server::TranslationServiceServer,
};
use tokio::{net::TcpListener, runtime::Runtime};
use tonic::transport::{Server, server::TcpIncoming};

use schema::Database;
pub use values::ACCOUNT;

/// The windows of the service, so that large requests take as many round trips.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// The services of the floor on a database.
#[derive(Clone)]
pub struct Floor {
    database: Database,
}

/// Serves until it is killed. Address and database are in the variables of `expertise`.
pub fn serve() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let url = env::var("EXPERTISE_DATABASE_URL").expect("a database");
        let address = env::var("EXPERTISE_LISTEN").expect("an address");
        let floor = Floor {
            database: Database::open(&url).await,
        };
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        print_line(&format!("floor 0.0.0 listening on {address}\n"));
        Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .add_service(StepServiceServer::new(floor.clone()))
            .add_service(TaskServiceServer::new(floor.clone()))
            .add_service(AnalysisServiceServer::new(floor.clone()))
            .add_service(TranslationServiceServer::new(floor))
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await
            .expect("it serves");
    });
}

fn print_line(line: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
