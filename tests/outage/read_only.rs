//! A PostgreSQL that an administrator sets to be read-only for a while.

use crate::harness::{admin, cluster, prelude::*, rounds, serve};

const CALLERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_refused_while_postgres_is_read_only_and_reads_go_on() {
    let name = "read-only";
    let Some(cluster) = cluster(name, &["fsync=off"]) else {
        return;
    };
    let server = serve(name, &cluster.url(), &[]);
    let world = World::at(server.address());
    let known = world.given_task(task("Known")).await;
    let mut load = Load::on(server.address(), CALLERS);
    let mut admin = admin::session(&cluster.url()).await;
    // What was set takes itself back: the administrator's sessions become
    // read-only too.
    let settings = [
        // For every session, at once.
        (
            "ALTER SYSTEM SET default_transaction_read_only = on",
            "ALTER SYSTEM RESET default_transaction_read_only",
            "SELECT pg_reload_conf()",
        ),
        // For sessions that begin from now on: the old ones stay as they were, so
        // those of the service are ended, and in the end stay read-only.
        (
            "ALTER DATABASE postgres SET default_transaction_read_only = on",
            "SET default_transaction_read_only = off; \
             ALTER DATABASE postgres RESET default_transaction_read_only",
            "",
        ),
    ];
    for _ in 0..rounds() {
        for (set, reset, then) in settings {
            load.is_served(20).await;
            admin::run(&mut admin, set).await;
            match then {
                "" => admin::run(&mut admin, admin::END_SESSIONS).await,
                then => admin::run(&mut admin, then).await,
            }
            load.writes_are_refused(10).await;
            load.reads_are_served(20).await;
            says_what_is_wrong(&world, &known).await;
            admin::run(&mut admin, reset).await;
            admin::run(&mut admin, then).await;
            load.is_well().await;
        }
    }
    let history = load.end().await;
    history.tells(name, &[Code::Unavailable, Code::Aborted]);
}

async fn says_what_is_wrong(world: &World, known: &Task) {
    until("writes are refused", async || {
        let refused = world
            .create_task(task("More"))
            .await
            .err()
            .map(Failure::from);
        let refused = refused.filter(|refused| refused.message.contains("takes no writes"))?;
        refused.is(Code::Unavailable, "STORE_UNAVAILABLE");
        Some(())
    })
    .await;
    assert_eq!(world.get_task(&known.guid).await.accepted(), *known);
}
