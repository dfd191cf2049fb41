//! Concurrent edits of people and automatic writes: no locked row is overwritten, and
//! no row made from an old source counts as current.

use super::{DE, row_of_step, row_of_task, state, unlocked_name, unlocked_title, work_on};
use crate::prelude::*;
use futures_util::FutureExt;
use tokio::task::JoinSet;

const CLIENTS: usize = 8;
const ROUNDS: usize = 3;

/// Runs many rounds of a race in each of several accounts at the same time. A round gets a number and
/// two connections.
async fn race<R, F>(client: &Client, round: R)
where
    R: Fn(Client, Client, usize) -> F + Copy + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let clients = at_once(client, CLIENTS, |client, first| async move {
        let person = client.other_account();
        let machine = person.over_new_connection();
        for number in 0..ROUNDS {
            round(person.clone(), machine.clone(), first + number).await;
        }
    });
    clients.await;
}

/// Runs both sides of a round concurrently. Which one starts first alternates between rounds.
async fn both<A, B>(
    number: usize,
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> (A, B) {
    let moment = async |turn: usize| {
        if number % 3 == turn {
            tokio::time::sleep(std::time::Duration::from_micros(500)).await;
        }
    };
    tokio::join!(moment(0).then(|()| one), moment(1).then(|()| other))
}

/// Locked rows of a task and of a step are written while the machine writes them.
#[apply(on_both_databases)]
async fn a_person_who_writes_a_row_meanwhile_keeps_it(client: Client) {
    race(&client, |person, machine, number| async move {
        let guide = person.given_task(task("Pump")).await.guid;
        let step = information_step(&task_of(&guide), "Look");
        let step = person.given_step(step).await.guid;
        let of_task = work_on(&machine, &guide).await;
        let of_step = work_on(&machine, &step).await;
        let name = row_of_task(&guide, task_translation("person"));
        let title = row_of_step(&step, step_translation("person"));
        let writes = async {
            machine.written(automatic(&of_task, "machine")).await;
            machine.written(automatic(&of_step, "machine")).await;
        };
        let edits = async {
            person.update_task(name, &[]).await.accepted();
            person.update_step(title, &[]).await.accepted();
        };
        both(number, edits, writes).await;
        let task = person.get_task(&guide).await.accepted();
        let expected = task_translation("person").with_lock(true);
        assert_eq!(task.translations["de"], expected);
        let step = person.get_step(&step).await.accepted();
        let expected = step_translation("person").with_lock(true);
        assert_eq!(step.translations["de"], expected);
        let late = machine.written(automatic(&of_step, "machine")).await;
        assert_eq!(late, TranslationResult::SkippedLocked);
    })
    .await;
}

/// Locking keeps the row as it is: the automatic one if its write came first, which
/// then reports WRITTEN.
#[apply(on_both_databases)]
async fn a_row_locked_by_mask_meanwhile_holds_what_was_locked(client: Client) {
    race(&client, |person, machine, number| async move {
        let guide = person.given_task(task("Pump")).await;
        let sent = information_step(&guide, "Look").translated("de", unlocked_title("person"));
        let guid = person.given_step(sent).await.guid;
        person.retitle(&guid, "Listen").await;
        let work = work_on(&machine, &guid).await;
        let lock = StepTranslation::default().with_lock(true);
        let update = row_of_step(&guid, lock);
        let (updated, became) = both(
            number,
            person.update_step(update, &["translations.de.locked"]),
            machine.written(automatic(&work, "machine")),
        )
        .await;
        let updated = updated.accepted().step.unwrap();
        let read = person.get_step(&guid).await.accepted();
        assert_eq!(read, updated, "written after it was locked");
        let title = match became {
            TranslationResult::Written => "machine",
            TranslationResult::SkippedLocked => "person",
            other => panic!("{other:?}"),
        };
        let expected = step_translation(title).with_lock(true);
        assert_eq!(read.translations["de"], expected);
    })
    .await;
}

#[apply(on_both_databases)]
async fn a_row_locked_as_it_was_read_holds_what_was_read(client: Client) {
    race(&client, |person, machine, number| async move {
        let sent = task("Pump").translated("de", unlocked_name("person"));
        let guid = person.given_task(sent).await.guid;
        person.rename(&guid, "Valve").await;
        let read = person.get_task(&guid).await.accepted();
        let work = work_on(&machine, &guid).await;
        let lock = TaskTranslation {
            name: None,
            locked: Some(true),
        };
        let update = row_of_task(&guid, lock).with_etag(read.etag);
        let (updated, became) = both(
            number,
            person.update_task(update, &["translations.de.locked"]),
            machine.written(automatic(&work, "machine")),
        )
        .await;
        let read = person.get_task(&guid).await.accepted();
        let row = &read.translations["de"];
        match (updated, became) {
            (Ok(_), TranslationResult::SkippedLocked) => {
                assert_eq!((row.name(), row.locked()), ("person", true));
            }
            (Err(status), TranslationResult::Written) => {
                Failure::from(status).is(Code::Aborted, "ETAG_MISMATCH");
                assert_eq!((row.name(), row.locked()), ("machine", false));
            }
            both => panic!("{both:?}"),
        }
    })
    .await;
}

/// A change of a source.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Name,
    Title,
    Body,
    NameOfSubtask,
}

#[apply(on_both_databases)]
async fn a_source_that_changes_meanwhile_never_leaves_a_row_current(client: Client) {
    for edit in [Edit::Name, Edit::Title, Edit::Body, Edit::NameOfSubtask] {
        race(&client, move |person, machine, number| async move {
            let guide = person.given_task(task("Pump")).await;
            let other = person.given_task(task("Other")).await;
            let step = match edit {
                Edit::NameOfSubtask => subtask(&guide, &other),
                _ => information_step(&guide, "Look"),
            };
            let step = person.given_step(step).await.guid;
            let translated = match edit {
                Edit::Name => guide.guid.clone(),
                _ => step.clone(),
            };
            let work = work_on(&machine, &translated).await;
            let change = async {
                match edit {
                    Edit::Name => drop(person.rename(&guide.guid, "Valve").await),
                    Edit::NameOfSubtask => drop(person.rename(&other.guid, "Valve").await),
                    Edit::Title => drop(person.retitle(&step, "Listen").await),
                    Edit::Body => {
                        let update = step_of(&step).with_body("<p>new</p>");
                        person.updated_step(update, &["body"]).await;
                    }
                }
            };
            let write = machine.written(automatic(&work, "machine"));
            let ((), became) = both(number, change, write).await;
            let expected = match became {
                TranslationResult::Written => TranslationState::Outdated,
                TranslationResult::Stale => TranslationState::Missing,
                other => panic!("{other:?}"),
            };
            let state = state(&person, &translated).await;
            assert_eq!(state, Some(expected), "{edit:?}: {became:?}");
        })
        .await;
    }
}

#[apply(on_both_databases)]
async fn two_concurrent_automatic_writes_leave_one_of_their_rows(client: Client) {
    race(&client, |one, two, number| async move {
        let guide = one.given_task(task("Pump")).await;
        let guid = one.given_step(information_step(&guide, "Look")).await.guid;
        let work = work_on(&one, &guid).await;
        let text = |text: &str| automatic(&work, text).with_body(text);
        let became = both(number, one.written(text("one")), two.written(text("two"))).await;
        let written = TranslationResult::Written;
        assert_eq!(became, (written, written));
        let read = one.get_step(&guid).await.accepted();
        let row = &read.translations["de"];
        assert_eq!(row.title(), row.body());
    })
    .await;
}

/// Tasks with a subtask step each that stands for the next of them.
async fn given_ring(client: &Client, count: usize) -> Vec<Task> {
    let mut tasks = Vec::new();
    for n in 0..count {
        tasks.push(client.given_task(task(&format!("task {n}"))).await);
    }
    for (n, task) in tasks.iter().enumerate() {
        let next = &tasks[(n + 1) % count];
        client.given_step(subtask(task, next)).await;
    }
    tasks
}

#[apply(on_both_databases)]
async fn batches_in_opposite_orders_are_all_written(client: Client) {
    given_ring(&client, 12).await;
    let work = client.translation_work(&DE).await;
    assert_eq!(work.len(), 24);
    let machines = at_once(&client, CLIENTS, |client, machine| {
        let text = format!("machine {machine}");
        let mut sent: Vec<_> = work.iter().map(|item| automatic(item, &text)).collect();
        sent.rotate_left(machine * 3);
        if machine % 2 == 0 {
            sent.reverse();
        }
        async move {
            for _ in 0..4 {
                let response = client.write_translations(sent.clone()).await.accepted();
                let results: Vec<_> = response.results().collect();
                assert_eq!(results, [TranslationResult::Written; 24]);
            }
        }
    });
    machines.await;
    assert_eq!(client.translation_work(&DE).await, []);
}

#[apply(on_both_databases)]
async fn concurrent_batches_and_renames_all_succeed(client: Client) {
    let tasks = given_ring(&client, 8).await;
    let mut clients = JoinSet::new();
    for task in tasks {
        let client = client.over_new_connection();
        clients.spawn(async move {
            for n in 0..6 {
                client
                    .rename(&task.guid, &format!("{} {n}", task.name))
                    .await;
            }
        });
    }
    for machine in 0..4 {
        let client = client.over_new_connection();
        clients.spawn(async move {
            for _ in 0..6 {
                let work = client.translation_work(&DE).await;
                let mut sent: Vec<_> = work.iter().map(|item| automatic(item, "x")).collect();
                if machine % 2 == 0 {
                    sent.reverse();
                }
                if sent.is_empty() {
                    continue;
                }
                let response = client.write_translations(sent).await.accepted();
                for became in response.results() {
                    let (written, stale) = (TranslationResult::Written, TranslationResult::Stale);
                    assert!(became == written || became == stale, "{became:?}");
                }
            }
        });
    }
    clients.join_all().await;
    // Without concurrent edits the rest of the work can be done.
    for item in client.translation_work(&DE).await {
        let became = client.written(automatic(&item, "last")).await;
        assert_eq!(became, TranslationResult::Written);
    }
    assert_eq!(client.translation_work(&DE).await, []);
}

#[apply(on_both_databases)]
async fn a_deleted_step_is_written_before_or_not_found(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    for number in 0..24 {
        let guid = client
            .given_step(information_step(&guide, "Look"))
            .await
            .guid;
        let work = work_on(&client, &guid).await;
        let (person, machine) = (client.over_new_connection(), client.over_new_connection());
        let (deleted, became) = both(
            number,
            person.delete_step(&guid),
            machine.written(automatic(&work, "Schauen")),
        )
        .await;
        deleted.accepted();
        assert!(
            [TranslationResult::Written, TranslationResult::NotFound].contains(&became),
            "{became:?}"
        );
        assert_eq!(state(&client, &guid).await, None);
    }
}
