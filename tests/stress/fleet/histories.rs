//! Histories of writes at both servers at once leave an account as consistent as with a
//! single server, and both servers answer alike, byte for byte.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::join_all;
use prost::Message;
use tonic::Status;

use super::prelude::*;
use crate::kit::{
    links::links_are_consistent,
    rng::{Rng, number_from_env},
};

on_two_servers![histories_at_both_servers_leave_an_account_consistent];

/// Writers at each server, each over a connection of its own.
const WRITERS: usize = 4;
/// Changes that each of them makes in a round.
const CHANGES: usize = 12;

/// How many rounds, each in an account of its own.
fn rounds() -> u64 {
    number_from_env("EXPERTISE_TEST_FLEET_ROUNDS").unwrap_or(4)
}

/// The tasks that the writers change.
struct Tasks {
    /// Tasks with a first step each.
    plain: Vec<(Task, String)>,
    /// A task whose question manages tasks, and the question.
    linked: (String, String),
}

/// The steps that one writer made.
#[derive(Default)]
struct Made {
    /// Pairs of a step and one that was inserted after it.
    after: Vec<(String, String)>,
    /// Those not deleted, each with the index of its task.
    kept: Vec<(usize, String)>,
}

fn text(rng: &mut Rng) -> String {
    format!("Text {}", rng.below(1_000))
}

async fn histories_at_both_servers_leave_an_account_consistent(clients: [Client; 2]) {
    for round in 0..rounds() {
        let account = unknown_guid();
        let clients = clients.clone().map(|client| client.with_account(&account));
        let tasks = make_tasks(&clients).await;
        let writers = (0..2 * WRITERS).map(|writer| {
            let seed = round * 1_000 + writer as u64;
            let rng = Rng::new(seed);
            let client = clients[writer % 2].over_new_connection();
            write(client, &tasks, rng)
        });
        let made = join_all(writers).await;
        both_servers_agree(&clients).await;
        links_are_consistent(&clients[round as usize % 2].tasks_with_steps().await);
        orders_are_kept(&clients[1], &tasks, &made).await;
    }
}

async fn make_tasks(clients: &[Client; 2]) -> Tasks {
    let mut plain = Vec::new();
    for client in clients {
        let task = client.given_task(task("Guide")).await;
        let first = client.given_step(information_step(&task, "first")).await;
        plain.push((task, first.guid));
    }
    let question = linked_observation(&[("a", "Red"), ("b", "Green"), ("c", "Blinks")]);
    let guide = clients[0].imported(document("Lamp", vec![question])).await;
    let question = guide.steps[0].clone();
    Tasks {
        plain,
        linked: (guide.guid, question),
    }
}

async fn write(client: Client, tasks: &Tasks, mut rng: Rng) -> Made {
    let mut made = Made::default();
    for _ in 0..CHANGES {
        match rng.below(10) {
            0..4 => insert(&client, tasks, &mut made, &mut rng).await,
            4 => delete(&client, &mut made, &mut rng).await,
            5 => {
                let (task, _) = &tasks.plain[rng.below(2)];
                let renamed = Task {
                    name: text(&mut rng),
                    ..task_of(&task.guid)
                };
                client.updated_task(renamed, &["name"]).await;
            }
            6 => add_subtask(&client, tasks, &mut made, &mut rng).await,
            7 | 8 => change_question(&client, tasks, &mut rng).await,
            _ => import_again(&client, tasks, &mut rng).await,
        }
    }
    made
}

/// Inserts a step after one of the writer's own, or after the first.
async fn insert(client: &Client, tasks: &Tasks, made: &mut Made, rng: &mut Rng) {
    let index = rng.below(2);
    let (task, first) = &tasks.plain[index];
    let own: Vec<&String> = made
        .kept
        .iter()
        .filter(|(at, _)| *at == index)
        .map(|(_, step)| step)
        .chain([first])
        .collect();
    let prevstep = own[rng.below(own.len())].clone();
    let sent = information_step(task, "inserted");
    let response = client.create_step_after(sent, &prevstep).await.accepted();
    assert_eq!(response.placement(), Placement::AfterPrevstep);
    let guid = response.step.expect("the step").guid;
    made.after.push((prevstep, guid.clone()));
    made.kept.push((index, guid));
}

async fn delete(client: &Client, made: &mut Made, rng: &mut Rng) {
    if made.kept.is_empty() {
        return;
    }
    let (_, step) = made.kept.swap_remove(rng.below(made.kept.len()));
    client.delete_step(&step).await.accepted();
}

/// Appends a step to one task that refers to the other, or to a managed one.
async fn add_subtask(client: &Client, tasks: &Tasks, made: &mut Made, rng: &mut Rng) {
    let index = rng.below(2);
    let all = client.all_tasks().await;
    let other = &all[rng.below(all.len())];
    let sent = subtask(&tasks.plain[index].0, other);
    let step = client.create_step(sent).await.accepted().step;
    made.kept.push((index, step.expect("the step").guid));
}

/// Changes an answer of the linked question, or removes one. An answer that another
/// writer has removed meanwhile cannot be linked again.
async fn change_question(client: &Client, tasks: &Tasks, rng: &mut Rng) {
    let mut step = client.get_step(&tasks.linked.1).await.accepted();
    step.etag.clear();
    let values = &mut step.feedback_config[0].values;
    let index = rng.below(values.len());
    if values.len() > 1 && rng.below(8) == 0 {
        values.remove(index);
    } else {
        values[index].value = text(rng);
    }
    let update = Step {
        feedback_config: step.feedback_config,
        ..step_of(&step.guid)
    };
    refused_at_most(
        client.update_step(update, &["feedback_config"]).await,
        &["LINKED_IMPORT_ONLY"],
    );
}

/// Imports what was exported a moment ago. Steps and links of the document may be
/// gone by then.
async fn import_again(client: &Client, tasks: &Tasks, rng: &mut Rng) {
    let tasks = [
        &tasks.plain[0].0.guid,
        &tasks.plain[1].0.guid,
        &tasks.linked.0,
    ];
    let mut exported = client.exported(tasks[rng.below(3)]).await;
    let task = exported.task.as_mut().expect("the task");
    task.etag.clear();
    if rng.below(2) == 0 {
        task.name = text(rng);
    }
    exported.steps.iter_mut().for_each(|step| step.etag.clear());
    refused_at_most(
        client.import_with(AbsentSteps::Keep, exported).await,
        &[
            "STEP_NOT_FOUND",
            "TASK_NOT_FOUND",
            "ETAG_MISMATCH",
            "FIELD_INVALID",
        ],
    );
}

/// Asserts that a call failed with one of these reasons, if at all: a serialization
/// failure or a deadlock of the database is never a client's error.
#[track_caller]
fn refused_at_most<T: std::fmt::Debug>(outcome: Result<T, Status>, reasons: &[&str]) {
    if let Err(status) = outcome {
        let failure = Failure::from(status);
        assert!(reasons.contains(&failure.reason()), "{failure:?}");
    }
}

/// Asserts that every step that was inserted after another is behind it, and that each
/// is there unless its writer deleted it.
async fn orders_are_kept(client: &Client, tasks: &Tasks, made: &[Made]) {
    let mut places = BTreeMap::new();
    for (index, (task, first)) in tasks.plain.iter().enumerate() {
        let order = client.step_order(&task.guid).await;
        let listed = client.steps_of(&task.guid, 3).await;
        let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
        assert_eq!(listed, order);
        let kept = made.iter().flat_map(|made| &made.kept);
        let kept = kept.filter(|(at, _)| *at == index).map(|(_, step)| step);
        let mut expected: Vec<&String> = kept.chain([first]).collect();
        expected.sort_unstable();
        let mut found: Vec<&String> = order.iter().collect();
        found.sort_unstable();
        assert_eq!(found, expected);
        places.extend(order.into_iter().enumerate().map(|(n, step)| (step, n)));
    }
    for made in made {
        for (prevstep, step) in &made.after {
            if let (Some(before), Some(after)) = (places.get(prevstep), places.get(step)) {
                assert!(before < after, "{step} is not after {prevstep}");
            }
        }
    }
}

/// Asserts that both servers answer all reads of the account alike.
async fn both_servers_agree(clients: &[Client; 2]) {
    let tasks = clients[0].all_tasks().await;
    both_answer_alike(
        clients,
        "TaskService/ListTasks",
        &ListTasksRequest::default(),
    )
    .await;
    for task in tasks {
        let guid = task.guid.clone();
        both_answer_alike(clients, "TaskService/GetTask", &GetTaskRequest { guid }).await;
        let guid = task.guid.clone();
        both_answer_alike(
            clients,
            "TaskService/ExportTask",
            &ExportTaskRequest { guid },
        )
        .await;
        let list = ListStepsRequest {
            task: task.guid,
            page_size: 5,
            expand: vec!["body".to_owned()],
            ..ListStepsRequest::default()
        };
        both_answer_alike(clients, "StepService/ListSteps", &list).await;
    }
    both_answer_alike(
        clients,
        "TranslationService/ListTranslationWork",
        &translation_work_request(&["de", "es"]),
    )
    .await;
}

async fn both_answer_alike(clients: &[Client; 2], method: &str, request: &impl Message) {
    let request = Bytes::from(request.encode_to_vec());
    let one = clients[0].send_bytes(method, request.clone()).await;
    let other = clients[1].send_bytes(method, request).await;
    assert_eq!(one.accepted(), other.accepted(), "{method}");
}
