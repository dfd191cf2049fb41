//! A connection that breaks after PostgreSQL has done a COMMIT and before it could
//! say so.

use crate::harness::{database, prelude::*, serve};

const CALLERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_commit_is_not_answered_says_so_and_is_done_once_when_repeated() {
    let name = "undecided";
    let Some((url, port)) = database(name) else {
        return;
    };
    let relay = Relay::to(port);
    let url = url.replace(&port.to_string(), &relay.port().to_string());
    let server = serve(name, &url, &[]);
    let world = World::at(server.address());
    let mut load = Load::on(server.address(), CALLERS);
    load.is_served(20).await;

    relay.start_losing_commits();
    let request = CreateTaskRequest {
        task: Some(task("Made")),
        request_id: unknown_guid(),
        ..CreateTaskRequest::default()
    };
    let sent = world.tasks().create_task(request.clone()).await;
    let refused = sent.refused();
    refused.is(Code::Unavailable, "STORE_UNAVAILABLE");
    let outcome = refused.metadata().remove("outcome");
    assert_eq!(outcome.as_deref(), Some("unknown"), "{refused:?}");
    load.writes_are_refused(20).await;
    load.reads_are_served(20).await;
    relay.stop_losing_commits();

    let made = world.all_tasks().await;
    assert_eq!(made.len(), 1);
    let repeated = world.tasks().create_task(request).await;
    let repeated = repeated.accepted().into_inner();
    assert_eq!(repeated.task.as_ref(), made.first());
    assert_eq!(world.all_tasks().await, made);
    load.is_well().await;
    let history = load.end().await;
    history.tells(name, &[Code::Unavailable, Code::Aborted]);
}
