//! Writes of whole guides with `guide_etag`, among others: none overwrites what it has not seen.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::exported;
use crate::prelude::*;

const UPDATERS: usize = 8;
const UPDATES: usize = 12;
const IMPORTERS: usize = 4;
const RESTORERS: usize = 4;
/// How many writes of the guide each importer and restorer makes.
const WRITES: usize = 3;

/// What a writer of whole guides has replaced, or an updater has made and not found again.
#[derive(Default)]
struct Titles {
    /// Titles in the guides that were replaced.
    seen: BTreeSet<String>,
    /// Titles that were gone when their step was read again.
    lost: BTreeSet<String>,
}

#[apply(on_both_databases)]
async fn no_change_is_lost_unseen(client: Client) {
    let own = (0..UPDATERS).map(|n| document_step(StepType::Information, &format!("step {n}")));
    let steps = [vec![linked_observation(&[("yes", "Yes")])], own.collect()].concat();
    let guide = client.imported(document("Contested", steps)).await;
    client.kept_revision(&guide.guid).await;
    let mut writers = JoinSet::new();
    for number in 0..UPDATERS {
        // The wiring step is the second one.
        let step = guide.steps[number + 2].clone();
        writers.spawn(update(client.over_new_connection(), step, number));
    }
    for imports in [[true; IMPORTERS], [false; RESTORERS]].concat() {
        let (client, guide) = (client.over_new_connection(), guide.guid.clone());
        writers.spawn(replace(client, guide, imports));
    }
    let mut all = Titles::default();
    for titles in writers.join_all().await {
        all.seen.extend(titles.seen);
        all.lost.extend(titles.lost);
    }
    let last = (0..UPDATERS).map(|number| title(number, UPDATES - 1));
    let now: BTreeSet<String> = client.step_titles(&guide.guid).await.into_iter().collect();
    all.lost.extend(last.filter(|title| !now.contains(title)));
    let unseen: Vec<&String> = all.lost.difference(&all.seen).collect();
    assert!(unseen.is_empty(), "lost: {unseen:?}");
}

fn title(number: usize, round: usize) -> String {
    format!("title {number}.{round}")
}

/// Asserts that a write was refused because another one came first, and for nothing else.
fn is_mismatch(status: tonic::Status) {
    Failure::from(status).is(Code::Aborted, "ETAG_MISMATCH");
}

/// Gives a step one title after the other. Each is there when the next one is written, or is
/// noted as lost.
async fn update(client: Client, step: String, number: usize) -> Titles {
    let mut titles = Titles::default();
    let mut etag = String::new();
    for round in 0..UPDATES {
        loop {
            let update = step_of(&step)
                .titled(title(number, round))
                .with_etag(etag.clone());
            match client.update_step(update, &["title"]).await {
                Ok(updated) => {
                    etag = updated.step.expect("the step").etag;
                    break;
                }
                Err(status) => is_mismatch(status),
            }
            let stored = client.get_step(&step).await.accepted();
            if let Some(former) = round.checked_sub(1).map(|round| title(number, round))
                && stored.title != former
            {
                titles.lost.insert(former);
            }
            etag = stored.etag;
        }
    }
    titles
}

/// Replaces the guide by an import or a restore, as it was exported just before.
async fn replace(client: Client, guide: String, imports: bool) -> Titles {
    let mut titles = Titles::default();
    let mut writes = 0;
    while writes < WRITES {
        let before = exported(&client, &guide).await;
        let document = before.document.expect("a document");
        let replaced = match imports {
            true => import(&client, &document, before.guide_etag).await,
            false => restore(&client, &guide, before.guide_etag).await,
        };
        match replaced {
            Ok(previous) => {
                writes += 1;
                if previous != 0 {
                    let kept = client.revision_document(&guide, previous).await;
                    assert_eq!(kept, document);
                }
                let steps = document.steps.into_iter();
                titles.seen.extend(steps.map(|step| step.title));
            }
            Err(status) => is_mismatch(status),
        }
    }
    titles
}

/// Imports a guide with other titles; the revision that keeps it as it was.
async fn import(
    client: &Client,
    document: &TaskDocument,
    guide_etag: String,
) -> Result<i64, tonic::Status> {
    let mut document = document.clone();
    for step in &mut document.steps {
        if step.r#type() == StepType::Information {
            step.title = unknown_guid();
        }
    }
    let request = import_of(document).with(|it| it.guide_etag = guide_etag);
    let imported = client.call(request).await?;
    Ok(imported.previous_revision)
}

/// Restores the first revision; the revision that keeps the guide as it was.
async fn restore(client: &Client, guide: &str, guide_etag: String) -> Result<i64, tonic::Status> {
    let request = restore_of(guide, "1").with(|it| it.guide_etag = guide_etag);
    Ok(client.call(request).await?.previous_revision)
}

/// Locks of tasks, steps and histories are taken in one order, whatever the write.
#[apply(on_both_databases)]
async fn deletions_and_restores_of_guides_that_refer_to_each_other_end(client: Client) {
    let other = client.given_task(task("Other")).await;
    let steps = vec![
        linked_observation(&[("yes", "Yes"), ("no", "No")]),
        subtask(&Task::default(), &other),
    ];
    let guide = client.given_guide(steps).await;
    client.given_step(subtask(&other, &guide)).await;
    let tasks = [guide.guid.clone(), other.guid.clone()];
    for task in &tasks {
        client.kept_revision(task).await;
    }
    let writers = at_once(&client, 16, |client, number| {
        let tasks = tasks.clone();
        async move {
            for round in 0..8 {
                let task = &tasks[(number + round) % 2];
                let name = format!("Name {number}.{round}");
                let answer = match number % 4 {
                    0 => {
                        let restored = client.call(restore_of(task, 1)).await;
                        restored.map(|_| ())
                    }
                    1 => client.force_delete_task(task).await.map(|_| ()),
                    2 => {
                        let renamed = task_of(task).named(name);
                        client.update_task(renamed, &["name"]).await.map(|_| ())
                    }
                    _ => {
                        let document = document_with(task_of(task).named(name), vec![]);
                        let keep = AbsentSteps::Keep;
                        client.import_with(keep, document).await.map(|_| ())
                    }
                };
                if let Err(status) = answer {
                    let failure = Failure::from(status);
                    let expected = ["TASK_NOT_FOUND", "TASK_REFERENCED", "REVISION_UNRESTORABLE"];
                    assert!(expected.contains(&failure.reason()), "{failure:?}");
                }
            }
        }
    });
    writers.await;
}
