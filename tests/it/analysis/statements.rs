//! Reading a guide takes few statements for each level of subtasks, however many steps and
//! subtasks it has.

use expertise::store::Store;

use crate::kit::{databases::postgres, prelude::*, scratch::Scratch, store_server};

/// The levels of the guide.
const LEVELS: u64 = 9;
/// Two for each level, its tasks and their steps; one for what sets variables elsewhere, and
/// one for the bodies of the page.
const STATEMENTS: u64 = 2 * LEVELS + 2;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_previews_a_guide_in_few_statements() {
    let file = Scratch::of_this_run().path("preview_statements.db");
    previews_take_few_statements(&format!("sqlite:{}", file.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn postgres_previews_a_guide_in_few_statements() {
    let url = postgres("preview_statements");
    previews_take_few_statements(&url).await;
}

async fn previews_take_few_statements(url: &str) {
    let (store, client) = store_server::serve(url, 4).await;
    let alone = document("alone", document_steps(&["a"; 100]));
    let alone = client.imported(alone).await;
    let count = async |request: PreviewTaskRequest| statements(&store, &client, request).await;
    assert_eq!(count(preview_of(&alone.guid)).await, 2);
    let guide = guide(&client).await;
    let stored = preview_of(&guide)
        .to_depth(8)
        .expanding(vec!["body".to_owned()])
        .in_language("de");
    assert_eq!(count(stored).await, STATEMENTS);
    let exported = client.exported(&guide).await;
    let document = preview_of_document(exported).to_depth(8);
    assert!(count(document).await < STATEMENTS);
}

/// A guide with levels of subtasks, conditions, bodies and translations.
async fn guide(client: &Client) -> String {
    let mut below: Option<Task> = None;
    for level in 0..LEVELS {
        let condition = comparison(Condition {
            variable: "light".to_owned(),
            operator: "=".to_owned(),
            targets: vec![text("off")],
            path: "components.7".to_owned(),
        });
        let body = step_translation("Schritt").with_body("Text");
        let mut steps = vec![
            document_step(StepType::Information, "source").with_body("text"),
            document_step(StepType::Information, "translated")
                .with_body("text")
                .translated("de", body)
                .depending_on(all_of(vec![condition])),
        ];
        let subtasks = below.iter().map(|task| subtask(&Task::default(), task));
        steps.extend(subtasks.cycle().take(2));
        let document = document(&format!("level {level}"), steps);
        below = Some(client.imported(document).await);
    }
    below.expect("a task").guid
}

async fn statements(store: &Store, client: &Client, request: PreviewTaskRequest) -> u64 {
    let before = store.statements();
    client.previewed(request).await;
    store.statements() - before
}
