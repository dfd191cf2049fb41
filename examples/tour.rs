//! A tour of the service: `cargo run --example tour`.
//!
//! Serves on a temporary SQLite database in this process, imports one of the
//! guides of `examples/guides` through the generated client, edits it, and
//! prints what a caller sees. Ends with an error when anything turns out
//! otherwise than the tour says.

#[path = "tour/authoring.rs"]
mod authoring;
#[path = "tour/desk.rs"]
mod desk;
#[path = "tour/editing.rs"]
mod editing;
#[path = "tour/guide.rs"]
mod guide;
#[path = "tour/reading.rs"]
mod reading;
#[path = "tour/safety.rs"]
mod safety;
#[path = "tour/show.rs"]
mod show;

use std::net::SocketAddr;

use expertise::{config::Config, server::Server};
use tokio::sync::oneshot;

use self::desk::Desk;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("tour.db");
    let config = Config::for_tests(&format!("sqlite:{}", database.display()));
    let server = Server::bind(config).await?;
    show::stage("A server in this process");
    show::say(server.start_line());

    let address = server.local_addr();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    let outcome = tour(address).await;
    drop(stop);
    serving.await?;
    outcome
}

async fn tour(server: SocketAddr) -> anyhow::Result<()> {
    let desk = Desk::open(server, "tour").await?;
    let stranger = Desk::open(server, "somebody-else").await?;

    let guide = authoring::import_a_guide(&desk).await?;
    let (restart, step) = editing::insert_a_subtask(&desk, &guide).await?;
    editing::rename_the_subtask(&desk, &restart, &step).await?;
    editing::rename_by_answer(&desk, &guide).await?;
    editing::patch_a_title(&desk, &guide).await?;
    editing::translate(&desk, &guide).await?;
    editing::read_the_receipt(&desk, &guide).await?;
    safety::run_dry(&desk, &guide).await?;
    safety::see_every_violation(&desk, &guide).await?;
    safety::collide(&desk, &guide).await?;
    safety::retry(&desk, &guide).await?;
    safety::stay_apart(&stranger, &guide).await?;
    reading::list(&desk, &guide).await?;
    reading::turn_pages(&desk, &guide).await?;
    authoring::export_it(&desk, &guide).await?;
    reading::delete(&desk, &guide, &restart).await
}
