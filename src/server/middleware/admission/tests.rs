#![allow(clippy::expect_used)]

use std::{cell::Cell, sync::LazyLock, time::Duration};

use futures_util::FutureExt;
use tokio::time::timeout_at;

use super::*;

const MIB: usize = 1024 * 1024;

fn named(account: &str) -> AccountId {
    AccountId::parse(account).expect("an account")
}

fn try_reserve(
    budget: &Arc<MemoryBudget>,
    declared: usize,
) -> Result<MemoryReservation, AtCapacity> {
    budget.reserve(&named("42"), declared)
}

fn reserve(budget: &Arc<MemoryBudget>, declared: usize) -> MemoryReservation {
    try_reserve(budget, declared).expect("capacity")
}

#[test]
fn a_message_takes_memory_only_as_its_bytes_arrive() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let messages: Vec<MemoryReservation> = (0..1000).map(|_| reserve(&budget, 60 * MIB)).collect();
    for message in &messages {
        message.cover(5).expect("capacity");
    }
    assert!(budget.used() < 5 * MIB);
}

#[test]
fn bytes_beyond_the_limit_are_refused_until_others_are_released() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let (first, second) = (reserve(&budget, 40 * MIB), reserve(&budget, 40 * MIB));
    first.cover(40 * MIB).expect("capacity");
    assert_eq!(second.cover(40 * MIB), Err(AtCapacity));
    assert_eq!(budget.refused.get(), 1);
    drop(first);
    second.cover(40 * MIB).expect("capacity");
    drop(second);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_message_that_cannot_fit_is_refused_by_its_declared_length() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let first = reserve(&budget, 40 * MIB);
    first.cover(40 * MIB).expect("capacity");
    assert!(try_reserve(&budget, 40 * MIB).is_err());
    drop(first);
    assert!(
        try_reserve(&budget, 64 * MIB).is_ok(),
        "alone, it may have all"
    );
}

#[test]
fn small_calls_fit_where_large_ones_do_not() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let large = reserve(&budget, 64 * MIB);
    large.cover(51 * MIB).expect("capacity");
    assert!(try_reserve(&budget, MIB).is_err());
    reserve(&budget, 1000).cover(1000).expect("capacity");
}

#[test]
fn one_account_leaves_memory_to_others() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let of = |account: &str, bytes| -> Result<MemoryReservation, AtCapacity> {
        let call = budget.reserve(&named(account), bytes)?;
        call.cover(bytes)?;
        Ok(call)
    };
    let fill = |bytes| std::iter::from_fn(|| of("busy", bytes).ok()).collect::<Vec<_>>();
    let large = fill(MIB);
    assert_eq!(large.len(), 48, "three quarters");
    let small = fill(SMALL_CALL_BYTES);
    let sixteenth = 4 * MIB;
    assert_eq!(small.len(), sixteenth / SMALL_CALL_BYTES);
    let others = [8 * MIB, SMALL_CALL_BYTES].map(|bytes| of("other", bytes).expect("a share"));
    drop((large, small, others));
    // The only call of an account may have more, and leaves less to its others than to those of
    // another account.
    let only = of("busy", 47 * MIB).expect("capacity");
    only.cover(50 * MIB).expect("capacity");
    assert!(of("busy", MIB).is_err());
    assert!(of("other", MIB).is_ok());
    drop(only);
    assert!(budget.lock().by_account.is_empty());
}

#[test]
fn a_response_counts_even_where_it_does_not_fit() {
    let budget = MemoryBudget::new(MIB, &RejectedCalls::default());
    let reading = reserve(&budget, 10);
    reading.cover(10).expect("capacity");
    reading.hold_response(2 * MIB);
    assert!(try_reserve(&budget, 10).is_err());
    drop(reading);
    assert!(try_reserve(&budget, 10).is_ok());
}

#[test]
fn streams_of_health_and_reflection_take_nothing_from_other_calls() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let stream = || budget.reserve_for_probe(4096, true);
    let streams: Vec<ProbeReservation> = std::iter::from_fn(|| stream().ok()).collect();
    assert_eq!(streams.len(), 4 * MIB / 4096, "a sixteenth of the budget");
    assert_eq!(budget.used(), 4 * MIB);
    let check = budget.reserve_for_probe(4096, false);
    assert!(check.is_ok(), "a check is never refused");
    let alone = reserve(&budget, 64 * MIB);
    alone.cover(64 * MIB).expect("all that calls may hold");
    drop((streams, check));
    assert!(stream().is_ok());
}

#[test]
fn what_the_work_of_a_call_holds_counts_until_it_is_released() {
    let budget = MemoryBudget::new(64 * MIB, &RejectedCalls::default());
    let (first, second) = (reserve(&budget, 10), reserve(&budget, 10));
    first.cover(10).expect("capacity");
    second.cover(10).expect("capacity");
    assert!(first.try_reserve_work(40 * MIB));
    assert!(!second.try_reserve_work(40 * MIB));
    assert!(!first.try_reserve_response(40 * MIB));
    first.release_work(40 * MIB);
    assert!(second.try_reserve_work(40 * MIB));
    drop(second);
    assert_eq!(budget.used(), 10);
    assert!(!first.try_reserve_work(64 * MIB + 1), "more than all");
    assert!(first.try_reserve_work(64 * MIB), "alone, it may have all");
    drop(first);
    assert_eq!(budget.used(), 0);
}

/// One of two accounts, in turn: neither has more than three quarters of the permits.
fn account() -> &'static AccountId {
    static ACCOUNTS: LazyLock<[AccountId; 2]> = LazyLock::new(|| ["42", "43"].map(named));
    thread_local!(static IS_FIRST: Cell<bool> = const { Cell::new(false) });
    let [first, second] = &*ACCOUNTS;
    let is_first = !IS_FIRST.get();
    IS_FIRST.set(is_first);
    if is_first { first } else { second }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// Waits for a permit with a deadline of ten seconds. Panics if it is neither given nor
/// refused by then.
async fn acquire(
    queue: &WorkQueue,
    slot: Option<QueueSlot>,
    bytes: usize,
) -> Result<WorkPermit, AtCapacity> {
    let deadline = soon();
    let answer = timeout_at(
        deadline,
        queue.acquire(slot, account(), WorkKind::Other, bytes, deadline),
    )
    .await;
    answer.expect("a permit or a refusal")
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_permit_until_half_of_the_time_to_their_deadline() {
    let queue = WorkQueue::new(MIB, &RejectedCalls::default());
    let mut held = Vec::new();
    for _ in 0..MAX_CALLS_IN_WORK {
        held.push(acquire(&queue, None, 10).await.expect("a permit"));
    }
    let started = Instant::now();
    assert!(acquire(&queue, None, 10).await.is_err());
    assert_eq!(started.elapsed().as_secs(), 5);
    let refused = (queue.refused_late.get(), queue.refused_full.get());
    assert_eq!(refused, (1, 0));
    held.pop();
    assert!(acquire(&queue, None, 10).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once() {
    let queue = WorkQueue::new(MIB, &RejectedCalls::default());
    let mut held = Vec::new();
    for _ in 0..MAX_CALLS_IN_WORK {
        held.push(acquire(&queue, None, 10).await.expect("a permit"));
    }
    let mut waiting = Vec::new();
    for _ in 0..MAX_QUEUED_CALLS {
        let mut permit = Box::pin(queue.acquire(None, account(), WorkKind::Other, 10, soon()));
        assert!((&mut permit).now_or_never().is_none());
        waiting.push(permit);
    }
    assert!(matches!(
        queue
            .acquire(None, account(), WorkKind::Other, 10, soon())
            .now_or_never(),
        Some(Err(AtCapacity))
    ));
    let refused = (queue.refused_late.get(), queue.refused_full.get());
    assert_eq!(refused, (0, 1));
    waiting.pop();
    assert!(
        queue
            .acquire(None, account(), WorkKind::Other, 10, soon())
            .now_or_never()
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn one_account_leaves_a_quarter_of_the_queue_to_others() {
    let queue = WorkQueue::new(MIB, &RejectedCalls::default());
    let [busy, other] = ["busy", "other"].map(named);
    let mut held = Vec::new();
    for _ in 0..MAX_CALLS_IN_WORK {
        held.push(acquire(&queue, None, 10).await.expect("a permit"));
    }
    let wait = |account| Box::pin(queue.acquire(None, account, WorkKind::Other, 10, soon()));
    let mut waiting = Vec::new();
    for _ in 0..MAX_QUEUED_CALLS * 3 / 4 {
        let mut permit = wait(&busy);
        assert!((&mut permit).now_or_never().is_none());
        waiting.push(permit);
    }
    let refused = wait(&busy).now_or_never();
    assert!(matches!(refused, Some(Err(AtCapacity))));
    assert_eq!(queue.refused_full.get(), 1);
    let mut permit = wait(&other);
    assert!((&mut permit).now_or_never().is_none(), "it waits");
    // The busy account is first, and then it is the other one's turn.
    held.truncate(MAX_CALLS_IN_WORK - 2);
    assert!(permit.await.is_ok());
    waiting.pop();
    assert!(wait(&busy).now_or_never().is_none(), "it waits");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_in_the_slot_that_it_has() {
    let queue = WorkQueue::new(MIB, &RejectedCalls::default());
    let mut slots: Vec<_> = (0..MAX_QUEUED_CALLS).map(|_| queue.slot().ok()).collect();
    assert!(queue.slot().is_err());
    assert!(acquire(&queue, None, 10).await.is_err());
    let slot = slots.pop().expect("the last");
    assert!(acquire(&queue, slot, 10).await.is_ok());
    assert_eq!(queue.waiting(), MAX_QUEUED_CALLS - 1);
    assert!(queue.slot().is_ok(), "it is free again");
}

#[tokio::test(start_paused = true)]
async fn large_calls_wait_for_each_other_and_small_ones_do_not() {
    let queue = WorkQueue::new(64 * MIB, &RejectedCalls::default());
    let first = acquire(&queue, None, 3 * MIB).await.expect("a permit");
    let mut second = Box::pin(acquire(&queue, None, 3 * MIB));
    assert!((&mut second).now_or_never().is_none());
    assert!(
        queue
            .acquire(None, account(), WorkKind::Other, SMALL_CALL_BYTES, soon())
            .now_or_never()
            .is_some()
    );
    drop(first);
    assert!(second.await.is_ok());
    assert!(acquire(&queue, None, 100 * MIB).await.is_ok(), "alone");
}

#[tokio::test(start_paused = true)]
async fn others_do_not_wait_behind_large_analyses() {
    let queue = WorkQueue::new(64 * MIB, &RejectedCalls::default());
    let analyse = || queue.acquire(None, account(), WorkKind::Analysis, MIB, soon());
    let mut held = Vec::new();
    while let Some(permit) = analyse().now_or_never() {
        held.push(permit.expect("a permit"));
    }
    assert_eq!(held.len(), processors().min(4));
    let mut waiting = Box::pin(analyse());
    assert!((&mut waiting).now_or_never().is_none());
    if held.len() < 4 {
        let other = queue.acquire(None, account(), WorkKind::Other, MIB, soon());
        assert!(other.now_or_never().is_some());
    }
    let small = queue.acquire(
        None,
        account(),
        WorkKind::Analysis,
        SMALL_CALL_BYTES,
        soon(),
    );
    assert!(
        small.now_or_never().is_some(),
        "small ones take their turns elsewhere"
    );
    held.pop();
    assert!(waiting.await.is_ok());
}
