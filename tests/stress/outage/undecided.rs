//! A connection that breaks between a commit of PostgreSQL and its answer.

use super::{prelude::*, serve};

const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_write_whose_commit_is_not_answered_has_an_unknown_outcome_and_is_done_once_when_repeated()
 {
    let _machine = machine::shared();
    let name = "undecided";
    let cluster = shared_cluster();
    let direct = cluster.make_database(name);
    let relay = Relay::to(cluster.port());
    let service = serve(name, &relay.url(&direct), &[]);
    let client = service.client();
    let mut load = Writers::start(name, service.address(), CLIENTS).await;
    load.wait_until_served(20).await;

    relay.start_losing_commits();
    let request = create_task_request(task("Made")).with(|it| it.request_id = unknown_guid());
    let sent = client.call(request.clone()).await;
    let refused = sent.refused();
    refused.is(Code::Unavailable, "STORE_UNAVAILABLE");
    let outcome = refused.metadata().remove("outcome");
    assert_eq!(outcome.as_deref(), Some("unknown"), "{refused:?}");
    load.wait_until_writes_are_refused(20).await;
    load.wait_until_reads_are_served(20).await;
    relay.stop_losing_commits();

    let made = client.all_tasks().await;
    assert_eq!(made.len(), 1);
    let repeated = client.call(request).await.accepted();
    assert_eq!(repeated.task.as_ref(), made.first());
    assert_eq!(client.all_tasks().await, made);
    load.wait_until_served_without_errors().await;
    let history = load.end().await;
    history.has_no_errors_but(name, &[Code::Unavailable, Code::Aborted]);
}
