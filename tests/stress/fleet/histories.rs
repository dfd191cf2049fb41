//! Histories of writes at both servers at once leave an account as consistent as with a
//! single server, and both servers answer alike.

use futures_util::future::join_all;
use tonic::Status;

use super::prelude::*;
use crate::{
    kit::{links::links_are_consistent, random_writes::Write, rng::Rng},
    variables::number_from_env,
};

/// Writers at each server, each over a connection of its own.
const WRITERS: usize = 4;
/// Changes that each of them makes in a round.
const CHANGES: usize = 12;

/// How many rounds, each in an account of its own.
fn rounds() -> u64 {
    number_from_env("EXPERTISE_TEST_FLEET_ROUNDS").unwrap_or(4)
}

#[apply(on_two_servers)]
async fn histories_at_both_servers_leave_an_account_consistent(clients: [Client; 2]) {
    for round in 0..rounds() {
        let account = unknown_guid();
        let clients = clients.clone().map(|client| client.with_account(&account));
        let question = linked_observation(&[("a", "Red"), ("b", "Green"), ("c", "Blinks")]);
        clients[0].imported(document("Lamp", vec![question])).await;
        let writers = (0..2 * WRITERS).map(|writer| {
            let rng = Rng::new(round * 1_000 + writer as u64);
            write(clients[writer % 2].over_new_connection(), rng)
        });
        join_all(writers).await;
        both_servers_agree(&clients).await;
        links_are_consistent(&clients[round as usize % 2].tasks_with_steps().await);
    }
}

/// Makes random writes. What others have deleted meanwhile is missing, what they have changed has
/// another etag, and an external id may be theirs.
async fn write(client: Client, mut rng: Rng) {
    for number in 0..CHANGES {
        let call = match Write::random(&mut rng).call(&client, number).await {
            Ok(Some(call)) => call,
            Ok(None) => continue,
            Err(status) => {
                allowed(status);
                continue;
            }
        };
        if let Err(status) = call.send(&client).await {
            allowed(status);
        }
    }
}

/// Asserts that the error is one of a rule: a serialization failure or a deadlock of the database
/// is never a client's error.
#[track_caller]
fn allowed(status: Status) {
    let failure = Failure::from(status);
    let of_a_rule = [
        Code::NotFound,
        Code::FailedPrecondition,
        Code::InvalidArgument,
    ];
    let is_allowed = of_a_rule.contains(&failure.code)
        || ["ETAG_MISMATCH", "EXTERNAL_ID_TAKEN"].contains(&failure.reason());
    assert!(is_allowed, "{failure:?}");
}

/// Asserts that both servers answer all reads of the account alike.
async fn both_servers_agree(clients: &[Client; 2]) {
    let read = async |client: &Client| {
        let state = client.tasks_with_steps().await;
        let exported = state.iter().map(|(task, _)| client.exported(&task.guid));
        let exported = join_all(exported).await;
        let work = client.list(translation_work_request(&["de", "es"])).await;
        (state, exported, work)
    };
    assert_eq!(read(&clients[0]).await, read(&clients[1]).await);
}
