//! Guide cases: the files in `tests/cases`, whose notation `tests/README.md` describes. Each case
//! is run in its own accounts, with the guide stored and, unless it writes, as a document that is
//! not stored.

use std::{env, fs, path::PathBuf};

use futures_util::future::join_all;
use prost_reflect::DynamicMessage;
use serde_json::json;

use crate::{kit::contract::descriptor, prelude::*};

mod account;
mod answers;
mod dependencies;
mod notation;
mod writes;

use account::{Account, GUIDE, NamedTask};
use notation::{Action, Case};

/// Cases that are run at the same time.
const AT_ONCE: usize = 8;

/// A test for each file, with its databases.
macro_rules! files {
    ($($file:ident on $databases:ident)+) => {
        $(
            #[apply($databases)]
            async fn $file(client: Client) {
                run(stringify!($file), client).await;
            }
        )+

        #[test]
        fn each_file_has_a_test() {
            let files = fs::read_dir(directory()).expect("the directory of cases");
            let mut names: Vec<String> = files
                .map(|file| file.expect("a file").path())
                .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
                .collect();
            names.sort();
            assert_eq!(names, [$(stringify!($file)),+]);
        }
    };
}

// Files on one database write nothing, and test only the analysis.
files! {
    absent_fields on on_both_databases
    conditions on on_one_database
    external_ids on on_both_databases
    imports on on_both_databases
    linked_answers on on_both_databases
    linked_tasks on on_both_databases
    observations on on_one_database
    options on on_both_databases
    preview_answers on on_one_database
    preview_subtasks on on_both_databases
    preview_texts on on_both_databases
    preview_traces on on_one_database
    preview_unanswered on on_one_database
    preview_visibility on on_one_database
    references on on_both_databases
    restores on on_both_databases
    subtasks on on_both_databases
    texts on on_both_databases
    updates on on_both_databases
    walkthroughs on on_both_databases
}

/// A document with steps in the notation.
pub fn guide(steps: &str) -> TaskDocument {
    let guide =
        notation::guide(steps).unwrap_or_else(|wrong| panic!("{}: {}", wrong.line, wrong.what));
    let document = DynamicMessage::deserialize(descriptor("TaskDocument"), guide);
    document
        .expect("a document")
        .transcode_to()
        .expect("a document")
}

fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "cases"]
        .iter()
        .collect()
}

/// Runs the cases of a file, or those whose name contains `EXPERTISE_TEST_CASE`.
async fn run(file: &str, client: Client) {
    let path = directory().join(format!("{file}.cases"));
    let text = fs::read_to_string(&path).expect("the file");
    let cases = notation::cases(&text);
    let mut cases =
        cases.unwrap_or_else(|wrong| panic!("{}:{}: {}", path.display(), wrong.line, wrong.what));
    let wanted = env::var("EXPERTISE_TEST_CASE").unwrap_or_default();
    cases.retain(|case| case.name.contains(&wanted));
    let mut failures = Vec::new();
    while !cases.is_empty() {
        let chunk = cases.drain(..AT_ONCE.min(cases.len()));
        let chunk = chunk.map(|case| {
            let title = format!("tests/cases/{file}.cases:{}: {}", case.line, case.name);
            let run = tokio::spawn(failures_of(case, client.clone()));
            async { (title, run.await) }
        });
        for (title, found) in join_all(chunk.collect::<Vec<_>>()).await {
            let found = found.unwrap_or_else(|panic| vec![panic.to_string()]);
            failures.extend(
                found
                    .into_iter()
                    .map(|failure| format!("{title}\n{failure}")),
            );
        }
    }
    assert!(failures.is_empty(), "\n\n{}\n", failures.join("\n\n"));
}

/// The answers that differ from what the case expects.
async fn failures_of(case: Case, client: Client) -> Vec<String> {
    let mut stored = Account::new(client.other_account());
    // A document has no ids that others could refer to.
    let refers = |text: &str| text.contains("\"@Guide") || text.contains("\"@0");
    let refers = case
        .actions
        .iter()
        .any(|action| refers(&json!(action.steps).to_string()))
        || refers(&case.guide.to_string());
    let writes = |action: &Action| action.is_write() && !matches!(&*action.verb, "edit" | "delete");
    let refers = refers || case.actions.iter().any(writes);
    let mut unstored = (!refers).then(|| Account::new(client.other_account()));

    let is_other = |action: &Action| action.verb == "other";
    let first = case
        .actions
        .iter()
        .position(|action| !is_other(action))
        .unwrap_or(case.actions.len());
    let (others, actions) = case.actions.split_at(first);
    let mut tasks: Vec<NamedTask> = others.iter().map(task_of).collect();
    if let Some(account) = &mut unstored {
        account.create(tasks.clone()).await;
    }
    let steps = case.guide["steps"].as_array().cloned().unwrap_or_default();
    tasks.push((GUIDE.to_owned(), case.guide["task"].clone(), steps));
    stored.create(tasks).await;

    let mut failures = Vec::new();
    for action in actions {
        match action.verb.as_str() {
            "other" | "stranger" => {
                let mut stranger = Account::new(client.other_account());
                let of_stranger = action.verb == "stranger";
                let accounts = [Some(&mut stored), unstored.as_mut()];
                let accounts = accounts.into_iter().flatten().filter(|_| !of_stranger);
                for account in accounts.chain(of_stranger.then_some(&mut stranger)) {
                    account.create(vec![task_of(action)]).await;
                }
                continue;
            }
            _ if action.is_write() => {
                unstored = None;
                let answer = stored.write(action).await;
                failures.extend(difference(action, "a stored guide", answer));
                continue;
            }
            _ => {}
        }
        let is_about_guide =
            matches!(action.verb.as_str(), "validate" | "preview") && action.subject().is_empty();
        let asked_of_document = unstored
            .as_ref()
            .filter(|_| is_about_guide && !action.asks_for("stored"));
        if let Some(account) = asked_of_document {
            let answer = account.answer(action, Some(&case.guide)).await;
            failures.extend(difference(action, "a document", answer));
        }
        if !action.asks_for("document") {
            let answer = stored.answer(action, None).await;
            failures.extend(difference(action, "a stored guide", answer));
        } else if asked_of_document.is_none() {
            let line = action.line;
            failures.push(format!(
                "line {line}, there is no document to {}",
                action.verb
            ));
        }
    }
    failures
}

fn task_of(action: &Action) -> NamedTask {
    let task = notation::content(action.fields.clone());
    (action.words.join(" "), task, action.steps.clone())
}

/// The expected and actual results, in the notation.
fn difference(action: &Action, of: &str, answer: Vec<String>) -> Option<String> {
    let lines = |lines: &[String]| {
        let lines = lines.iter().map(|line| format!("  -> {line}\n"));
        lines.collect::<String>()
    };
    let line = action.line;
    (answer != action.expected).then(|| {
        format!(
            "line {line}, {} of {of}\nexpected\n{}actual\n{}",
            action.verb,
            lines(&action.expected),
            lines(&answer)
        )
    })
}
