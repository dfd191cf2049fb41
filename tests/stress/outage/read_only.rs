//! A PostgreSQL that an administrator makes read-only for a while.

use super::{END_SESSIONS, prelude::*, rounds, serve};

const CLIENTS: usize = 4;
/// Applies what ALTER SYSTEM has set.
const RELOAD: &str = "SELECT pg_reload_conf()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn writes_are_refused_while_postgres_is_read_only_and_reads_go_on() {
    let _machine = machine::shared();
    let name = "read-only";
    let cluster = Cluster::start("read-only.cluster", &["fsync=off"]);
    let service = serve(name, &cluster.url(), &[]);
    let client = service.client();
    let known = client.given_task(task("Known")).await;
    let mut load = Writers::start(name, service.address(), CLIENTS).await;
    let mut admin = SqlConnection::open(&cluster.url()).await;
    // Statements that make PostgreSQL read-only, and statements that undo it.
    let settings = [
        // For every session, at once.
        (
            [
                "ALTER SYSTEM SET default_transaction_read_only = on",
                RELOAD,
            ],
            ["ALTER SYSTEM RESET default_transaction_read_only", RELOAD],
        ),
        // For new sessions alone, so those of the service are ended. The sessions that it
        // opens then stay read-only after the reset.
        (
            [
                "ALTER DATABASE postgres SET default_transaction_read_only = on",
                END_SESSIONS,
            ],
            [
                // The session of the administrator may have become read-only too.
                "SET default_transaction_read_only = off",
                "ALTER DATABASE postgres RESET default_transaction_read_only",
            ],
        ),
    ];
    for _ in 0..rounds() {
        for (set, reset) in settings {
            load.wait_until_served(20).await;
            for statement in set {
                admin.execute(statement).await;
            }
            load.wait_until_writes_are_refused(10).await;
            load.wait_until_reads_are_served(20).await;
            the_error_says_that_writes_are_refused(&client, &known).await;
            for statement in reset {
                admin.execute(statement).await;
            }
            load.wait_until_served_without_errors().await;
        }
    }
    let history = load.end().await;
    history.has_no_errors_but(name, &[Code::Unavailable, Code::Aborted]);
}

async fn the_error_says_that_writes_are_refused(client: &Client, known: &Task) {
    until("writes are refused", async || {
        let refused = client
            .create_task(task("More"))
            .await
            .err()
            .map(Failure::from);
        let refused = refused
            .filter(|refused| refused.message.contains("does not currently accept writes"))?;
        refused.is(Code::Unavailable, "STORE_UNAVAILABLE");
        Some(())
    })
    .await;
    assert_eq!(client.get_task(&known.guid).await.accepted(), *known);
}
