//! Large bodies, to their limit, byte for byte.

use crate::{
    kit::server::{Settings, TestServer},
    prelude::*,
};
use futures_util::future::join_all;
use tokio::sync::Mutex;

const LIMIT: usize = 16_000_000;

/// Tests of large bodies take turns: together they would need too much memory.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A body of as many code points as the limit, with numbers that show a shift.
fn body(character: &str) -> String {
    let mut body = String::with_capacity(LIMIT * character.len());
    for n in 0..LIMIT / 1_000 {
        let mark = format!("<{n:05}>");
        body.push_str(&mark);
        body.extend(std::iter::repeat_n(character, 1_000 - mark.len()));
    }
    body
}

async fn comes_back(client: Client, character: &str) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let task = client.given_task(task("Large")).await;
    let body = body(character);
    let sent = information_step(&task, "large").with_body(body.clone());
    let created = client.given_step(sent).await;
    // `assert_eq!` would print them.
    assert!(created.body.as_deref() == Some(&*body), "as answered");
    drop(created.body);
    let read = client.get_step(&created.guid).await.accepted();
    assert!(read.body.as_deref() == Some(&*body), "as read");
}

#[apply(slow_on_both_databases)]
async fn sixteen_million_one_byte_characters_come_back(client: Client) {
    comes_back(client, "x").await;
}

#[apply(slow_on_both_databases)]
async fn sixteen_million_two_byte_characters_come_back(client: Client) {
    comes_back(client, "ü").await;
}

#[apply(slow_on_both_databases)]
async fn sixteen_million_four_byte_characters_come_back(client: Client) {
    comes_back(client, "🔧").await;
}

/// Characters of three bytes, so that any part of the text may begin within one.
#[apply(on_both_databases)]
async fn a_body_of_megabytes_comes_back_with_its_translations(client: Client) {
    let task = client.given_task(task("Large")).await;
    let body: String = (0..20_000)
        .map(|n| format!("<{n:05}>{}", "€".repeat(40)))
        .collect();
    let row = step_translation("groß").with_body("Text");
    let sent = information_step(&task, "large")
        .with_body(body.clone())
        .translated("de", row.clone());
    let created = client.given_step(sent).await;
    let read = client.get_step(&created.guid).await.accepted();
    assert!(read.body.as_deref() == Some(&*body));
    assert_eq!(read.translations["de"].body, row.body);
    assert_eq!(read.etag, created.etag);
}

#[apply(on_both_databases)]
async fn a_large_step_without_a_body_comes_back(client: Client) {
    let task = client.given_task(task("Large")).await;
    let row = step_translation("groß").with_body("x".repeat(2_000_000));
    let sent = information_step(&task, "large").translated("de", row.clone());
    let created = client.given_step(sent).await;
    let read = client.get_step(&created.guid).await.accepted();
    assert_eq!(read.body, None);
    assert!(read.translations["de"].body == row.body);
}

/// If a preview kept its connection while it waits for one of the four permits, it would block
/// reads that have all of them and wait for a connection, until the pool's time-out.
#[apply(on_both_databases)]
async fn previews_and_reads_of_large_bodies_do_not_wait_for_each_other(url: String) {
    let settings = Settings::new(&url).set("EXPERTISE_DATABASE_MAX_CONNECTIONS", 1);
    let server = TestServer::start(settings).await;
    let client = server.client();
    let task = client.given_task(task("Large")).await;
    let body = "x".repeat(1_100_000);
    let step = information_step(&task, "large").with_body(body.clone());
    let guid = client.given_step(step).await.guid;
    let read = || async {
        for _ in 0..4 {
            let step = client.get_step(&guid).await.accepted();
            assert!(step.body.as_deref() == Some(&*body));
        }
    };
    let preview = || async {
        for _ in 0..4 {
            let request = preview_of(&task.guid).with(|it| it.expand = vec!["body".to_owned()]);
            let step = client.previewed(request).await.steps.remove(0);
            assert!(step.body.is_some_and(|shown| shown.text == body));
        }
    };
    let reads = join_all((0..6).map(|_| read()));
    let previews = join_all((0..3).map(|_| preview()));
    tokio::join!(reads, previews);
}

/// Large steps between small ones, listed in several pages.
#[apply(on_both_databases)]
async fn a_page_with_large_steps_has_their_texts(client: Client) {
    let task = client.given_task(task("Large")).await;
    let row = step_translation("groß").with_body("ü".repeat(600_000));
    let sent = [
        information_step(&task, "small").with_body("text"),
        information_step(&task, "large").with_body("€".repeat(500_000)),
        information_step(&task, "translated").translated("de", row),
        information_step(&task, "medium").with_body("x".repeat(100_000)),
        information_step(&task, "large without a body").with_tags(vec!["🔧".repeat(1_000); 300]),
        information_step(&task, "last"),
    ];
    let mut stored = Vec::new();
    for step in sent {
        let guid = client.given_step(step).await.guid;
        stored.push(client.get_step(&guid).await.accepted());
    }
    for expand in [vec![], vec!["body".to_owned()]] {
        let request = list_steps_of(&task.guid).with(|it| it.expand = expand.clone());
        let listed = client.list(request).await;
        let mut expected = stored.clone();
        if expand.is_empty() {
            for step in &mut expected {
                step.body = None;
                let rows = step.translations.values_mut();
                rows.for_each(|row| row.body = None);
            }
        }
        assert!(listed == expected, "{expand:?}");
    }
}

#[apply(slow_on_both_databases)]
async fn a_body_over_the_limit_is_refused(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let task = client.given_task(task("Large")).await;
    let sent = information_step(&task, "too large").with_body("x".repeat(LIMIT + 1));
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[("step.body", "FIELD_TOO_LONG")]);
    assert_eq!(client.step_order(&task.guid).await, [""; 0]);
}

#[apply(slow_on_both_databases)]
async fn a_large_body_is_updated(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let task = client.given_task(task("Large")).await;
    let guid = client
        .given_step(information_step(&task, "small"))
        .await
        .guid;
    let body = body("y");
    let update = step_of(&guid).with_body(body.clone());
    client.updated_step(update, &["body"]).await;
    let read = client.get_step(&guid).await.accepted();
    assert!(read.body.as_deref() == Some(&*body));
    // An update of another field also returns the body.
    let update = step_of(&guid).titled("renamed");
    let updated = client.updated_step(update, &["title"]).await;
    assert!(updated.body.as_deref() == Some(&*body));
}

#[apply(slow_on_both_databases)]
async fn a_step_too_large_to_return_is_refused(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let task = client.given_task(task("Large")).await;
    let sent = information_step(&task, "large").with_body("🔧".repeat(LIMIT));
    let created = client.given_step(sent).await;
    // 64 MB are stored; 14 MB more exceed the message limit.
    let row = StepTranslation::default().with_body("x".repeat(14_000_000));
    let update = step_of(&created.guid).translated("de", row);
    let failure = client.update_step(update, &[]).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let read = client.get_step(&created.guid).await.accepted();
    assert!(read.translations.is_empty());
    assert_eq!(read.etag, created.etag);
}

#[apply(slow_on_both_databases)]
async fn two_bodies_at_the_limit_come_in_pages_of_one(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let task = client.given_task(task("Large")).await;
    for character in ["a", "b"] {
        let sent = information_step(&task, character).with_body(character.repeat(LIMIT));
        client.given_step(sent).await;
    }
    let mut request = list_steps_of(&task.guid).with(|it| it.expand = vec!["body".to_owned()]);
    let first = client.call(request.clone()).await.accepted();
    assert_eq!(first.steps.len(), 1);
    assert_eq!(first.steps[0].body().len(), LIMIT);
    request.page_token = first.next_page_token;
    let second = client.call(request).await.accepted();
    assert_eq!(second.steps.len(), 1);
    assert_eq!(second.steps[0].title, "b");
    assert_eq!(second.next_page_token, "");
}

/// A large step stays readable when its subtask gets a name of the maximal length.
#[apply(slow_on_both_databases)]
async fn a_rename_never_makes_a_step_unreadable(client: Client) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("x")).await;
    let whole = "🔧".repeat(LIMIT);
    // Tries smaller and smaller translations until the step fits into a message.
    let mut rest = 11_490_000;
    let mut unavailable = 0;
    let step = loop {
        let row = step_translation("t").with_body("x".repeat(rest));
        let sent = subtask(&guide, &other)
            .with_body(whole.clone())
            .with_translations([("de".to_owned(), row)].into());
        match client.create_step(sent).await {
            Ok(created) => break created.step.expect("the step"),
            // A busy machine may take too long to store it.
            Err(refused) if refused.code() == Code::Unavailable && unavailable < 10 => {
                unavailable += 1;
            }
            Err(refused) => {
                assert_eq!(refused.code(), Code::ResourceExhausted);
                rest -= 1_000;
            }
        }
    };
    client.rename(&other.guid, "🔧".repeat(200)).await;
    let read = client.get_step(&step.guid).await.accepted();
    assert_eq!(read.title, "🔧".repeat(200));
}
