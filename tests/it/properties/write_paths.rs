//! A history of writes leaves equal rows and gives equal answers, whether each write runs
//! without locks first or under locks alone. Stored sizes are those of the content.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
};

use expertise::store::WritePath;
use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{Config, TestRunner},
};
use sqlx::{Connection, PgConnection, SqliteConnection};
use tonic::Status;

use crate::kit::{
    databases::postgres,
    prelude::*,
    scratch::Scratch,
    store_server,
    stored_sizes::{
        stored_sizes_are_those_of_the_content, symbols_are_those_of_stored_tasks_and_steps,
    },
};

const CASES: u32 = 8;

/// The tables that hold what an account has, with their keys.
const TABLES: [(&str, &str); 9] = [
    ("tasks", "guid"),
    ("task_translations", "task, language"),
    ("steps", "guid"),
    ("step_translations", "step, language"),
    ("task_symbols", "task, symbol"),
    ("step_symbols", "step, symbol"),
    ("roles", "id"),
    ("accounts", "account_id"),
    ("request_outcomes", "created_ts, request_id"),
];

#[test]
fn both_write_paths_leave_equal_rows_on_sqlite() {
    let file = Scratch::of_this_run().path("write-paths.db");
    both_write_paths_leave_equal_rows(&format!("sqlite:{}", file.display()));
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn both_write_paths_leave_equal_rows_on_postgres() {
    let url = postgres("write_paths");
    both_write_paths_leave_equal_rows(&url);
}

/// One write of a history. An index chooses among what there is.
#[derive(Clone, Debug)]
enum Write {
    CreateTask { translated: bool, repeated: bool },
    UpdateTask { task: Index, published: i32 },
    RenameTask { task: Index },
    TranslateTask { task: Index, locked: bool },
    DeleteTask { task: Index, force: bool },
    AppendStep { task: Index, repeated: bool },
    InsertStep { step: Index },
    InsertBehindUnknown { task: Index },
    CreateSubtask { task: Index, other: Index },
    UpdateTitle { step: Index },
    UpdateBody { step: Index, clear: bool },
    TranslateStep { step: Index, locked: bool },
    DropTranslations { step: Index },
    Unlink { step: Index },
    UpdateConditions { step: Index, names: Vec<u8> },
    UpdateConditionsOfTask { task: Index, names: Vec<u8> },
    AppendQuestion { task: Index, name: u8 },
    RenameQuestion { step: Index, name: u8 },
    DeleteStep { step: Index },
    ImportGuide,
    ImportAgain { task: Index, reversed: bool },
    TranslateAutomatically,
    CreateRole,
    DeleteRole { id: i64 },
}

fn write() -> impl Strategy<Value = Write> {
    let index = any::<Index>;
    let names = || vec(0..4_u8, 0..4);
    prop_oneof![
        2 => (any::<bool>(), any::<bool>())
            .prop_map(|(translated, repeated)| Write::CreateTask { translated, repeated }),
        2 => (index(), 0..2).prop_map(|(task, published)| Write::UpdateTask { task, published }),
        2 => index().prop_map(|task| Write::RenameTask { task }),
        1 => (index(), any::<bool>())
            .prop_map(|(task, locked)| Write::TranslateTask { task, locked }),
        1 => (index(), any::<bool>()).prop_map(|(task, force)| Write::DeleteTask { task, force }),
        4 => (index(), any::<bool>())
            .prop_map(|(task, repeated)| Write::AppendStep { task, repeated }),
        3 => index().prop_map(|step| Write::InsertStep { step }),
        1 => index().prop_map(|task| Write::InsertBehindUnknown { task }),
        2 => (index(), index()).prop_map(|(task, other)| Write::CreateSubtask { task, other }),
        2 => index().prop_map(|step| Write::UpdateTitle { step }),
        2 => (index(), any::<bool>()).prop_map(|(step, clear)| Write::UpdateBody { step, clear }),
        2 => (index(), any::<bool>())
            .prop_map(|(step, locked)| Write::TranslateStep { step, locked }),
        1 => index().prop_map(|step| Write::DropTranslations { step }),
        1 => index().prop_map(|step| Write::Unlink { step }),
        2 => (index(), names())
            .prop_map(|(step, names)| Write::UpdateConditions { step, names }),
        1 => (index(), names())
            .prop_map(|(task, names)| Write::UpdateConditionsOfTask { task, names }),
        2 => (index(), 0..3_u8).prop_map(|(task, name)| Write::AppendQuestion { task, name }),
        2 => (index(), 0..3_u8).prop_map(|(step, name)| Write::RenameQuestion { step, name }),
        3 => index().prop_map(|step| Write::DeleteStep { step }),
        1 => Just(Write::ImportGuide),
        1 => (index(), any::<bool>())
            .prop_map(|(task, reversed)| Write::ImportAgain { task, reversed }),
        1 => Just(Write::TranslateAutomatically),
        1 => Just(Write::CreateRole),
        1 => (1..3_i64).prop_map(|id| Write::DeleteRole { id }),
    ]
}

fn both_write_paths_leave_equal_rows(url: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let store = runtime.block_on(store_server::open(url, 4));
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 100,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&vec(write(), 1..30), |history| {
        runtime.block_on(async {
            let mut ends = Vec::new();
            for path in [WritePath::OptimisticFirst, WritePath::LockedOnly] {
                let account = unknown_guid();
                let store = store.with_write_path(path);
                let client = store_server::serve_store(store.clone(), &account).await;
                let mut names = Names::default();
                let mut lines = Vec::new();
                for (number, write) in history.iter().enumerate() {
                    let answer = apply(&client, write, number).await.unwrap_or_default();
                    lines.push(names.normalised(&format!("{write:?}: {answer}")));
                }
                stored_sizes_are_those_of_the_content(&store, url, &account).await;
                symbols_are_those_of_stored_tasks_and_steps(url, &account).await;
                let rows = rows(url, &account).await.into_iter();
                let rows: Vec<String> = rows.map(|row| row.replace(&account, "account")).collect();
                ends.push((lines, names, rows));
            }
            let [optimistic, locked] = [&ends[0].2, &ends[1].2].map(|rows| symbols(rows));
            let shared: BTreeSet<String> = optimistic.intersection(&locked).cloned().collect();
            let ends = ends.into_iter().map(|(mut lines, mut names, rows)| {
                let rows = rows.iter().map(|row| with_shared_symbols(row, &shared));
                let mut rows: Vec<String> = rows.map(|row| names.normalised(&row)).collect();
                rows.sort_unstable();
                lines.append(&mut rows);
                lines
            });
            let ends: Vec<Vec<String>> = ends.collect();
            assert_equal(&ends[0], &ends[1]);
        });
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}");
    }
}

/// The symbol in a row of the index of names.
fn symbol(row: &str) -> Option<&str> {
    let (_, symbol) = row.split_once("\"symbol\":")?;
    symbol.split('"').nth(1)
}

fn symbols(rows: &[String]) -> BTreeSet<String> {
    rows.iter()
        .filter_map(|row| symbol(row))
        .map(str::to_owned)
        .collect()
}

/// The row without a symbol that is not shared: those of a task's own names differ with its id.
fn with_shared_symbols(row: &str, shared: &BTreeSet<String>) -> String {
    match symbol(row).filter(|symbol| !shared.contains(*symbol)) {
        Some(own) => row.replace(own, "own"),
        None => row.to_owned(),
    }
}

/// Fails at the first line in which the two differ.
fn assert_equal(optimistic: &[String], locked: &[String]) {
    for (optimistic, locked) in optimistic.iter().zip(locked) {
        assert_eq!(optimistic, locked);
    }
    assert_eq!(optimistic.len(), locked.len());
}

/// Makes the write, and returns its answer; `None` if it needs a task or step and there is none.
async fn apply(client: &Client, write: &Write, number: usize) -> Option<String> {
    let tasks = client.all_tasks().await;
    let mut steps = Vec::new();
    for task in &tasks {
        steps.extend(client.steps_with_bodies(&task.guid).await);
    }
    let any_task = |index: &Index| (!tasks.is_empty()).then(|| index.get(&tasks).clone());
    let any_step = |index: &Index| (!steps.is_empty()).then(|| index.get(&steps).clone());
    // Each text has a length of its own, which sizes depend on.
    let text = format!("text {}", "x".repeat(number));
    Some(match write {
        Write::CreateTask {
            translated,
            repeated,
        } => {
            let mut new = task(&text);
            if *translated {
                new.translations
                    .insert("de".to_owned(), task_translation("Aufgabe"));
            }
            let request = CreateTaskRequest {
                request_id: request_id(*repeated),
                ..create_task_request(new)
            };
            let mut answer = client.tasks().create_task(request.clone()).await;
            if *repeated {
                answer = client.tasks().create_task(request).await;
            }
            shown(answer.map(tonic::Response::into_inner))
        }
        Write::UpdateTask { task, published } => {
            let task = any_task(task)?;
            let task = Task {
                published: Some(*published),
                ..task_of(&task.guid)
            };
            shown(client.update_task(task, &["published"]).await)
        }
        Write::RenameTask { task } => {
            let task = any_task(task)?;
            let task = Task {
                name: text,
                ..task_of(&task.guid)
            };
            shown(client.update_task(task, &["name"]).await)
        }
        Write::TranslateTask { task, locked } => {
            let task = any_task(task)?;
            let row = TaskTranslation {
                locked: Some(*locked),
                ..task_translation(&text)
            };
            let translations = [("fr".to_owned(), row)].into();
            let task = Task {
                translations,
                ..task_of(&task.guid)
            };
            shown(client.update_task(task, &["translations.fr"]).await)
        }
        Write::DeleteTask { task, force } => {
            let task = any_task(task)?;
            shown(match force {
                true => client.force_delete_task(&task.guid).await,
                false => client.delete_task(&task.guid).await,
            })
        }
        Write::AppendStep { task, repeated } => {
            let task = any_task(task)?;
            let request = CreateStepRequest {
                request_id: request_id(*repeated),
                ..create_step_request(Step {
                    body: Some(text),
                    ..information_step(&task, "appended")
                })
            };
            let mut answer = client.steps().create_step(request.clone()).await;
            if *repeated {
                answer = client.steps().create_step(request).await;
            }
            shown(answer.map(tonic::Response::into_inner))
        }
        Write::InsertStep { step } => {
            let step = any_step(step)?;
            let task = task_of(&step.task);
            let new = information_step(&task, "inserted");
            shown(client.create_step_after(new, &step.guid).await)
        }
        Write::InsertBehindUnknown { task } => {
            let task = any_task(task)?;
            let new = information_step(&task, "inserted");
            shown(client.create_step_after(new, &unknown_guid()).await)
        }
        Write::CreateSubtask { task, other } => {
            let step = subtask(&any_task(task)?, &any_task(other)?);
            shown(client.create_step(step).await)
        }
        Write::UpdateTitle { step } => {
            let step = any_step(step)?;
            let step = Step {
                title: text,
                ..step_of(&step.guid)
            };
            shown(client.update_step(step, &["title"]).await)
        }
        Write::UpdateBody { step, clear } => {
            let step = any_step(step)?;
            let body = (!clear).then_some(text);
            let step = Step {
                body,
                ..step_of(&step.guid)
            };
            shown(client.update_step(step, &["body"]).await)
        }
        Write::TranslateStep { step, locked } => {
            let step = any_step(step)?;
            let row = StepTranslation {
                locked: Some(*locked),
                ..step_translation(&text)
            };
            let translations = [("fr".to_owned(), row)].into();
            let step = Step {
                translations,
                ..step_of(&step.guid)
            };
            shown(client.update_step(step, &["translations.fr"]).await)
        }
        Write::DropTranslations { step } => {
            let step = step_of(&any_step(step)?.guid);
            shown(client.update_step(step, &["translations"]).await)
        }
        Write::Unlink { step } => {
            let mut step = any_step(step)?;
            if let Some(question) = step.feedback_config.first_mut() {
                question.linked = Some(false);
            }
            shown(client.update_step(step, &["feedback_config"]).await)
        }
        Write::UpdateConditions { step, names } => {
            let step = any_step(step)?;
            let step = Step {
                dependencies: reading(names),
                ..step_of(&step.guid)
            };
            shown(client.update_step(step, &["dependencies"]).await)
        }
        Write::UpdateConditionsOfTask { task, names } => {
            let task = any_task(task)?;
            let task = Task {
                dependencies: reading(names),
                ..task_of(&task.guid)
            };
            shown(client.update_task(task, &["dependencies"]).await)
        }
        Write::AppendQuestion { task, name } => {
            let task = any_task(task)?;
            let step = step(&task, StepType::Observation, &text);
            let step = Step {
                dependencies: reading(&[*name]),
                ..step.with_question(question(&format!("n{name}"), &["on"]))
            };
            shown(client.create_step(step).await)
        }
        Write::RenameQuestion { step, name } => {
            let mut step = any_step(step)?;
            if let Some(question) = step.feedback_config.first_mut() {
                question.name = format!("n{name}");
            }
            shown(client.update_step(step, &["feedback_config"]).await)
        }
        Write::DeleteStep { step } => shown(client.delete_step(&any_step(step)?.guid).await),
        Write::ImportGuide => {
            let steps = [
                document_steps(&["one", "two"]),
                vec![linked_observation(&[("on", "On"), ("off", "Off")])],
            ];
            shown(client.import(document(&text, steps.concat())).await)
        }
        Write::ImportAgain { task, reversed } => {
            let task = any_task(task)?;
            let mut document = client.exported(&task.guid).await;
            if *reversed {
                document.steps.reverse();
            }
            document.steps.extend(document_steps(&["imported"]));
            shown(client.import_with(AbsentSteps::Delete, document).await)
        }
        Write::TranslateAutomatically => {
            let work = client.translation_work(&["fr", "nl"]).await;
            let items = work.iter().map(|work| automatic(work, &text)).collect();
            shown(client.write_translations(items).await)
        }
        Write::CreateRole => shown(client.create_role(&text).await),
        Write::DeleteRole { id } => shown(client.delete_role(*id).await),
    })
}

/// Conditions that read these names; none for no names.
fn reading(names: &[u8]) -> Option<DependencyGroup> {
    let nodes = names
        .iter()
        .map(|name| when(&format!("n{name}"), "=", "on"));
    (!names.is_empty()).then(|| all_of(nodes.collect()))
}

fn request_id(wanted: bool) -> String {
    if wanted {
        unknown_guid()
    } else {
        String::new()
    }
}

fn shown<T: Debug>(answer: Result<T, Status>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(status) => format!("{:?} {}", status.code(), status.message()),
    }
}

/// Replaces ids by the order in which they appear, and removes times and etags.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn normalised(&mut self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            let length = token_length(rest);
            let (token, behind) = rest.split_at(length);
            rest = behind;
            if is_id(token) {
                let next = self.0.len();
                let id = token.replace('-', "").to_lowercase();
                text.push_str(&format!("<{}>", self.0.entry(id).or_insert(next)));
            } else {
                text.push_str(token);
            }
        }
        without(&without(&text, "etag: \"", "\""), "Timestamp {", "}")
    }
}

/// The length of the hexadecimal digits and hyphens in front, or of one character.
fn token_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_hexdigit() && c != '-');
    match end.unwrap_or(text.len()) {
        0 => text.chars().next().map_or(1, char::len_utf8),
        length => length,
    }
}

/// A GUID, or 16 bytes as hexadecimal digits.
fn is_id(token: &str) -> bool {
    matches!(token.len(), 32 | 36) && token.replace('-', "").len() == 32
}

/// The text without what stands between two others.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(to).map_or("", |(_, rest)| rest));
    }
    kept
}

/// Every row of an account as JSON without times, in the order of the keys.
async fn rows(url: &str, account: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (table, key) in TABLES {
        let found = if url.starts_with("sqlite:") {
            let mut file = SqliteConnection::connect(url).await.expect("the file");
            let columns: Vec<String> =
                sqlx::query_scalar("SELECT name FROM pragma_table_info($1) ORDER BY cid")
                    .bind(table)
                    .fetch_all(&mut file)
                    .await
                    .expect("the columns");
            let columns = columns.iter().filter(|column| is_compared(column));
            let columns = columns.map(|column| {
                format!(
                    "'{column}', CASE typeof({column}) WHEN 'blob' THEN hex({column}) \
                     ELSE {column} END"
                )
            });
            let columns: Vec<String> = columns.collect();
            let sql = format!(
                "SELECT json_object({}) FROM {table} WHERE account_id = $1 ORDER BY {key}",
                columns.join(", ")
            );
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .bind(account)
                .fetch_all(&mut file)
                .await
        } else {
            let mut connection = PgConnection::connect(url).await.expect("PostgreSQL");
            let sql = format!(
                "SELECT (to_jsonb(t) - 'created_ts' - 'modified_ts' - 'outcome' - 'digest')::text \
                 FROM {table} t WHERE account_id = $1 ORDER BY {key}"
            );
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .bind(account)
                .fetch_all(&mut connection)
                .await
        };
        let found: Vec<String> = found.expect("the rows");
        all.extend(found.into_iter().map(|row| format!("{table} {row}")));
    }
    all
}

/// Outcomes hold times, and digests of requests with ids in them.
fn is_compared(column: &str) -> bool {
    !matches!(column, "created_ts" | "modified_ts" | "outcome" | "digest")
}
