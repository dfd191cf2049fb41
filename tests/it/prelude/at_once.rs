//! Calls of many clients at the same time.

use tokio::task::JoinSet;
use tonic::Status;

use crate::kit::{client::Client, failure::Failure};

/// Runs a call of each of so many clients, numbered from 0, at the same time.
pub async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    client: &Client,
    clients: usize,
    call: impl Fn(Client, usize) -> F,
) -> Vec<T> {
    let mut calls = JoinSet::new();
    for number in 0..clients {
        calls.spawn(call(client.over_new_connection(), number));
    }
    calls.join_all().await
}

/// The answer of the only call that was accepted, and the errors of the others.
pub fn the_one_accepted<T>(answers: Vec<Result<T, Status>>) -> (T, Vec<Failure>) {
    let (accepted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let mut accepted = accepted.into_iter().flatten();
    let one = accepted.next().expect("an accepted call");
    assert_eq!(accepted.count(), 0);
    let refused = refused.into_iter().filter_map(Result::err);
    (one, refused.map(Failure::from).collect())
}
