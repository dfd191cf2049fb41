//! Concurrent writes of many clients: none is lost or doubled, and one is refused only where
//! another contradicts it.

use std::collections::BTreeSet;

use crate::prelude::*;

const CLIENTS: usize = 64;
const TASKS: usize = 20;
const STEPS_PER_CLIENT: usize = 5;

/// Tasks with the id of their first step.
async fn guides(client: &Client) -> Vec<(Task, String)> {
    let mut guides = Vec::new();
    for n in 0..TASKS {
        let task = client.given_task(task(&format!("Guide {n}"))).await;
        let step = client.given_step(information_step(&task, "first")).await;
        guides.push((task, step.guid));
    }
    guides
}

/// Each client inserts behind the first step of a task, where others insert, too, and every second
/// time behind its own step.
#[apply(on_both_databases)]
async fn sixty_four_clients_that_insert_concurrently_lose_no_step(client: Client) {
    let guides = guides(&client).await;
    let created = at_once(&client, CLIENTS, |client, number| {
        let guides = guides.clone();
        async move {
            let mut created: Vec<(usize, String)> = Vec::new();
            for round in 0..STEPS_PER_CLIENT {
                let index = (number + round / 2) % TASKS;
                let (task, first) = &guides[index];
                let own = created.last().filter(|(at, _)| *at == index);
                let prevstep = own.map_or(first, |(_, guid)| guid);
                let sent = information_step(task, "inserted");
                let response = client.create_step_after(sent, prevstep).await;
                let response = response.accepted();
                assert_eq!(response.placement(), Placement::AfterPrevstep);
                created.push((index, response.step.unwrap().guid));
            }
            created
        }
    });
    let created = created.await.concat();
    for (index, (task, first)) in guides.iter().enumerate() {
        let order = client.step_order(&task.guid).await;
        let found: BTreeSet<&String> = order.iter().collect();
        let mine = created.iter().filter(|(at, _)| *at == index);
        let expected: BTreeSet<&String> = mine.map(|(_, guid)| guid).chain([first]).collect();
        assert_eq!(order.len(), expected.len());
        assert_eq!(found, expected);
        assert_eq!(&order[0], first);
        // Both reads agree.
        let listed = client.steps_of(&task.guid, 0).await;
        let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
        assert_eq!(listed, order);
    }
}

#[apply(on_both_databases)]
async fn concurrent_inserts_and_deletes_lose_no_other_step(client: Client) {
    let task = client.given_task(task("Busy")).await;
    let kept = at_once(&client, 16, |client, number| {
        let gone = information_step(&task, "gone");
        let kept = information_step(&task, &format!("kept {number}"));
        async move {
            let gone = client.given_step(gone).await;
            let kept = client.create_step_after(kept, &gone.guid).await;
            client.delete_step(&gone.guid).await.accepted();
            kept.accepted().step.unwrap().guid
        }
    });
    let kept: BTreeSet<String> = kept.await.into_iter().collect();
    let order = client.step_order(&task.guid).await;
    assert_eq!(order.len(), kept.len());
    assert_eq!(order.into_iter().collect::<BTreeSet<_>>(), kept);
}

#[apply(on_both_databases)]
async fn a_rename_reaches_steps_created_meanwhile(client: Client) {
    let other = client.given_task(task("Name 0")).await;
    let guides = guides(&client).await;
    let creations = at_once(&client, TASKS, |client, number| {
        let step = subtask(&guides[number].0, &other);
        async move {
            for _ in 0..4 {
                client.given_step(step.clone()).await;
            }
        }
    });
    let renames = async {
        for n in 1..=15 {
            client.rename(&other.guid, format!("Name {n}")).await;
        }
    };
    tokio::join!(creations, renames);
    for (guide, first) in guides {
        let steps = client.steps_of(&guide.guid, 0).await;
        assert_eq!(steps.len(), 5);
        for step in steps.iter().filter(|step| step.guid != first) {
            assert_eq!(step.title, "Name 15");
        }
    }
}

#[apply(on_both_databases)]
async fn one_of_many_updates_with_one_etag_wins(client: Client) {
    let before = client.given_task(task("Contested")).await;
    let answers = at_once(&client, 16, |client, number| {
        let update = task_of(&before.guid).named(format!("Winner {number}"));
        let update = update.with_etag(before.etag.as_str());
        async move { client.update_task(update, &["name"]).await }
    });
    let (won, lost) = the_one_accepted(answers.await);
    for failure in lost {
        failure.is(Code::Aborted, "ETAG_MISMATCH");
    }
    let winner = won.task.unwrap();
    assert_eq!(client.get_task(&before.guid).await.accepted(), winner);
}

#[apply(on_both_databases)]
async fn updates_of_different_fields_keep_each_other(client: Client) {
    let task = client.given_task(task("Shared")).await;
    let step = client.given_step(information_step(&task, "shared")).await;
    let languages = ["de", "en", "fr", "it", "es", "nl", "pl", "sv"];
    let bodies = ["one", "two"];
    let updates = at_once(&client, languages.len() + bodies.len(), |client, number| {
        let update = step_of(&step.guid);
        let (update, field) = match languages.get(number) {
            Some(language) => (
                update.translated(*language, step_translation(language)),
                None,
            ),
            None => (
                update.with_body(bodies[number - languages.len()]),
                Some("body"),
            ),
        };
        async move { client.updated_step(update, field.as_slice()).await }
    });
    updates.await;
    let after = client.get_step(&step.guid).await.accepted();
    for language in languages {
        let row = &after.translations[language];
        assert_eq!(row.title.as_deref(), Some(language));
    }
    assert!(bodies.contains(&after.body()));
}

#[apply(on_both_databases)]
async fn imports_that_change_what_one_guide_manages_all_succeed(client: Client) {
    const KEYS: [&str; 3] = ["a", "b", "c"];
    let asking = |left_out: usize| {
        let keys = KEYS.iter().enumerate();
        let keys = keys.filter(|(index, _)| *index != left_out);
        observation_asking(linked_question(
            keys.map(|(_, key)| answer(key, key)).collect(),
        ))
    };
    let guide = client.given_guide(vec![asking(0)]).await;
    at_once(&client, 6, move |client, number| {
        let guide = guide.clone();
        async move {
            for round in 0..8 {
                let question =
                    asking((number + round) % KEYS.len()).with_guid(guide.steps[0].clone());
                let sent = document_with(task("Guide").with_guid(&guide.guid), vec![question]);
                let imported = client.import_with(AbsentSteps::Keep, sent).await;
                imported.expect("no import contradicts another");
            }
        }
    })
    .await;
}

#[apply(on_both_databases)]
async fn a_task_is_deleted_or_referred_to_but_not_both(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    for _ in 0..10 {
        let other = client.given_task(task("Contested")).await;
        let (writer, deleter) = (client.over_new_connection(), client.over_new_connection());
        let sent = subtask(&guide, &other);
        let (created, deleted) =
            tokio::join!(writer.create_step(sent), deleter.delete_task(&other.guid));
        match (created, deleted) {
            (Ok(_), Err(status)) => {
                Failure::from(status).is_precondition("TASK_REFERENCED");
            }
            (Err(status), Ok(_)) => {
                Failure::from(status).is_task_not_found(&other.guid);
            }
            both => panic!("{both:?}"),
        }
    }
}
