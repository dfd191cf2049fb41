//! Bodies at their limit, on the way to a translator and back.

use super::work_on;
use crate::{api::large_bodies::ONE_AT_A_TIME, prelude::*};

const LIMIT: usize = 16_000_000;

#[apply(slow_on_both_databases)]
async fn a_body_at_the_limit_is_translated(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let guide = client.given_task(task("Large")).await;
    client.given_step(information_step(&guide, "before")).await;
    let body = "ü".repeat(LIMIT);
    let sent = information_step(&guide, "large").with_body(body.clone());
    let guid = client.given_step(sent).await.guid;
    client.given_step(information_step(&guide, "after")).await;
    // Work in two languages, so that the large item comes twice.
    let work = client.translation_work(&["de", "fr"]).await;
    assert_eq!(work.len(), 8);
    let mut large = work.into_iter().filter(|item| item.guid == guid);
    let item = large.next().unwrap();
    assert_eq!(large.next().unwrap().language, "fr");
    let source = item.source.as_ref().unwrap();
    // `assert_eq!` would print them.
    assert!(source.body.as_deref() == Some(&*body));
    drop(body);

    let translation = "y".repeat(LIMIT);
    let sent = automatic(&item, "groß").with_body(translation.clone());
    assert_eq!(client.written(sent).await, TranslationResult::Written);
    let read = client.get_step(&guid).await.accepted();
    assert!(read.translations["de"].body.as_deref() == Some(&*translation));
}

#[apply(slow_on_both_databases)]
async fn a_translation_that_makes_a_step_too_large_to_return_is_refused(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let guide = client.given_task(task("Large")).await;
    let sent = information_step(&guide, "large").with_body("🔧".repeat(LIMIT));
    let guid = client.given_step(sent).await.guid;
    let item = work_on(&client, &guid).await;
    let of_bytes = |bytes: usize| automatic(&item, "groß").with_body("x".repeat(bytes));
    // 64 MB are stored; 14 MB more exceed the message limit.
    let failure = client.write_translations(vec![of_bytes(14_000_000)]).await;
    let failure = failure.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let read = client.get_step(&guid).await.accepted();
    assert!(read.translations.is_empty());
    // A replaced row counts once.
    for bytes in [5_000_000, 5_000_001, 5_000_002] {
        let became = client.written(of_bytes(bytes)).await;
        assert_eq!(became, TranslationResult::Written);
    }
}
