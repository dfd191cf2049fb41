//! A tour of the service: `cargo run --example tour`.
//!
//! Serves on a temporary SQLite database in this process, imports a guide of
//! `examples/guides` with the generated client, edits it, and prints the responses.
//! Ends with an error when a response is not as expected.

#[path = "tour/authoring.rs"]
mod authoring;
#[path = "tour/client.rs"]
mod client;
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

use self::client::Client;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("tour.db");
    let config = Config::for_tests(&format!("sqlite:{}", database.display()));
    let server = Server::bind(config).await?;
    show::heading("A server in this process");
    show::print_line(server.start_line());

    let address = server.local_addr();
    let (stop, stopped) = oneshot::channel::<()>();
    let (started, starting) = oneshot::channel();
    let serving = tokio::spawn(server.serve(
        || {
            let _ = started.send(());
        },
        async { drop(stopped.await) },
    ));
    let outcome = match starting.await {
        Ok(()) => tour(address).await,
        // The server says why it did not start.
        Err(_) => Ok(()),
    };
    drop(stop);
    serving.await??;
    outcome
}

async fn tour(server: SocketAddr) -> anyhow::Result<()> {
    let client = Client::open(server, "tour").await?;
    let other = Client::open(server, "somebody-else").await?;

    let guide = authoring::import_a_guide(&client).await?;
    let (restart, step) = editing::insert_a_subtask(&client, &guide).await?;
    editing::rename_the_subtask(&client, &restart, &step).await?;
    editing::change_a_linked_answer(&client, &guide).await?;
    editing::update_title(&client, &guide).await?;
    editing::translate(&client, &guide).await?;
    editing::ignored_paths_of_update(&client, &guide).await?;
    safety::dry_run(&client, &guide).await?;
    safety::every_violation(&client, &guide).await?;
    safety::etag_conflict(&client, &guide).await?;
    safety::repeat_a_create(&client, &guide).await?;
    safety::other_account(&other, &guide).await?;
    reading::list(&client, &guide).await?;
    reading::pages(&client, &guide).await?;
    authoring::export(&client, &guide).await?;
    reading::delete(&client, &guide, &restart).await
}
