#![allow(clippy::expect_used)]

use futures_util::FutureExt;

use super::*;

const MIB: usize = 1024 * 1024;

fn share(budget: &Arc<Budget>, claim: usize) -> Share {
    budget.share(claim).expect("room")
}

#[test]
fn a_claim_takes_room_only_as_its_bytes_arrive() {
    let budget = Budget::new(64 * MIB);
    let claims: Vec<Share> = (0..1000).map(|_| share(&budget, 60 * MIB)).collect();
    for claim in &claims {
        claim.cover(5).expect("room");
    }
    assert!(budget.used.load(Ordering::Relaxed) < 5 * MIB);
}

#[test]
fn bytes_that_arrive_beyond_the_limit_are_refused_and_leave_room_when_they_go() {
    let budget = Budget::new(64 * MIB);
    let (first, second) = (share(&budget, 40 * MIB), share(&budget, 40 * MIB));
    first.cover(40 * MIB).expect("room");
    assert_eq!(second.cover(40 * MIB), Err(Full));
    drop(first);
    second.cover(40 * MIB).expect("room");
    drop(second);
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
}

#[test]
fn what_cannot_fit_is_refused_by_its_claim() {
    let budget = Budget::new(64 * MIB);
    let first = share(&budget, 40 * MIB);
    first.cover(40 * MIB).expect("room");
    assert!(budget.share(40 * MIB).is_err());
    drop(first);
    assert!(budget.share(64 * MIB).is_ok(), "alone, it may have all");
}

#[test]
fn small_calls_find_room_where_large_ones_do_not() {
    let budget = Budget::new(64 * MIB);
    let large = share(&budget, 64 * MIB);
    large.cover(60 * MIB).expect("room");
    assert!(budget.share(MIB).is_err());
    share(&budget, 1000).cover(1000).expect("room");
}

#[test]
fn an_answer_counts_even_where_there_is_no_room() {
    let budget = Budget::new(MIB);
    let reading = share(&budget, 10);
    reading.cover(10).expect("room");
    reading.stretch(2 * MIB);
    assert!(budget.share(10).is_err());
    drop(reading);
    assert!(budget.share(10).is_ok());
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_are_worked_on_wait_half_of_their_time() {
    let turns = Turns::new(MIB);
    let mut held = Vec::new();
    for _ in 0..CALLS {
        held.push(turns.take(None, 10, soon()).await.expect("a turn"));
    }
    let begun = Instant::now();
    assert!(turns.take(None, 10, soon()).await.is_err());
    assert_eq!(begun.elapsed().as_secs(), 5);
    held.pop();
    assert!(turns.take(None, 10, soon()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_refuses_at_once() {
    let turns = Turns::new(MIB);
    let mut held = Vec::new();
    for _ in 0..CALLS {
        held.push(turns.take(None, 10, soon()).await.expect("a turn"));
    }
    let mut waiting = Vec::new();
    for _ in 0..QUEUE {
        let mut turn = Box::pin(turns.take(None, 10, soon()));
        assert!((&mut turn).now_or_never().is_none());
        waiting.push(turn);
    }
    assert!(matches!(
        turns.take(None, 10, soon()).now_or_never(),
        Some(Err(Full))
    ));
    waiting.pop();
    assert!(turns.take(None, 10, soon()).now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_had_is_waited_in() {
    let turns = Turns::new(MIB);
    let mut places: Vec<_> = (0..QUEUE).map(|_| turns.place().ok()).collect();
    assert!(turns.place().is_err());
    assert!(turns.take(None, 10, soon()).await.is_err());
    let place = places.pop().expect("the last");
    assert!(turns.take(place, 10, soon()).await.is_ok());
    assert_eq!(turns.waiting(), QUEUE - 1);
    assert!(turns.place().is_ok(), "it is free again");
}

#[tokio::test(start_paused = true)]
async fn large_calls_wait_for_each_other_and_small_ones_do_not() {
    let turns = Turns::new(64 * MIB);
    let first = turns.take(None, 3 * MIB, soon()).await.expect("a turn");
    let mut second = Box::pin(turns.take(None, 3 * MIB, soon()));
    assert!((&mut second).now_or_never().is_none());
    assert!(turns.take(None, SMALL, soon()).now_or_never().is_some());
    drop(first);
    assert!(second.await.is_ok());
    assert!(turns.take(None, 100 * MIB, soon()).await.is_ok(), "alone");
}
