//! Pages of work: how large they are, how they follow each other, and whose
//! tokens are taken.

use super::{DE, pending};
use crate::{api::paging::ends_early, prelude::*};

const LANGUAGES: [&str; 3] = ["de", "fr", "it"];

fn page(page_size: i32, page_token: &str) -> ListTranslationWorkRequest {
    translation_work_request(&LANGUAGES)
        .with(|it| it.page_size = page_size)
        .with(|it| it.page_token = page_token.to_owned())
}

/// Two guides of two steps each. In each guide, one step is done in one language.
async fn given_guides(client: &Client) {
    for name in ["Pump", "Valve"] {
        let task = client.given_task(task(name)).await;
        client.given_steps(&task, &["Look"]).await;
        let sent = information_step(&task, "Listen").translated("fr", step_translation("Horchen"));
        client.given_step(sent).await;
    }
}

#[apply(on_both_databases)]
async fn the_languages_may_change_their_order_between_pages(client: Client) {
    given_guides(&client).await;
    let whole = client.call(page(500, "")).await.accepted().work;
    let first = client.call(page(4, "")).await.accepted();
    let request = translation_work_request(&["it", "DE", "fr", "it"]).after(first.next_page_token);
    assert_eq!(client.list(request).await, whole[4..]);
}

/// Reads all pages, none of which may be too large or empty. Returns the size of each step's
/// body with its language, sorted, and the number of pages.
async fn bodies(
    client: &Client,
    request: ListTranslationWorkRequest,
) -> (Vec<(usize, String)>, usize) {
    let pages = client.pages(request).await;
    let mut found = Vec::new();
    for page in &pages {
        ends_early(page, page.work.len());
        for item in &page.work {
            let source = item.source.as_ref().unwrap();
            if source.title.is_some() {
                found.push((source.body().len(), item.language.clone()));
            }
        }
    }
    found.sort_unstable();
    (found, pages.len())
}

async fn given_bodies(client: &Client, sizes: &[usize]) {
    let task = client.given_task(task("Heavy")).await;
    for size in sizes {
        let sent = information_step(&task, "heavy").with_body("x".repeat(*size));
        client.given_step(sent).await;
    }
}

#[apply(on_both_databases)]
async fn a_page_ends_early_rather_than_pass_3_mib(client: Client) {
    let sizes = [1, 1, 1, 2, 4, 1, 1].map(|mib| mib * 1_000_000);
    given_bodies(&client, &sizes).await;
    let request = translation_work_request(&DE).with_page_size(500);
    let (found, pages) = bodies(&client, request).await;
    let found: Vec<usize> = found.into_iter().map(|(size, _)| size).collect();
    let mut expected = sizes.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!((4..=6).contains(&pages), "{pages} pages");
}

#[apply(on_both_databases)]
async fn one_text_in_many_languages_ends_a_page_early_too(client: Client) {
    given_bodies(&client, &[1_200_000, 3_200_000]).await;
    let (found, pages) = bodies(&client, page(500, "")).await;
    let mut expected = Vec::new();
    for size in [1_200_000, 3_200_000] {
        expected.extend(LANGUAGES.map(|language| (size, language.to_owned())));
    }
    assert_eq!(found, expected);
    // Pages: two small items, one small item, and each large item by itself.
    assert!((4..=6).contains(&pages), "{pages} pages");
}

#[apply(on_both_databases)]
async fn existing_translations_are_not_part_of_the_work(client: Client) {
    let task = client.given_task(task("Heavy")).await;
    for n in 0..3 {
        let row = StepTranslation::default().with_body("x".repeat(2_000_000));
        let sent = information_step(&task, &format!("step {n}")).translated("fr", row);
        client.given_step(sent).await;
    }
    let work = client.translation_work(&LANGUAGES).await;
    assert_eq!(work.len(), 3 + 3 * 2);
    let bytes: usize = work.iter().map(prost::Message::encoded_len).sum();
    assert!(bytes < 10_000, "{bytes}");
}

#[apply(on_both_databases)]
async fn work_done_between_two_pages_moves_no_other(client: Client) {
    given_guides(&client).await;
    let whole = client.translation_work(&LANGUAGES).await;
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let listed = client.call(page(3, &token)).await.accepted();
        for item in &listed.work {
            let became = client.written(automatic(item, "done")).await;
            assert_eq!(became, TranslationResult::Written);
        }
        found.extend(listed.work);
        token = listed.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(found, whole);
    assert_eq!(client.translation_work(&LANGUAGES).await, []);
}

#[apply(on_both_databases)]
async fn work_that_vanishes_at_the_edge_of_a_page_loses_no_other(client: Client) {
    let task = client.given_task(task("Pump")).await;
    client.given_steps(&task, &["a", "b", "c", "d"]).await;
    let whole = client.translation_work(&LANGUAGES).await;
    // Three items of the task, three of the first step, and one of the second.
    let first = client.call(page(3 + 4, "")).await.accepted();
    assert_eq!(first.work, whole[..7]);
    let gone = first.work[6].guid.clone();
    client.delete_step(&gone).await.accepted();
    let rest = client.list(page(0, &first.next_page_token)).await;
    let mut expected = whole[7..].to_vec();
    expected.retain(|item| item.guid != gone);
    assert_eq!(expected.len(), 6);
    assert_eq!(rest, expected);
}

/// A call examines a limited number of resources, whether or not it finds work in them.
#[apply(on_both_databases)]
async fn a_page_may_be_empty_before_the_end(client: Client) {
    let done =
        information_step(&Task::default(), "Done").translated("de", step_translation("Fertig"));
    let long = task("Long").translated("de", task_translation("Lang"));
    let task = client
        .imported(document_with(long, vec![done; 2_100]))
        .await;
    // Made after all the others, so it is listed after them.
    let step = client.given_step(information_step(&task, "Open")).await;
    let first = client.call(translation_work_request(&DE)).await.accepted();
    assert_eq!(first.work, []);
    assert_ne!(first.next_page_token, "");
    let request = translation_work_request(&DE).after(first.next_page_token);
    let missing = TranslationState::Missing;
    let rest = pending(client.list(request).await);
    assert_eq!(rest, [(step.guid, "de".to_owned(), missing)]);
}
