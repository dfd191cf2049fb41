//! The order of a task's steps during changes. `deleted_steps` has the law that inserts, deletions
//! and restores behave like those of a list.

use crate::prelude::*;
use proptest::{collection::vec, prelude::*, sample::Index};

/// Deletes a step or inserts one behind it, or appends one, by a call and in the list.
async fn change(client: &Client, task: &Task, list: &mut Vec<String>, place: Index, deletes: bool) {
    let at = place.index(list.len() + 1);
    if deletes && at < list.len() {
        client.delete_step(&list.remove(at)).await.accepted();
        return;
    }
    let prevstep = list.get(at).cloned().unwrap_or_default();
    let new = information_step(task, "step");
    let created = client.create_step_after(new, &prevstep).await.accepted();
    let at = list.len().min(at + 1);
    list.insert(at, created.step.unwrap().guid);
}

#[apply(property_on_both_databases)]
#[cases(16, (4..12_usize, 1..4_i32, vec(any::<(Index, bool)>(), 0..12)))]
async fn paging_neither_repeats_nor_skips_steps_that_stay(
    client: Client,
    (count, page_size, changes): (usize, i32, Vec<(Index, bool)>),
) {
    let task = client.given_task(task("Paged")).await;
    let mut list = client.given_steps(&task, &vec!["there"; count]).await;
    let there = list.clone();
    let mut changes = changes.into_iter();
    let mut request = list_steps_of(&task.guid).with(|it| it.page_size = page_size);
    let mut found = Vec::new();
    loop {
        let page = client.call(request.clone()).await.accepted();
        found.extend(page.steps.into_iter().map(|step| step.guid));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
        if let Some((place, deletes)) = changes.next() {
            change(&client, &task, &mut list, place, deletes).await;
        }
    }
    let throughout: Vec<&String> = there.iter().filter(|guid| list.contains(guid)).collect();
    let seen: Vec<&String> = found
        .iter()
        .filter(|guid| throughout.contains(guid))
        .collect();
    assert_eq!(seen, throughout);
    let mut once = found.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), found.len(), "repeated");
}

/// Each new step goes between the newest step and its left or right neighbour in turn:
/// the worst case for order keys that halve an interval.
#[apply(on_both_databases)]
async fn inserts_between_the_newest_neighbours_keep_their_order_beyond_a_new_numbering(
    client: Client,
) {
    let task = client.given_task(task("Zig-zag")).await;
    client.given_steps(&task, &["first", "last"]).await;
    let (task, last) = client.nearly_full(&task).await;
    let mut expected = task.steps.clone();
    let mut left = expected.iter().position(|step| *step == last).unwrap();
    for n in 0..2 * INSERTS_UNTIL_RENUMBERED {
        let prevstep = expected[left].clone();
        let created = client.create_step_after(information_step(&task, "between"), &prevstep);
        let created = created.await.accepted().step.unwrap();
        expected.insert(left + 1, created.guid);
        if n % 2 == 0 {
            left += 1;
        }
    }
    assert_eq!(client.step_order(&task.guid).await, expected);
    let listed = client.steps_of(&task.guid, 37).await;
    let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
    assert!(listed == expected, "pages repeat, skip or mix steps");
}
