//! Requests for work: languages, a task, and scopes.

use super::{DE, pending};
use crate::prelude::*;

fn of_task(task: &str) -> ListTranslationWorkRequest {
    translation_work_request(&DE).of_task(task)
}

#[apply(on_both_databases)]
async fn a_language_comes_in_canonical_case(client: Client) {
    client.given_task(task("Pump")).await;
    let work = client
        .translation_work(&["ZH-hant-TW", "EN-us", "De"])
        .await;
    let languages: Vec<String> = pending(work).into_iter().map(|(_, tag, _)| tag).collect();
    assert_eq!(languages, ["de", "en-US", "zh-Hant-TW"]);
}

#[apply(on_both_databases)]
async fn a_language_named_twice_counts_once(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let work = client.translation_work(&["de", "DE", "de", "dE"]).await;
    let missing = TranslationState::Missing;
    assert_eq!(pending(work), [(guide.guid, "de".to_owned(), missing)]);
}

#[apply(on_both_databases)]
async fn a_task_narrows_the_work_to_itself_and_its_steps(client: Client) {
    let mut expected = Vec::new();
    for name in ["Pump", "Valve", "Pipe"] {
        let task = client.given_task(task(name)).await;
        let mut guids = client.given_steps(&task, &["a", "b"]).await;
        guids.push(task.guid);
        guids.sort();
        expected.push(guids);
    }
    let tasks = client.call(ListTasksRequest::default()).await;
    for (task, guids) in tasks.accepted().tasks.iter().zip(expected) {
        let request = of_task(&task.guid).with_page_size(2);
        let work = pending(client.list(request).await);
        let found: Vec<String> = work.into_iter().map(|(guid, ..)| guid).collect();
        assert_eq!(found, guids, "{}", task.name);
    }
}

#[apply(on_both_databases)]
async fn the_id_of_a_task_may_be_in_upper_case(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let request = of_task(&guide.guid.to_uppercase());
    let work = client.call(request).await.accepted().work;
    assert_eq!(work[0].guid, guide.guid);
}

#[apply(on_both_databases)]
async fn there_is_no_work_in_a_language_beyond_a_hundred(client: Client) {
    let tags = tags(101);
    let unlocked = task_translation("x").with(|it| it.locked = Some(false));
    let name = |tag: &String| (tag.clone(), unlocked.clone());
    let full = task("Full").with_translations(tags[..100].iter().map(name).collect());
    let full = client.given_task(full).await;
    let title = |tag: &String| (tag.clone(), step_translation("x"));
    let titles = tags[..100].iter().map(title).collect();
    let step = information_step(&full, "Full").with_translations(titles);
    client.given_step(step).await;
    assert_eq!(client.translation_work(&[&tags[100]]).await, []);
    client.rename(&full.guid, "New").await;
    let outdated = client.translation_work(&[&tags[99], &tags[100]]).await;
    let outdated: Vec<_> = outdated.iter().map(|work| &work.language).collect();
    assert_eq!(outdated, [&tags[99]]);
}
